"""Subscripts that make views, read and written, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pydevtensor as torch

SHAPE = (3, 4, 5)


def items(size):
    """What may stand for a dimension of that size, with steps that make views."""
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = st.none() | st.integers(1, size + 1)
    return st.integers(-size, size - 1) | st.builds(slice, bound, bound, step)


@st.composite
def keys(draw):
    """A legal subscript of an array of SHAPE."""
    count = draw(st.integers(0, len(SHAPE)))
    skipped = draw(st.booleans())
    first = draw(st.integers(0, count)) if skipped else count
    parts = [draw(items(SHAPE[i])) for i in range(first)]
    if skipped:
        parts.append(Ellipsis)
        parts += [draw(items(SHAPE[i - count])) for i in range(first, count)]
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


def array():
    return np.arange(60, dtype=np.float32).reshape(SHAPE)


@given(keys())
def test_read(key):
    x, a = torch.from_numpy(array()), array()
    found, expected = x[key], a[key]
    assert tuple(found.shape) == expected.shape
    assert found.tolist() == expected.tolist()
    if expected.size:  # a view shares memory
        assert found.data_ptr() - x.data_ptr() == (int(expected.flat[0])) * 4


@given(keys(), st.booleans())
def test_write(key, transposed):
    a = array()
    x = torch.from_numpy(a.copy())
    if transposed:
        a, x, key = a.T, x.T, (Ellipsis,) if isinstance(key, tuple) else Ellipsis
    a[key] = -1.0
    x[key] = -1.0
    assert x.tolist() == a.tolist()
    part = a[key]
    value = np.arange(0, 2 * part.size, 2, dtype=np.float32).reshape(part.shape)
    a[key] = value
    x[key] = torch.from_numpy(value.copy())
    assert x.tolist() == a.tolist()


def test_on_every_device(device):
    a = array()
    x = torch.tensor(a, device=device)
    for key in (
        0,
        -1,
        (1, 2),
        (slice(None), 2),
        (..., 0),
        (None, 1),
        slice(1, 3),
        (0, ..., 1),
    ):
        assert x[key].tolist() == a[key].tolist()
        x[key] = 7
        a[key] = 7
        assert x.tolist() == a.tolist()
    x[1:, ::2] = torch.ones(1, 5, device=device)
    a[1:, ::2] = 1
    assert x.tolist() == a.tolist()


def test_values_convert_and_cross_devices(gpu):
    x = torch.zeros(3, device=gpu)
    x[1:] = torch.tensor([1, 2])  # integers, from the CPU
    assert x.tolist() == [0, 1, 2]
    y = torch.zeros(3)
    y[:] = x
    assert y.tolist() == [0, 1, 2]


def test_overlapping_assignment(device):
    x = torch.arange(6, device=device)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    y = torch.arange(9, device=device).reshape(3, 3)
    y[:] = y.t()
    assert y.tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_indices_of_many_kinds():
    x = torch.arange(12).reshape(3, 4)
    two = torch.tensor(2)
    assert x[two].tolist() == x[2].tolist() and x[np.int64(1), two].item() == 6
    assert x[torch.tensor(1, dtype=torch.uint8) : two].shape == (1, 4)

    class Index:
        def __index__(self):
            return 1

    assert x[Index()].tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (3, IndexError),
        (-4, IndexError),
        ((0, 4), IndexError),
        ((0, 0, 0), IndexError),
        ("a", TypeError),
        (1.5, IndexError),
        (slice(None, None, -1), ValueError),
        (slice(None, None, 0), ValueError),
        (slice("a"), TypeError),
        (2**70, (IndexError, OverflowError)),
    ],
)
def test_wrong_indices(key, error, device):
    x = torch.zeros(3, 4, device=device)
    with pytest.raises(error):
        x[key]
    with pytest.raises(error):
        x[key] = 1
    assert x.tolist() == [[0] * 4] * 3


def test_wrong_values(device):
    x = torch.zeros(3, 4, device=device)
    for key, value, error in (
        (0, torch.ones(3, device=device), RuntimeError),
        (slice(None), "a", TypeError),
        (0, None, TypeError),
        (0, [1, 2], TypeError),
    ):
        with pytest.raises(error):
            x[key] = value
    with pytest.raises(TypeError):
        del x[0]
    with pytest.raises(IndexError):
        torch.tensor(1.0, device=device)[0]
    assert x.tolist() == [[0] * 4] * 3
