"""Elements folded where an index says, sampled functions and the parts of numbers, beyond what
the golden files hold."""

import math

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

WAYS = {
    "sum": np.add,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}
KEPT = {"sum": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def expected(x, dim, index, src, way, include_self):
    """By NumPy's ufunc.at, one element after the other."""
    touched = np.zeros(x.shape, dtype=bool)
    where = list(np.indices(index.shape))
    where[dim] = index
    where = tuple(where)
    touched[where] = True
    name = "sum" if way == "mean" else way
    whole = x.copy()
    if not include_self:
        whole[touched] = KEPT[name]
    part = src[tuple(slice(n) for n in index.shape)]
    WAYS[name].at(whole, where, part)
    if way == "mean":
        counts = np.full(x.shape, int(include_self))
        np.add.at(counts, where, 1)
        whole /= np.maximum(counts, 1)
    return whole


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("way", [*WAYS, "mean"])
def test_scatter_reduce_is_that_of_numpy(way, include_self, device):
    x, src = numbers(1, 5, 7, 3), numbers(2, 40, 6, 3)
    index = np.random.default_rng(3).integers(0, 5, size=(37, 6, 2))
    wanted = expected(x, 0, index, src, way, include_self)
    found = torch.scatter_reduce(
        torch.tensor(x, device=device),
        0,
        torch.tensor(index, device=device),
        torch.tensor(src, device=device),
        way,
        include_self=include_self,
    )
    np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-12)
    chosen = index[:, 0, 0]
    source = numbers(4, 37, 7, 3)
    if way == "sum":
        return
    wide = np.broadcast_to(chosen[:, None, None], source.shape)
    wanted = expected(x, 0, wide, source, way, include_self)
    found = torch.tensor(x, device=device).index_reduce_(
        0,
        torch.tensor(chosen, device=device),
        torch.tensor(source, device=device),
        way,
        include_self=include_self,
    )
    np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("way", [*WAYS, "mean"])
def test_gradients_of_folds(way, include_self, device):
    x = torch.tensor(numbers(5, 3, 2), device=device)
    y = torch.tensor(numbers(6, 4, 2), device=device)
    if way == "prod":
        y[1] = 0  # where a quotient would not do
    x.requires_grad_()
    y.requires_grad_()
    index = torch.tensor([[0, 1], [0, 1], [2, 1], [0, 2]], device=device)

    def function(a, b):
        return a.scatter_reduce(0, index, b, way, include_self=include_self)

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
    for way in ("sum", "prod", "amax"):
        with pytest.raises((RuntimeError, IndexError)):
            found = x.scatter_reduce(0, index, x[:1], way)
            found.sum().item()
    for place in (6, -7, 99, -99):
        with pytest.raises((RuntimeError, IndexError)):
            found = torch.zeros(2, 3, device=device).put_(
                torch.tensor([place], device=device), torch.ones(1, device=device)
            )
            found.sum().item()
    assert (x + 1).tolist() == [1, 1, 1]


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_is_that_of_numpy(edge_order, device):
    f = numbers(7, 5, 6)
    places = [np.cumsum(np.abs(numbers(k, n)) + 0.1) for k, n in ((8, 5), (9, 6))]
    x = torch.tensor(f, device=device)
    for spacing in ([2.0, 0.5], places):
        wanted = np.gradient(f, *spacing, edge_order=edge_order)
        ours = [
            torch.tensor(s, device=device) if isinstance(s, np.ndarray) else s
            for s in spacing
        ]
        found = torch.gradient(x, spacing=ours, edge_order=edge_order)
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine.cpu().numpy(), theirs, rtol=1e-10)


def test_histogram_is_that_of_numpy(device):
    x, weight = numbers(10, 200), np.abs(numbers(11, 200))
    given = torch.tensor(x, device=device)
    for bins, limits in (
        (7, None),
        (5, (-1.0, 0.75)),
        (np.array([-1, 0, 0.1, 2]), None),
    ):
        for density in (False, True):
            wanted, edges = np.histogram(
                x, bins, range=limits, weights=weight, density=density
            )
            ours = torch.tensor(bins, device=device) if limits is None else bins
            ours = bins if isinstance(bins, int) else ours
            found = given.histogram(
                ours,
                range=limits,
                weight=torch.tensor(weight, device=device),
                density=density,
            )
            np.testing.assert_allclose(found.bin_edges.cpu().numpy(), edges, rtol=1e-12)
            np.testing.assert_allclose(found.hist.cpu().numpy(), wanted, rtol=1e-10)


