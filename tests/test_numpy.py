"""Memory shared with NumPy in both directions, and what is rejected."""

import gc
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
        (lambda: np.array([1j]), TypeError),
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
    x = torch.ones(2, device=gpu)
    for call in (x.numpy, lambda: np.asarray(x), lambda: np.add(x, 1)):
        with pytest.raises(TypeError, match=r"\.cpu\(\)"):
            call()
    assert x.cpu().numpy().tolist() == [1, 1] == x.numpy(force=True).tolist()


def test_numpy_functions_take_cpu_tensors():
    x = torch.arange(4.0)
    assert np.asarray(x).tolist() == [0, 1, 2, 3]
    assert np.asarray(x, dtype=np.int32).dtype == np.int32
    assert np.sqrt(x).tolist() == np.sqrt(np.arange(4.0, dtype=np.float32)).tolist()
    assert np.array(x) is not None and not np.shares_memory(np.array(x), x.numpy())
    assert (np.float64(2) * x).tolist() == [0, 2, 4, 6]
    with pytest.raises(TypeError):
        np.ones(4) * x


def test_tensors_and_arrays_in_one_expression():
    x, a = torch.ones(3), np.arange(3.0, dtype=np.float32)
    assert (x + torch.from_numpy(a)).tolist() == [1, 2, 3]
    assert torch.tensor(a).tolist() == torch.from_numpy(a).tolist()


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
