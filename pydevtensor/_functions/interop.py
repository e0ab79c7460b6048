"""Tensors for copy, pickle, NumPy, DLPack and the CUDA array interface.

Memory on simulated GPUs is refused: no other library can use it.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function, method
from pydevtensor._numpy import numpy
from pydevtensor._streams import Stream, checked, current, existing

if TYPE_CHECKING:
    from pydevtensor._functions.types import Device, Dtype, Sizes, Tensor

# DLPack's types of devices.
_CPU, _CUDA, _CUDA_HOST = 1, 2, 3


@method()
def record_stream(input: Tensor, stream: Stream) -> None:
    """Record a use of this Tensor's memory on stream.

    It is not reused before the work queued there is done. Operations do this
    themselves; call it for other libraries' work.

    >>> torch.zeros(2, device='cuda').record_stream(torch.cuda.current_stream())
    """
    device = checked("record_stream", stream, Stream).device
    if input.device != device:
        raise RuntimeError(
            f"the Tensor is on {input.device} and the stream on "
            f"{device}; give a stream of the Tensor's device"
        )
    _C._stream_use(input, stream.cuda_stream)


@method()
def to_device(input: Tensor, device: Device, *, stream: Any = None) -> Tensor:
    """This Tensor if it is on device, else a copy there: to(device).

    stream has to be None, as the array API standard allows; a copy is queued on the
    current stream.

    >>> torch.ones(2).to_device('cpu')
    tensor([1., 1.])
    """
    if stream is not None:
        raise ValueError(
            f"stream is {stream!r}; omit it, and choose the stream with torch.cuda."
            "stream()"
        )
    return input.to(device)


# --- copies and pickles --------------------------------------------------------------


def _check_leaf(function: str, tensor: Tensor) -> None:
    if not tensor.is_leaf:
        raise RuntimeError(
            f"{function}: only Tensors created explicitly by the user (graph leaves) "
            "support it, and this one was computed; detach() it first"
        )


@method()
def __deepcopy__(self: Tensor, memo: dict[Any, Any]) -> Tensor:
    """A copy on the same device."""
    _check_leaf("copy.deepcopy()", self)
    if id(self) not in memo:
        copy = self.detach().clone()
        memo[id(self)] = copy.requires_grad_(self.requires_grad)
    return memo[id(self)]


@method()
def __reduce_ex__(self: Tensor, protocol: int) -> tuple[Any, ...]:
    """Support for pickle: elements, dtype, shape and device."""
    _check_leaf("pickle", self)
    # Bytes in row-major order, so that unpickling needs no NumPy.
    elements = self.detach().cpu().reshape(-1).view(_C.uint8)
    data = memoryview(elements).tobytes()
    given = (data, self.dtype, self.shape, self.device, self.requires_grad)
    return _C._rebuild_tensor, given


@function()
def _rebuild_tensor(
    data: Any, dtype: Dtype, size: Sizes, device: Device, requires_grad: bool = False
) -> Tensor:
    """A tensor from its pickle."""
    if not isinstance(data, bytes):
        raise TypeError(f"_rebuild_tensor(): data is {data!r}; give bytes")
    made = _C.empty(size, dtype=dtype, device="cpu")
    if len(data) != made.nbytes:
        raise ValueError(
            f"_rebuild_tensor(): {len(data)} bytes were given for a tensor of "
            f"{made.nbytes}; the pickle is damaged"
        )
    if data:
        memoryview(_C._storage_bytes(made))[:] = data
    return made.to(device).requires_grad_(requires_grad)


@method()
def __array__(self: Tensor, dtype: Any = None, copy: Any = None) -> Any:
    """Called by numpy.asarray: numpy(), converted to dtype."""
    array = self.numpy()
    if dtype is None or array.dtype == dtype:
        return array.copy() if copy else array
    if copy is False:
        raise ValueError(
            "numpy.asarray(copy=False): another dtype needs a copy; omit copy"
        )
    return array.astype(dtype)


# --- DLPack --------------------------------------------------------------------------


def _dlpack_device(function: str, device: Device) -> tuple[int, int]:
    """DLPack's device; virtual GPUs are named by their physical GPU."""
    if device.type == "cpu":
        return _CPU, 0
    facts = _C._device_properties(device)
    if facts["simulated"]:
        raise BufferError(
            f"{function}: the Tensor is on {device}, a simulated GPU, whose memory no "
            "other library can access; pass a copy made with .cpu()"
        )
    return _CUDA, facts["physical"]


