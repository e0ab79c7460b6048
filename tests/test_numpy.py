"""Memory shared with NumPy in both directions, and what is rejected."""

import gc
import operator
import weakref

import numpy as np
import pytest
from isolated import python

import pydevtensor as torch

TYPES = {
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.float32: np.float32,
    torch.float64: np.float64,
}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_types_go_both_ways(dtype):
    a = np.array([0, 1, 1], dtype=TYPES[dtype])
    x = torch.from_numpy(a)
    assert x.dtype is dtype and x.numpy().dtype == a.dtype
    assert torch.ones(2, dtype=dtype).numpy().dtype == a.dtype


def test_memory_is_shared():
    a = np.zeros((2, 3), dtype=np.float32)
    x = torch.from_numpy(a)
    a[0, 0] = 1
    x[1, 2] = 2
    assert x[0, 0].item() == 1 and a[1, 2] == 2
    y = torch.zeros(4)
    b = y.numpy()
    y.add_(1)
    b[0] = 9
    assert b.tolist() == [9, 1, 1, 1] and y[0].item() == 9
    assert np.shares_memory(y.numpy(), y[1:].numpy())


def test_layouts():
    a = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    for view in (a.T, a[:, ::2], a[1], a[..., 1], a[:0], a.transpose(1, 0, 2)):
        x = torch.from_numpy(view)
        assert x.tolist() == view.tolist()
        assert x.numpy().tolist() == view.tolist()
        assert np.shares_memory(x.numpy(), view) or not view.size
    assert torch.zeros(2, 3).t().numpy().flags.f_contiguous
    assert torch.tensor(3.5).numpy().shape == ()
    assert torch.ones(2, 1).expand(2, 3).numpy().tolist() == [[1] * 3] * 2


def test_each_keeps_the_memory_alive():
    a = np.ones(100_000)
    alive = weakref.ref(a)
    x = torch.from_numpy(a)[50:]
    del a
    gc.collect()
    assert alive() is not None and x.sum().item() == 99_950
    del x
    gc.collect()
    assert alive() is None
    b = torch.full((100_000,), 3.0).numpy()
    gc.collect()
    assert b.sum() == 300_000


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: np.arange(3)[::-1], ValueError),
        (lambda: np.array([1, 2], dtype=">i4"), (TypeError, ValueError)),
        (lambda: np.array([1j], dtype=np.clongdouble), TypeError),
        (lambda: np.array(["a"]), TypeError),
        (lambda: np.array([None]), TypeError),
        (lambda: np.array([1], dtype="M8[s]"), TypeError),
        (lambda: np.array([1], dtype=np.longdouble), TypeError),
        (lambda: [1, 2], TypeError),
        (lambda: 3, TypeError),
        (lambda: None, TypeError),
        (
            lambda: np.frombuffer(b"\0" * 17, dtype=np.uint8)[1:].view(np.float64),
            ValueError,
        ),
        (lambda: np.zeros((1,) * 20), (ValueError, RuntimeError)),
    ],
)
def test_what_is_not_shared(make, error):
    with pytest.raises(error, match=r"\w+ \w+"):
        torch.from_numpy(make())


def test_read_only_memory_is_not_written():
    a = np.ones(3)
    a.flags.writeable = False
    x = torch.from_numpy(a)
    assert (x + 1).tolist() == [2, 2, 2]
    for write in (lambda: x.add_(1), lambda: x.__setitem__(0, 5), lambda: x.zero_()):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert a.tolist() == [1, 1, 1]
    assert not x.numpy().flags.writeable


def test_a_gpu_tensor_is_copied_only_when_asked(gpu):
    x, a = torch.ones(2, device=gpu), np.ones(2)
    for call in (x.numpy, lambda: np.asarray(x), lambda: np.sin(x)):
        with pytest.raises(TypeError, match=r"\.cpu\(\)"):
            call()
    for meet in (lambda: x + a, lambda: a + x, lambda: x == a, lambda: a == x):
        with pytest.raises(RuntimeError, match=rf"two devices.*{gpu}"):
            meet()
    with pytest.raises(RuntimeError, match="two devices"):
        x += a
    assert (np.float32(2) * x).device == x.device
    assert x.cpu().numpy().tolist() == [1, 1] == x.numpy(force=True).tolist()


def test_numpy_functions_take_cpu_tensors():
    x = torch.arange(4.0)
    assert np.asarray(x).tolist() == [0, 1, 2, 3]
    assert np.asarray(x, dtype=np.int32).dtype == np.int32
    assert np.array(x) is not None and not np.shares_memory(np.array(x), x.numpy())
    assert isinstance(np.concatenate([x, x]), np.ndarray)
    for ufunc in (np.sqrt, np.add.reduce, np.add.accumulate):
        result = ufunc(x)
        assert isinstance(result, torch.Tensor) and result.dtype is torch.float32
        np.testing.assert_array_equal(result.numpy(), ufunc(x.numpy()))
    fraction, whole = np.modf(x / 2)
    assert fraction.tolist() == [0, 0.5, 0, 0.5] and whole.tolist() == [0, 0, 1, 1]
    with pytest.raises(RuntimeError, match="detach"):
        np.sin(torch.ones(2, requires_grad=True))


