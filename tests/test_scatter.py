"""scatter_reduce, index_reduce, put and the *_scatter functions, beyond the golden files."""

import math

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

REDUCTIONS = {
    "sum": np.add,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}


KEPT = {"sum": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def matrix(device, *shape):
    n = math.prod(shape)
    values = torch.arange(n, dtype=torch.float64, device=device) * 0.75 - 2
    return values.reshape(shape).requires_grad_()


def expected(x, dim, index, src, reduce, include_self):
    """By NumPy's ufunc.at, one element after the other."""
    touched = np.zeros(x.shape, dtype=bool)
    where = list(np.indices(index.shape))
    where[dim] = index
    where = tuple(where)
    touched[where] = True
    name = "sum" if reduce == "mean" else reduce
    whole = x.copy()
    if not include_self:
        whole[touched] = KEPT[name]
    part = src[tuple(slice(n) for n in index.shape)]
    REDUCTIONS[name].at(whole, where, part)
    if reduce == "mean":
        counts = np.full(x.shape, int(include_self))
        np.add.at(counts, where, 1)
        whole /= np.maximum(counts, 1)
    return whole


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", [*REDUCTIONS, "mean"])
def test_scatter_reduce_is_that_of_numpy(reduce, include_self, device):
    x, src = numbers(1, 5, 7, 3), numbers(2, 40, 6, 3)
    index = np.random.default_rng(3).integers(0, 5, size=(37, 6, 2))
    wanted = expected(x, 0, index, src, reduce, include_self)
    found = torch.scatter_reduce(
        torch.tensor(x, device=device),
        0,
        torch.tensor(index, device=device),
        torch.tensor(src, device=device),
        reduce,
        include_self=include_self,
    )
    np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-12)
    chosen = index[:, 0, 0]
    source = numbers(4, 37, 7, 3)
    if reduce == "sum":
        return
    wide = np.broadcast_to(chosen[:, None, None], source.shape)
    wanted = expected(x, 0, wide, source, reduce, include_self)
    found = torch.tensor(x, device=device).index_reduce_(
        0,
        torch.tensor(chosen, device=device),
        torch.tensor(source, device=device),
        reduce,
        include_self=include_self,
    )
    np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", [*REDUCTIONS, "mean"])
def test_gradients_of_scatter_reduce(reduce, include_self, device):
    x = torch.tensor(numbers(5, 3, 2), device=device)
    y = torch.tensor(numbers(6, 4, 2), device=device)
    if reduce == "prod":
        y[1] = 0  # where a quotient would not do
    x.requires_grad_()
    y.requires_grad_()
    index = torch.tensor([[0, 1], [0, 1], [2, 1], [0, 2]], device=device)

    def function(a, b):
        return a.scatter_reduce(0, index, b, reduce, include_self=include_self)

    assert gradcheck(function, (x, y))
    assert gradgradcheck(lambda a, b: function(a, b) ** 2, (x, y))


def test_equal_extremes_share_the_gradient(device):
    x = torch.zeros(2, device=device, requires_grad=True)
    y = torch.zeros(3, device=device, requires_grad=True)
    index = torch.tensor([0, 0, 0], device=device)
    x.scatter_reduce(0, index, y, "amax").sum().backward()
    assert x.grad.tolist() == [0.25, 1]
    assert y.grad.tolist() == [0.25] * 3
    x.grad = y.grad = None
    x.scatter_reduce(0, index, y, "amax", include_self=False).sum().backward()
    assert x.grad.tolist() == [0, 1]
    assert y.grad.tolist() == pytest.approx([1 / 3] * 3)


def test_places_beyond_the_end(device):
    x = torch.zeros(3, device=device)
    index = torch.tensor([5], device=device)
    for reduce in ("sum", "prod", "amax"):
        with pytest.raises((RuntimeError, IndexError)):
            found = x.scatter_reduce(0, index, x[:1], reduce)
            found.sum().item()
    for place in (6, -7, 99, -99):
        with pytest.raises((RuntimeError, IndexError)):
            found = torch.zeros(2, 3, device=device).put_(
                torch.tensor([place], device=device), torch.ones(1, device=device)
            )
            found.sum().item()
    assert (x + 1).tolist() == [1, 1, 1]


