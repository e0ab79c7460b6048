"""Memory shared through DLPack: capsules both ways, copies, devices, and what is rejected."""

import ctypes
import datetime
import gc
import threading

import numpy as np
import pytest
from conftest import DEVICES

import pydevtensor as torch
from pydevtensor.utils import dlpack

SIMULATED = len(DEVICES) > 1 and torch.cuda.is_simulated()
real_gpu = pytest.mark.skipif(SIMULATED or len(DEVICES) == 1, reason="needs a real GPU")

# Types that DLPack, NumPy and this build all have.
TYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


def alive(device):
    return torch._C._storage_count(torch.device(device))


class Array(ctypes.Structure):
    """What a capsule describes, as DLPack lays it out."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Legacy(ctypes.Structure):
    _fields_ = (
        ("array", Array),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("array", Array),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.c_void_p
get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


class Maker:
    """A library with capsules of its own, some of which nobody should make."""

    def __init__(self, versioned=True, shape=(2, 3), strides=(3, 1), **changes):
        self.memory = (ctypes.c_float * 16)(*range(16))
        self.deleted = []
        self.called = []
        self.deleter = DELETER(self.deleted.append)
        self.name = b"dltensor_versioned" if versioned else b"dltensor"
        self.struct = Versioned() if versioned else Legacy()
        self.struct.deleter = ctypes.cast(self.deleter, ctypes.c_void_p).value
        if versioned:
            self.struct.major, self.struct.minor = changes.pop("version", (1, 0))
            self.struct.flags = changes.pop("flags", 0)
        array = self.struct.array
        array.data = ctypes.addressof(self.memory)
        array.device_type, array.code, array.bits, array.lanes = 1, 2, 32, 1
        array.ndim = len(shape)
        self.shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        array.shape = self.shape
        if strides is not None:
            self.strides = (ctypes.c_int64 * max(len(strides), 1))(*strides)
            array.strides = self.strides
        self.device = changes.pop("device", (1, 0))
        for name, value in changes.items():
            setattr(array, name, value)

    def capsule(self):
        return new_capsule(ctypes.addressof(self.struct), self.name, None)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        self.called.append(keywords)
        return self.capsule()


@pytest.mark.parametrize("name", TYPES)
def test_types_go_both_ways(name):
    x = torch.tensor([[0, 1, 1], [1, 0, 1]], dtype=getattr(torch, name))
    a = np.from_dlpack(x)
    assert a.dtype == name and a.tolist() == x.tolist()
    y = torch.from_dlpack(a)
    assert y.dtype is x.dtype and y.tolist() == x.tolist()
    assert x.data_ptr() == a.ctypes.data == y.data_ptr()


def test_memory_is_shared():
    a = np.zeros((2, 3), dtype=np.float32)
    x = torch.from_dlpack(a)
    a[0, 0] = 1
    x[1, 2] = 2
    assert x[0, 0].item() == 1 and a[1, 2] == 2
    y = torch.zeros(4)
    b = np.from_dlpack(y)
    y.add_(1)
    b[0] = 9
    assert y.tolist() == [9, 1, 1, 1] and b.tolist() == [9, 1, 1, 1]


def test_layouts():
    a = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    views = [a.T, a[:, ::2], a[1], a[..., 1], a[:0], a.transpose(1, 0, 2), a[1, 1, 1:2]]
    views += [np.broadcast_to(a[0, 0], (3, 4)).copy(), np.array(7), a[:, :1]]
    for view in views:
        x = torch.from_dlpack(view)
        assert x.tolist() == view.tolist() and tuple(x.shape) == view.shape
        assert np.from_dlpack(x).tolist() == view.tolist()
        if view.size > 1:
            assert np.shares_memory(np.from_dlpack(x), view)
    # A step of 0, which NumPy gives for what is broadcast.
    row = torch.from_dlpack(np.broadcast_to(np.arange(3), (2, 3)))
    assert row.tolist() == [[0, 1, 2]] * 2 and row.stride() == (0, 1)


def test_scalars_and_offsets():
    x = torch.arange(10.0)[3:8:2]
    assert np.from_dlpack(x).tolist() == [3, 5, 7]
    assert np.from_dlpack(torch.tensor(3)).shape == ()
    maker = Maker(shape=(2,), strides=(2,), byte_offset=8)
    assert torch.from_dlpack(maker).tolist() == [2, 4]


@pytest.mark.parametrize("versioned", [False, True])
def test_capsules_are_consumed_once(versioned):
    x = torch.arange(3.0)
    keywords = {"max_version": (1, 0)} if versioned else {}
    capsule = x.__dlpack__(**keywords)
    name = "dltensor_versioned" if versioned else "dltensor"
    assert f'"{name}"' in repr(capsule)
    y = torch.from_dlpack(capsule)
    assert f'"used_{name}"' in repr(capsule)
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="already consumed"):
        torch.from_dlpack(capsule)


def test_max_version():
    x = torch.ones(2)
    for version, name in [((0, 8), "dltensor"), ((1, 0), "dltensor_versioned")]:
        assert f'"{name}"' in repr(x.__dlpack__(max_version=version))
    assert '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(9, 9)))
    versioned = x.__dlpack__(max_version=(2, 0))
    struct = Versioned.from_address(get_pointer(versioned, b"dltensor_versioned"))
    assert (struct.major, struct.flags) == (1, 0)
    with pytest.raises(TypeError, match="max_version is 1"):
        x.__dlpack__(max_version=1)


def test_capsules_keep_the_memory_alive():
    before = alive("cpu")
    x = torch.arange(5000.0)
    array = np.from_dlpack(x)
    capsule = x.__dlpack__()
    del x
    assert array[4999] == 4999
    del array
    assert alive("cpu") == before + 1
    y = torch.from_dlpack(capsule)
    del capsule
    assert y[4999].item() == 4999
    del y
    assert alive("cpu") == before


def test_capsules_that_nobody_takes():
    before = alive("cpu")
    x = torch.ones(100)
    for version in ((0, 1), (1, 0)):
        x.__dlpack__(max_version=version)
    del x
    assert alive("cpu") == before


@pytest.mark.parametrize("versioned", [False, True])
def test_the_deleter_is_called_when_the_last_tensor_goes(versioned):
    maker = Maker(versioned)
    x = torch.from_dlpack(maker)
    view = x[1]
    del x
    assert not maker.deleted
    assert view.tolist() == [3, 4, 5]
    del view
    assert maker.deleted == [ctypes.addressof(maker.struct)]


def test_the_deleter_is_called_in_a_thread():
    maker = Maker()
    kept = [torch.from_dlpack(maker)]
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert len(maker.deleted) == 1


def test_without_a_deleter():
    for versioned in (False, True):
        maker = Maker(versioned)
        maker.struct.deleter = None
        assert torch.from_dlpack(maker.capsule()).shape == (2, 3)


def test_strides_may_be_left_out():
    maker = Maker(strides=None)
    assert torch.from_dlpack(maker).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_read_only_arrays_stay_read_only():
    a = np.arange(3.0)
    a.flags.writeable = False
    x = torch.from_dlpack(a)
    with pytest.raises((RuntimeError, ValueError), match="read-only"):
        x.add_(1)
    assert (x + 1).tolist() == [1, 2, 3]
    assert not np.from_dlpack(x).flags.writeable
    with pytest.raises(BufferError, match=r"max_version=\(1, 0\)"):
        x.__dlpack__()
    assert np.from_dlpack(x, copy=True).flags.writeable
    assert np.from_dlpack(x.clone()).flags.writeable
    assert '"dltensor"' in repr(x.__dlpack__(copy=True))


def test_copies():
    x = torch.zeros(3)
    array = np.from_dlpack(x, copy=True)
    array[0] = 1
    assert x.tolist() == [0, 0, 0]
    copied = x.__dlpack__(max_version=(1, 0), copy=True)
    struct = Versioned.from_address(get_pointer(copied, b"dltensor_versioned"))
    assert struct.flags == 2
    a = np.zeros(3)
    y = torch.from_dlpack(a, copy=True)
    y.add_(1)
    assert a.tolist() == [0, 0, 0]
    z = torch.from_dlpack(a, copy=False)
    z.add_(2)
    assert a.tolist() == [2, 2, 2]
    # A maker who ignores the wish.
    maker = Maker()
    made = torch.from_dlpack(maker, copy=True)
    assert maker.called == [{"max_version": (1, 0), "copy": True}]
    assert made.data_ptr() != ctypes.addressof(maker.memory)
    assert len(maker.deleted) == 1


def test_makers_from_before_version_1():
    class Old(Maker):
        def __dlpack__(self, stream=None):
            self.called.append(stream)
            return self.capsule()

    maker = Old(versioned=False)
    assert torch.from_dlpack(maker).shape == (2, 3)
    assert torch.from_dlpack(maker, copy=True).shape == (2, 3)
    assert maker.called == [None, None]

    class Broken(Maker):
        def __dlpack__(self, **keywords):
            raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        torch.from_dlpack(Broken())


WRONG = {
    "negative size": {"shape": (-1, 3)},
    "negative ndim": {"ndim": -1},
    "too many dimensions": {"ndim": 17},
    "huge size": {"shape": (2**62, 2**62)},
    "huge stride": {"strides": (2**62, 2**62)},
    "negative stride": {"strides": (-3, 1)},
    "type": {"code": 77},
    "complex": {"code": 5, "bits": 32},
    "bits": {"bits": 24},
    "lanes": {"lanes": 4},
    "no memory": {"data": None},
    "alignment": {"byte_offset": 1},
    "device": {"device_type": 10},
    "version": {"version": (2, 0)},
}


@pytest.mark.parametrize("wrong", WRONG, ids=list(WRONG))
def test_wrong_capsules(wrong):
    maker = Maker(**WRONG[wrong])
    capsule = maker.capsule()
    with pytest.raises((BufferError, RuntimeError)):
        torch.from_dlpack(capsule)
    # It still belongs to whoever made it.
    assert '"dltensor_versioned"' in repr(capsule) and not maker.deleted


def test_no_shape():
    maker = Maker()
    maker.struct.array.shape = None
    with pytest.raises(BufferError, match="shape"):
        torch.from_dlpack(maker.capsule())


@pytest.mark.parametrize(
    "value",
    [3, "a", None, [1, 2], datetime.datetime_CAPI, object()],
    ids=lambda v: type(v).__name__,
)
def test_what_is_no_array(value):
    with pytest.raises(RuntimeError, match="__dlpack__"):
        torch.from_dlpack(value)


def test_makers_that_answer_nonsense():
    class Nothing:
        def __dlpack__(self):
            return 3

    with pytest.raises(AttributeError):
        torch.from_dlpack(Nothing())
    Nothing.__dlpack_device__ = lambda self: (1, 0)
    with pytest.raises(RuntimeError, match="capsule"):
        torch.from_dlpack(Nothing())
    for answer in (3, "ab", (1,), (1, "x"), None):
        Nothing.__dlpack_device__ = lambda self, answer=answer: answer
        with pytest.raises(TypeError, match="two ints"):
            torch.from_dlpack(Nothing())
    Nothing.__dlpack_device__ = lambda self: (2**40, 0)
    with pytest.raises(BufferError):
        torch.from_dlpack(Nothing())


def test_numpy_types_that_tensors_lack():
    for array in (np.zeros(2, np.clongdouble), np.zeros(2, "g"), np.zeros(2, ">f4")):
        with pytest.raises(BufferError):
            torch.from_dlpack(array)
    with pytest.raises(BufferError, match="negative"):
        torch.from_dlpack(np.arange(3)[::-1])
    gc.collect()


def test_arguments_are_checked():
    x = torch.ones(2)
    capsule = x.__dlpack__()
    for wrong in ({"copy": True}, {"device": "cpu"}):
        with pytest.raises(AssertionError):
            torch.from_dlpack(capsule, **wrong)
    assert '"dltensor"' in repr(capsule)
    calls = [
        ({"stream": "a"}, TypeError),
        ({"stream": 1}, AssertionError),
        ({"copy": 1}, TypeError),
        ({"dl_device": "cpu"}, TypeError),
        ({"dl_device": (1,)}, RuntimeError),
        ({"dl_device": (9, 0)}, BufferError),
        ({"dl_device": (2, 99), "copy": False}, BufferError),
        ({"nonsense": 1}, TypeError),
    ]
    for keywords, error in calls:
        with pytest.raises(error):
            x.__dlpack__(**keywords)
    for good in ({"stream": None}, {"stream": -1}, {"dl_device": (1, 0)}):
        assert '"dltensor"' in repr(x.__dlpack__(**good))
    with pytest.raises(TypeError):
        torch.from_dlpack()
    with pytest.raises(TypeError):
        torch.from_dlpack(x, device=3.5)


def test_gradients_are_refused():
    x = torch.ones(2, requires_grad=True)
    for use in (x.__dlpack__, lambda: torch.from_dlpack(x), lambda: np.from_dlpack(x)):
        with pytest.raises(BufferError, match="detach"):
            use()
    assert x.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(x.detach()).tolist() == [1, 1]


def test_own_tensors(device):
    x = torch.arange(3.0, device=device)
    y = torch.from_dlpack(x)
    assert y.data_ptr() == x.data_ptr() and y.device == x.device
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]


def test_arrays_go_to_a_gpu(gpu):
    a = np.arange(3.0)
    x = torch.from_dlpack(a, device=gpu)
    assert str(x.device) == gpu and x.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="copy=False"):
        torch.from_dlpack(a, device=gpu, copy=False)


def test_gpu_tensors_come_to_the_cpu_when_asked(gpu):
    x = torch.arange(3.0, device=gpu)
    assert np.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]
    capsule = x.__dlpack__(max_version=(1, 0), dl_device=(1, 0))
    struct = Versioned.from_address(get_pointer(capsule, b"dltensor_versioned"))
    assert struct.array.device_type == 1 and struct.flags == 2
    with pytest.raises(ValueError, match="copy=False"):
        x.__dlpack__(dl_device=(1, 0), copy=False)


@pytest.mark.skipif(not SIMULATED, reason="needs simulated GPUs")
def test_simulated_memory_is_never_offered(gpu):
    x = torch.ones(2, device=gpu)
    maker = Maker(device_type=2)
    refused = [
        x.__dlpack__,
        x.__dlpack_device__,
        lambda: x.__dlpack__(dl_device=(2, 0)),
        lambda: torch.ones(2).__dlpack__(dl_device=(2, 0)),
        lambda: torch.to_dlpack(x),
        lambda: np.from_dlpack(x),
        lambda: torch.from_dlpack(Maker(device=(2, 0))),
        lambda: torch.from_dlpack(maker.capsule()),
    ]
    for use in refused:
        with pytest.raises(BufferError, match="simulated"):
            use()
    with pytest.raises(AttributeError, match="simulated"):
        _ = x.__cuda_array_interface__
    assert not hasattr(x, "__cuda_array_interface__")


def test_makers_on_other_devices_are_asked_for_the_cpu():
    maker = Maker(device=(10, 0))
    assert torch.from_dlpack(maker, device="cpu").shape == (2, 3)
    assert maker.called == [{"max_version": (1, 0), "dl_device": (1, 0)}]
    with pytest.raises(BufferError, match="device type 10"):
        torch.from_dlpack(maker)


def test_cuda_array_interface_on_the_cpu():
    for x in (torch.ones(2), torch.ones(2, requires_grad=True)):
        with pytest.raises(AttributeError, match="cuda"):
            _ = x.__cuda_array_interface__
        assert not hasattr(x, "__cuda_array_interface__")


@pytest.fixture
def shared_gpu(gpu):
    """A GPU that other libraries know by the same number."""
    if torch.cuda.get_device_properties(gpu).physical != torch.device(gpu).index:
        pytest.skip("other libraries know no virtual GPUs")
    return gpu


@real_gpu
def test_real_gpus(shared_gpu):
    gpu = shared_gpu
    x = torch.arange(6.0, device=gpu).reshape(2, 3)
    assert x.__dlpack_device__()[0] == 2
    for stream in (None, -1, 1, 2, torch.cuda.Stream().cuda_stream):
        y = torch.from_dlpack(x.__dlpack__(stream=stream, max_version=(1, 0)))
        assert y.data_ptr() == x.data_ptr() and y.device == x.device
        assert y.add_(0).tolist() == x.tolist()
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=0)
    shown = x.t().__cuda_array_interface__
    assert shown["version"] == 3 and shown["shape"] == (3, 2)
    assert shown["strides"] == (4, 12) and shown["data"] == (x.data_ptr(), False)
    assert shown["typestr"] == "<f4" and shown["stream"] == 1
    assert x.__cuda_array_interface__["strides"] is None
    with pytest.raises(RuntimeError, match="detach"):
        _ = x.requires_grad_().__cuda_array_interface__


def test_the_module_of_the_same_names():
    x = torch.ones(2)
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    assert y.data_ptr() == x.data_ptr()
    assert dlpack.DLDeviceType.kDLCPU == x.__dlpack_device__()[0]
    assert torch.utils.dlpack is dlpack


# Where PyTorch is installed beside: no test needs it to be.


@pytest.mark.parametrize("name", TYPES)
def test_round_trip_with_pytorch(name):
    pytorch = pytest.importorskip("torch")
    x = torch.tensor([[0, 1, 1], [1, 0, 1]], dtype=getattr(torch, name))
    theirs = pytorch.from_dlpack(x.t())
    assert theirs.dtype is getattr(pytorch, name) and theirs.tolist() == x.t().tolist()
    assert theirs.data_ptr() == x.data_ptr() and theirs.stride() == (1, 3)
    ours = torch.from_dlpack(theirs)
    assert ours.data_ptr() == x.data_ptr() and ours.tolist() == theirs.tolist()
    ours.fill_(1)
    assert theirs.tolist() == x.t().tolist() == [[1, 1]] * 3
    for version in ((0, 8), (1, 0)):
        capsule = x.__dlpack__(max_version=version)
        assert pytorch.from_dlpack(capsule).data_ptr() == x.data_ptr()
        capsule = theirs.__dlpack__(max_version=version)
        assert torch.from_dlpack(capsule).data_ptr() == x.data_ptr()


def test_pytorch_keeps_and_is_kept():
    pytorch = pytest.importorskip("torch")
    theirs = pytorch.from_dlpack(torch.arange(5000.0))
    ours = torch.from_dlpack(pytorch.arange(5000.0))
    gc.collect()
    assert theirs[4999] == 4999 and ours[4999].item() == 4999
    assert pytorch.from_dlpack(torch.empty(0, 3)).shape == (0, 3)
    assert torch.from_dlpack(pytorch.empty(0, 3)).shape == (0, 3)
    assert torch.from_dlpack(pytorch.tensor(7)).item() == 7
    with pytest.raises(BufferError):
        torch.from_dlpack(pytorch.ones(2, requires_grad=True))
    z = pytorch.tensor([1 + 2j])
    assert torch.from_dlpack(z).tolist() == [1 + 2j]


@pytest.mark.skipif(not SIMULATED, reason="needs simulated GPUs")
def test_pytorch_is_refused_simulated_memory(gpu):
    pytorch = pytest.importorskip("torch")
    with pytest.raises(BufferError, match="simulated"):
        pytorch.from_dlpack(torch.ones(2, device=gpu))


def shared_both_ways(gpu, library, address):
    """Memory of ours and of another CUDA library, seen by the other and written to."""
    x = torch.arange(6.0, device=gpu).reshape(2, 3)
    theirs = library.from_dlpack(x.t())
    assert address(theirs) == x.data_ptr() and tuple(theirs.shape) == (3, 2)
    ours = torch.from_dlpack(theirs)
    assert ours.data_ptr() == x.data_ptr() and ours.device == x.device
    ours.mul_(2)
    torch.cuda.synchronize(gpu)
    assert theirs.tolist() == [[0, 6], [2, 8], [4, 10]]
    # What one library has queued, the other waits for.
    large = library.ones(1 << 22, dtype=library.float32)
    large *= 3
    assert torch.from_dlpack(large).sum().item() == 3 << 22


@real_gpu
def test_round_trip_with_cupy(shared_gpu):
    gpu = shared_gpu
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(torch.device(gpu).index):
        shared_both_ways(gpu, cupy, lambda array: array.data.ptr)
        x = torch.arange(6.0, device=gpu).reshape(2, 3)
        seen = cupy.asarray(x.t())  # by __cuda_array_interface__
        assert seen.data.ptr == x.data_ptr() and seen.tolist() == x.t().tolist()


@real_gpu
def test_round_trip_with_pytorch_on_a_gpu(shared_gpu):
    gpu = shared_gpu
    pytorch = pytest.importorskip("torch")
    if not pytorch.cuda.is_available():
        pytest.skip("needs PyTorch with CUDA")
    with pytorch.device(gpu):
        shared_both_ways(gpu, pytorch, lambda tensor: tensor.data_ptr())