def test_numpy_functions_write_where_they_are_told():
    x, a = torch.zeros(3), np.arange(3.0)
    version = x._version
    assert np.exp(a * 0, out=x) is x and x.tolist() == [1, 1, 1]
    np.add.at(x, [0, 0], 5)
    assert x.tolist() == [11, 1, 1] and x._version == version + 2
    np.add.at(a, x.long() % 3, 0.5)
    assert a.tolist() == [0, 2, 2.5]
    assert np.add(x, a, out=a) is a and a.tolist() == [11, 3, 3.5]
    np.negative(x, out=x, where=np.array([True, False, False]))
    assert x.tolist() == [-11, 1, 1]


OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.pow, operator.matmul, operator.eq, operator.ne),
    *(operator.lt, operator.le, operator.gt, operator.ge),
]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("op", [*OPERATORS, *BITS], ids=lambda op: op.__name__)
@pytest.mark.parametrize(
    "dtypes", [("float32", "float64"), ("int32", "int64")], ids=str
)
def test_an_operator_of_a_tensor_and_an_array_is_one_of_tensors(op, dtypes):
    if op in BITS and dtypes[0] == "float32":
        dtypes = ("int32", "uint8")
    x = torch.tensor([3, 1, 2], dtype=getattr(torch, dtypes[0]))
    a = np.array([1, 2, 2], dtype=dtypes[1])
    y = torch.from_numpy(a)
    if op is operator.matmul:
        x = x.to(y.dtype)
    for result, expected in ((op(x, a), op(x, y)), (op(a, x), op(y, x))):
        assert isinstance(result, torch.Tensor) and result.dtype is expected.dtype
        assert torch.equal(result, expected)


def test_a_product_with_an_array_takes_the_common_type():
    product = torch.ones(2, 3) @ np.ones((3, 2))
    assert product.dtype is torch.float64 and product.tolist() == [[3, 3], [3, 3]]


def test_operators_with_arrays_record_gradients():
    x = torch.ones(3, requires_grad=True)
    (np.arange(3.0) * x + x * np.ones(3, np.float32)).sum().backward()
    assert x.grad.tolist() == [1, 2, 3]


def test_numbers_of_numpy_are_numbers():
    x = torch.arange(3)
    for result in (np.float64(2) * x, x * np.float64(2), np.float32(2) * x):
        assert result.dtype is torch.float32 and result.tolist() == [0, 2, 4]
    assert (np.float64(1) == x).tolist() == [False, True, False]


def test_in_place_stays_in_place():
    x, a = torch.ones(3), np.arange(3.0)
    y, b = x, a
    x += a
    assert x is y and y.tolist() == [1, 2, 3] and y.dtype is torch.float32
    x **= np.array(2)
    assert x is y and y.tolist() == [1, 4, 9]
    a -= x
    assert a is b and b.tolist() == [-1, -3, -7]
    with pytest.raises(TypeError):
        x += "text"


def test_another_librarys_operand_decides():
    class Other:
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            return ufunc.__name__

    assert np.add(torch.ones(2), Other()) == "add"


def test_text_is_no_operand():
    with pytest.raises(TypeError, match="no tensor type"):
        _ = torch.ones(2) == np.array(["a", "b"])


class WithArray:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class WithDLPack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **words):
        return self.array.__dlpack__(**words)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("foreign", [WithArray, WithDLPack])
@pytest.mark.parametrize("dtype", [torch.int16, torch.float64, torch.float32], ids=str)
def test_another_librarys_array_keeps_its_type(foreign, dtype):
    a = np.array([[1, 2], [3, 4]], dtype=TYPES[dtype])
    copied, shared = torch.tensor(foreign(a)), torch.as_tensor(foreign(a))
    a[0, 0] = 9
    assert copied.tolist() == [[1, 2], [3, 4]] and shared.tolist() == [[9, 2], [3, 4]]
    assert copied.dtype is shared.dtype is dtype
    assert torch.as_tensor(foreign(a), dtype=torch.int64).dtype is torch.int64


def test_what_another_library_raises_is_passed_on():
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        torch.tensor(Broken())
    with pytest.raises(TypeError, match="no tensor type"):
        torch.as_tensor(WithArray(np.array(["a"])))


def test_without_numpy_the_rest_works():
    printed = python(
        """
import sys
sys.modules["numpy"] = None
import pydevtensor as torch
x = torch.ones(3)
print((x + 1).tolist(), x)
try:
    x.numpy()
except ImportError as error:
    print(error)
"""
    )
    first, second = printed.strip().splitlines()
    assert first == "[2.0, 2.0, 2.0] tensor([1., 1., 1.])"
    assert "NumPy" in second and "pip install numpy" in second