def _find_device(function: str, kind: int, number: int) -> Device:
    """The device of a DLPack device; the current one if several share that GPU."""
    if kind in (_CPU, _CUDA_HOST):
        return _C.device("cpu")
    if kind != _CUDA:
        raise BufferError(
            f"{function}: DLPack's device type {kind} is neither a CPU (1) nor a CUDA "
            "GPU (2); copy the data to the CPU first"
        )
    count = _C._device_count("cuda")
    why = "the memory is on a GPU, and this program has none"
    for i in range(count):
        gpu = (_C._device_index(None) + i) % count
        facts = _C._device_properties(gpu)
        if facts["simulated"]:
            why = (
                "this program's GPUs are simulated, and cannot access a real GPU's "
                "memory"
            )
        elif facts["physical"] == number:
            return _C.device("cuda", gpu)
        else:
            why = "the memory is on a GPU that this program cannot see"
    raise BufferError(f"{function}: {why}; copy the data to the CPU first")


def _two_ints(value: Any) -> tuple[int, int] | None:
    """The ints of a pair; None where it is not one of ints."""
    if len(value) == 2 and all(hasattr(number, "__index__") for number in value):
        return index(value[0]), index(value[1])
    return None


def _pair(name: str, value: Any) -> tuple[int, int]:
    message = f"__dlpack__(): {name} is {value!r}; give a tuple of two ints"
    if not isinstance(value, (tuple, list)):
        raise TypeError(message)
    pair = _two_ints(value)
    if pair is None:
        raise RuntimeError(message)
    return pair


def _hand_over(stream: Any, device: Device) -> None:
    """Make the consumer's stream wait for the work queued on the tensor's stream."""
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int)):
        raise TypeError(
            f"__dlpack__(): stream is {stream!r}; give an int, the handle of a stream, "
            "or None"
        )
    if stream == -1 or (stream is None and device.type == "cpu"):
        return
    if device.type == "cpu":
        raise AssertionError(
            f"__dlpack__(): stream is {stream}, and the Tensor is on the CPU, which "
            "has no streams; omit it"
        )
    if stream is not None and stream <= 0:
        raise ValueError(
            f"__dlpack__(): stream is {stream}; give 1 for CUDA's default stream, -1 "
            "for none, or the handle of a stream"
        )
    before = current("__dlpack__", device)
    consumer = existing(device.index or 0, 0 if stream in (None, 1) else stream)
    if consumer != before:
        consumer.wait_stream(before)


@method()
def __dlpack__(
    self: Tensor,
    *,
    stream: Any = -1,
    max_version: Any = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule of the Tensor's memory, for another library's from_dlpack.

    stream is the consumer's on a GPU (a handle, 1 for CUDA's default stream, -1 for no
    synchronization); max_version (1, 0) or more gives a versioned capsule, which can be
    read-only; dl_device (1, 0) requests a copy on the CPU; copy=True always copies,
    False never. BufferError if the Tensor requires gradients or is on a simulated GPU.
    """
    versioned = max_version is not None and _pair("max_version", max_version)[0] >= 1
    if self.requires_grad:
        raise BufferError(
            "__dlpack__(): the Tensor requires gradients, and external writes to its "
            "memory are not differentiable; use .detach()"
        )
    target = self.device
    if dl_device is not None:
        target = _find_device("__dlpack__()", *_pair("dl_device", dl_device))
    place = _dlpack_device("__dlpack__()", target)
    moves = target != self.device
    if moves and copy is False:
        raise ValueError(
            f"__dlpack__(): the Tensor is on {self.device}, and {target} was requested "
            "with copy=False; omit copy"
        )
    copied = moves or bool(copy)
    shared = self.to(target, copy=True) if copied else self
    if _C._is_read_only(shared) and not versioned:
        raise BufferError(
            "__dlpack__(): the Tensor's memory is read-only, which capsules before "
            "version 1 cannot express; pass max_version=(1, 0), or use .clone()"
        )
    _hand_over(stream, target)
    return _C._to_capsule(shared, *place, versioned, copied)


@method()
def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    """The Tensor's DLPack device: (1, 0) is the CPU, (2, i) CUDA GPU i.

    BufferError on a simulated GPU.
    """
    return _dlpack_device("__dlpack_device__()", self.device)


@function()
def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of the tensor's memory: tensor.__dlpack__().

    >>> torch.from_dlpack(torch.to_dlpack(torch.tensor([1, 2])))
    tensor([1, 2])
    """
    return tensor.__dlpack__()