REPLACED = {
    "slice": (lambda x, y: x.slice_scatter(y, 1, 0, 3, 2), (3, 4), (3, 2)),
    "select": (lambda x, y: x.select_scatter(y, 0, -1), (3, 4), (4,)),
    "diagonal": (lambda x, y: x.diagonal_scatter(y, 1), (3, 4), (3,)),
    "strided": (
        lambda x, y: x.as_strided_scatter(y, (2, 2), (5, 2), 1),
        (3, 4),
        (2, 2),
    ),
}


@pytest.mark.parametrize("name", REPLACED)
def test_gradients_of_scatters(name, device):
    """Of as_strided_scatter PyTorch 2.13 gives input the gradient of what was replaced."""
    function, shape, part = REPLACED[name]
    inputs = matrix(device, *shape), matrix(device, *part)
    assert gradcheck(function, inputs)
    assert gradgradcheck(lambda x, y: function(x, y) ** 2, inputs)


def test_a_strided_part_of_a_view(device):
    whole = torch.arange(12.0, device=device).reshape(3, 4)
    copy = whole[1:, 1:].as_strided_scatter(
        torch.ones(2, device=device) * 9, (2,), (5,), 6
    )
    assert copy.tolist() == [[5, 9, 7], [9, 10, 9]]
    assert whole.flatten().tolist() == list(range(12))


@pytest.mark.parametrize("name", ["float32", "int8", "uint8", "int64"])
def test_extremes_of_the_whole_range(name, device):
    random = np.random.default_rng(7)
    if name == "float32":
        src = random.choice(np.float32([np.nan, np.inf, -np.inf, 0, -1.5, 3e38]), 300)
        src[:200] = numbers(8, 200)
    else:
        limits = np.iinfo(name)
        src = random.integers(limits.min, limits.max, 300, name, endpoint=True)
        src[::9] = limits.min
        src[::11] = limits.max
    index = random.integers(0, 40, 300)
    x = np.zeros(60, name)
    for reduce in ("amax", "amin"):
        for include_self in (True, False):
            wanted = x.copy()
            if not include_self:
                wanted[index] = src
            with np.errstate(invalid="ignore"):
                REDUCTIONS[reduce].at(wanted, index, src)
            found = torch.tensor(x, device=device).scatter_reduce(
                0,
                torch.tensor(index, device=device),
                torch.tensor(src, device=device),
                reduce,
                include_self=include_self,
            )
            np.testing.assert_array_equal(found.cpu().numpy(), wanted)


@pytest.mark.parametrize("rows", [1, 3])
def test_long_rows(rows, device):
    """Threads share what is read, and the search for wrong indices."""
    n = 100_003
    rng = np.random.default_rng(3)
    table, values = rng.random((rows, 50)), rng.integers(0, 9, (rows, n)).astype("d")
    at = rng.integers(0, 50, (rows, n))
    sums = np.stack([np.bincount(*each, 50) for each in zip(at, values, strict=True)])
    x = torch.tensor(table, device=device)
    index = torch.tensor(at, device=device)
    each = torch.tensor(values, device=device)
    picked = x.gather(1, index).cpu().numpy()
    assert np.array_equal(picked, np.take_along_axis(table, at, 1))
    every_other = x.T.contiguous().T.gather(1, index[:, ::2]).cpu().numpy()
    assert np.array_equal(every_other, picked[:, ::2])
    added = torch.zeros_like(x).scatter_add_(1, index, each).cpu().numpy()
    assert np.array_equal(added, sums)
    wrong = torch.tensor(at)
    wrong[-1, 40_000], wrong[-1, 90_000] = 50, -1
    with pytest.raises(RuntimeError, match="index 50 is out of range for dimension 1"):
        torch.tensor(table).gather(1, wrong)