def test_windows_are_those_of_numpy(device):
    words = {"dtype": torch.float64, "device": device}
    for n in (2, 5, 8):
        for name in ("bartlett", "blackman", "hamming"):
            found = getattr(torch, f"{name}_window")(n, False, **words)
            wanted = getattr(np, name)(n)
            np.testing.assert_allclose(found.cpu().numpy(), wanted, atol=1e-15)
        found = torch.hann_window(n, False, **words)
        np.testing.assert_allclose(found.cpu().numpy(), np.hanning(n), atol=1e-15)
        for beta in (0.0, 3.0, 12.0, 60.0):
            found = torch.kaiser_window(n, False, beta, **words)
            wanted = np.kaiser(n, beta)
            np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-12)
    assert torch.hann_window(8, device=device).device == torch.device(device)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_parts_of_floats_are_those_of_numpy(name, device):
    information = np.finfo(name)
    values = np.concatenate(
        [numbers(12, 100).astype(name) * np.exp(30 * numbers(13, 100)).astype(name)]
        + [np.array([0, -0.0, information.tiny, information.max, 1, -1], dtype=name)]
        + [
            np.array(
                [information.tiny / 8, -information.smallest_subnormal], dtype=name
            )
        ]
    )
    x = torch.tensor(values, device=device)
    mantissa, exponent = torch.frexp(x)
    wanted = np.frexp(values)
    assert mantissa.tolist() == wanted[0].tolist()
    assert exponent.tolist() == wanted[1].tolist()
    other = torch.tensor(values[::-1].copy(), device=device)
    assert x.nextafter(other).tolist() == np.nextafter(values, values[::-1]).tolist()
    assert exponent.dtype == torch.int32


def test_gradients_of_parts_of_floats(device):
    x = torch.tensor([0.3, -5.0, 100.0], dtype=torch.float64, device=device)
    x.requires_grad_()
    powers = torch.tensor([2, -3, 0], device=device)
    assert gradcheck(lambda a: torch.ldexp(a, powers), (x,))
    assert gradcheck(lambda a: torch.frexp(a).mantissa, (x,))
    assert gradcheck(lambda a: torch.erfinv(a / 200), (x,))
    assert gradgradcheck(lambda a: torch.erfinv(a / 200), (x,))
    y = torch.tensor(numbers(14, 3, 4), device=device).requires_grad_()
    assert gradcheck(lambda a: a.renorm(3, 1, 1.2), (y,))
    assert gradcheck(lambda a: torch.gradient(a, edge_order=2), (y,))
    assert gradcheck(lambda a: torch.cumulative_trapezoid(a, dim=0), (y,))


def test_erfinv_is_the_inverse(device):
    y = torch.tensor(np.linspace(-5, 5, 401), device=device)
    found = torch.erf(y).erfinv()
    near = y.abs() < 2
    assert (found - y)[near].abs().max().item() < 1e-14
    for value in (1e-300, 1e-10, 0.0999, 0.1001, 0.5):
        x = torch.tensor(value, dtype=torch.float64, device=device).erfinv().item()
        assert math.erf(x) == pytest.approx(value, rel=4e-16)


def test_random_numbers_of_other_distributions(device):
    generator = torch.Generator(device).manual_seed(5)
    n = 20000
    x = torch.empty(n, device=device).geometric_(0.25, generator=generator)
    assert x.min().item() == 1 and abs(x.mean().item() - 4) < 0.15
    y = torch.empty(n, device=device).cauchy_(2, 3, generator=generator)
    quartiles = y.quantile(torch.tensor([0.25, 0.5, 0.75], device=device)).tolist()
    assert quartiles == pytest.approx([-1, 2, 5], abs=0.25)
    z = torch.empty(n, device=device).log_normal_(0.5, 0.25, generator=generator).log()
    assert abs(z.mean().item() - 0.5) < 0.01 and abs(z.std().item() - 0.25) < 0.01
    again = torch.Generator(device).manual_seed(5)
    assert torch.equal(
        x, torch.empty(n, device=device).geometric_(0.25, generator=again)
    )