@function()
def from_dlpack(
    ext_tensor: Any, *, device: Device | None = None, copy: bool | None = None
) -> Tensor:
    """A Tensor that shares the memory of another library's array.

    ext_tensor has __dlpack__ and __dlpack_device__ (NumPy, PyTorch, CuPy, JAX), or is a
    capsule, which is consumed. device moves the data there; copy=True always copies,
    copy=False never (ValueError if a copy is needed). Read-only memory gives a
    read-only Tensor. BufferError for unsupported types, layouts and devices.

    >>> torch.from_dlpack(torch.tensor([1, 2]).numpy())
    tensor([1, 2])
    """
    if isinstance(ext_tensor, _C.Tensor):  # even on a simulated GPU
        if ext_tensor.requires_grad:
            raise BufferError(
                "from_dlpack(): the Tensor requires gradients, which would be lost; "
                "use .detach()"
            )
        return _fitted(ext_tensor.__copy__(), False, device, copy)
    if not hasattr(ext_tensor, "__dlpack__"):  # a capsule, or refused as none
        if device is not None or copy is not None:
            raise AssertionError(
                "from_dlpack(): device and copy do not apply to a capsule; give the "
                "object that made it, or use .to() and .clone() afterwards"
            )
        return _open(ext_tensor)[0]
    kind, number = _ask_device(ext_tensor)
    words: dict[str, Any] = {"max_version": (1, 0)}
    if copy is not None:
        words["copy"] = copy
    # Ask the producer for a CPU copy if we cannot access its device.
    if device and device.type == "cpu" and kind not in (_CPU, _CUDA_HOST):
        words["dl_device"] = (_CPU, 0)
        where = device
    else:
        where = _find_device("from_dlpack()", kind, number)
    stream = {}
    if where.type == "cuda":
        stream["stream"] = current("from_dlpack", where).cuda_stream or 1
    try:
        capsule = ext_tensor.__dlpack__(**stream, **words)
    except TypeError:  # from before version 1: accepts only stream
        capsule = ext_tensor.__dlpack__(**stream)
    return _fitted(*_open(capsule), device, copy)


def adopt(array: Any, function: str) -> Tensor:
    """A Tensor over another library's array, which has __dlpack__ or __array__."""
    try:
        return _adopted(array)
    except TypeError as error:
        _C._name_error(error, function)
        raise


def _adopted(array: Any) -> Tensor:
    if hasattr(array, "__dlpack_device__"):
        try:
            return _C.from_dlpack(array)
        except BufferError:  # its memory or type is for itself; its values may not be
            if not hasattr(array, "__array__"):
                raise
    return _C.as_tensor(numpy("an array of another library").asarray(array))


def _ask_device(array: Any) -> tuple[int, int]:
    given = array.__dlpack_device__()
    pair = _two_ints(given) if isinstance(given, tuple) else None
    if pair is None:
        raise TypeError(
            f"from_dlpack(): __dlpack_device__() of a {type(array).__name__} returned "
            f"{given!r}; it must return a tuple of two ints"
        )
    return pair


def _open(capsule: Any) -> tuple[Tensor, bool]:
    """A Tensor over the memory of a capsule, and whether it is a copy already."""
    kind, number, copied = _C._capsule_facts(capsule)
    device = _find_device("from_dlpack()", kind, number)
    return _C._from_capsule(capsule, device), copied


def _fitted(
    made: Tensor, copied: bool, device: Device | None, copy: bool | None
) -> Tensor:
    """The tensor, copied and moved by the arguments of from_dlpack()."""
    device = made.device if device is None else device
    moves = device != made.device
    if not moves and (copied or not copy):
        return made
    if copy is False:
        raise ValueError(
            f"from_dlpack(): the data are on {made.device}, and {device} was requested "
            "with copy=False; omit copy"
        )
    return made.to(device, copy=True)


def cuda_array_interface(tensor: Tensor) -> dict[str, Any]:
    """What Tensor.__cuda_array_interface__ is, in version 3."""
    if not tensor.is_cuda:
        raise AttributeError(
            "__cuda_array_interface__: the Tensor is on the CPU; copy it to a GPU with "
            ".cuda()"
        )
    if _C._device_properties(tensor.device)["simulated"]:
        raise AttributeError(
            "__cuda_array_interface__: the Tensor is on a simulated GPU, whose memory "
            "CUDA cannot see; copy it with .cpu() and use NumPy's interface"
        )
    if tensor.requires_grad:
        raise RuntimeError(
            "__cuda_array_interface__: the Tensor requires gradients, and external "
            "writes to its memory are not differentiable; use .detach()"
        )
    bytes_each = tensor.element_size()
    name = str(tensor.dtype).removeprefix("torch.")
    kind = "V" if name == "bfloat16" else name[0]
    strides = tuple(step * bytes_each for step in tensor.stride())
    return {
        "shape": tuple(tensor.shape),
        "typestr": f"{'|' if bytes_each == 1 else '<'}{kind}{bytes_each}",
        "strides": None if tensor.is_contiguous() else strides,
        "data": (tensor.data_ptr(), _C._is_read_only(tensor)),
        "stream": current("__cuda_array_interface__", tensor.device).cuda_stream or 1,
        "version": 3,
    }
