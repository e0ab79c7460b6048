"""Variances, quantiles and counts."""

import math

import numpy as np
import pytest
from conftest import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch

nan, inf = math.nan, math.inf


def leaf(*shape, device="cpu", seed=0):
    numbers = np.random.default_rng(seed).normal(size=shape)
    return torch.tensor(numbers, device=device, requires_grad=True)


def check(function, *inputs):
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


def close(made, wanted, rtol=1e-6, atol=1e-7):
    np.testing.assert_allclose(
        np.array(made.tolist()), np.array(wanted), rtol=rtol, atol=atol
    )


# --- variances


@st.composite
def reductions(draw):
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    dims = draw(st.sets(st.integers(0, len(shape) - 1)))
    return shape, tuple(dims) or None


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=80, deadline=None)
@given(case=reductions(), turned=st.booleans(), keepdim=st.booleans())
def test_variances_like_numpy(where, case, turned, keepdim):
    shape, dims = case
    data = np.random.default_rng(len(shape)).normal(3, 2, size=shape)
    x = torch.tensor(data, device=where)
    if turned:
        x, data = x.T, data.T
    for root, ours, both in (
        (False, torch.var, torch.var_mean),
        (True, torch.std, torch.std_mean),
    ):
        wanted = (np.std if root else np.var)(data, dims, keepdims=keepdim)
        made = ours(x, dims, correction=0, keepdim=keepdim)
        np.testing.assert_allclose(made.cpu().numpy(), wanted, rtol=1e-12, atol=1e-14)
        spread, mean = both(x, dims, correction=0, keepdim=keepdim)
        np.testing.assert_allclose(spread.cpu().numpy(), wanted, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(
            mean.cpu().numpy(),
            data.mean(dims, keepdims=keepdim),
            rtol=1e-12,
            atol=1e-14,
        )


@pytest.mark.parametrize("dim", [None, 0, 1, 2, (0, 2)])
def test_large_variances(device, dim):
    data = np.random.default_rng(5).normal(2, 3, size=(300, 70, 30)).astype(np.float32)
    made = torch.tensor(data, device=device).var(dim)
    wanted = data.astype(np.float64).var(dim, ddof=1)
    np.testing.assert_allclose(made.cpu().numpy(), wanted, rtol=1e-5)
    flipped = torch.tensor(data, device=device).permute(2, 0, 1).std((0, 2))
    np.testing.assert_allclose(
        flipped.cpu().numpy(), data.astype(np.float64).std((1, 2), ddof=1), rtol=1e-5
    )


@pytest.mark.parametrize("side", [2, 3, 7, 15, 16, 17, 40])
def test_variances_over_batch_and_pixels(device, side):
    """Rows shorter than a block's threads, as long, and longer."""
    x = np.random.default_rng(side).random((23, 3, side, side), np.float32)
    x += np.arange(23, dtype=np.float32)[:, None, None, None]
    t = torch.from_numpy(x).to(device)
    for part in (slice(None), slice(1, None), slice(None, None, 2)):
        expected = x[part, :, part].var((0, 2, 3), ddof=0)
        found = t[part, :, part].var((0, 2, 3), correction=0).cpu()
        assert np.allclose(found.numpy(), expected, rtol=1e-5)


def test_a_mean_far_from_0_costs_no_accuracy(device):
    noise = np.random.default_rng(6).normal(size=(4, 50_000))
    data = (noise + 1e4).astype(np.float32)
    wanted = data.astype(np.float64).var(1, ddof=1)
    x = torch.tensor(data, device=device)
    np.testing.assert_allclose(x.var(1).cpu().numpy(), wanted, rtol=1e-3)
    np.testing.assert_allclose(x.T.contiguous().var(0).cpu().numpy(), wanted, rtol=1e-3)


def test_corrections(device):
    x = torch.tensor([1.0, 2, 4], device=device)
    close(x.var(), 7 / 3)
    close(x.var(False), 14 / 9)
    close(x.var(unbiased=False), 14 / 9)
    close(x.var(0, False), 14 / 9)
    close(x.var(0, False, True), [14 / 9])
    close(x.var(0, keepdim=True), [7 / 3])
    close(x.std(axis=0, correction=2), math.sqrt(14 / 3))
    close(x.var(correction=None), 7 / 3)
    close(torch.tensor([1.0, 2], device=device).var(correction=1.5), 1)
    assert torch.tensor([1.0, 2], device=device).var(correction=3).item() == inf
    close(torch.var_mean(x, False)[0], 14 / 9)
    close(torch.std_mean(x, unbiased=False)[1], 7 / 3)
    with pytest.raises(TypeError):
        x.var(0, unbiased=True, correction=1)


def test_too_few_elements(device):
    one = torch.tensor([1.0], device=device)
    assert math.isnan(one.var().item())
    assert math.isnan(torch.tensor(3.0, device=device).var(0).item())
    assert math.isnan(torch.zeros(0, device=device).std().item())
    assert all(map(math.isnan, torch.zeros(0, 3, device=device).var(0).tolist()))
    assert torch.zeros(3, 0, device=device).var(0).shape == (0,)
    assert math.isnan(torch.tensor([1, inf], device=device).var().item())
    assert math.isnan(torch.tensor([1, nan], device=device).std().item())


@pytest.mark.parametrize("n", [2, 33, 70_000])
def test_variances_that_are_small_beside_their_mean(n, device):
    rng = np.random.default_rng(5)
    numbers = rng.random(n).astype(np.float32)
    far = (numbers + 4e4).astype(np.float32)
    led = np.r_[np.float32(3e4), numbers]
    same = np.full(n, np.float32(0.1))
    for x in (far, led, np.r_[led, far]):
        for axis in (None, 0):
            v, mean = torch.var_mean(torch.tensor(x, device=device), axis)
            exact = x.astype(np.float64)
            assert v.item() == pytest.approx(exact.var(ddof=1), rel=1e-5)
            assert mean.item() == pytest.approx(exact.mean(), rel=1e-6)
    assert torch.tensor(same, device=device).var().item() == 0


def test_bad_variances(device):
    x = torch.ones(2, 3, device=device)
    with pytest.raises(RuntimeError, match="floating"):
        torch.tensor([1, 2], device=device).var()
    with pytest.raises(IndexError):
        x.var(2)
    with pytest.raises(RuntimeError, match="twice"):
        x.var((0, 0))
    with pytest.raises(TypeError):
        torch.std(5)


def test_outputs_of_variances(device):
    x = torch.tensor([1.0, 2, 4], device=device)
    out = torch.empty(0, device=device)
    assert torch.var(x, 0, unbiased=True, out=out) is out
    close(out, 7 / 3)
    assert torch.std(x, 0, out=out) is out


@pytest.mark.parametrize("dim", [None, 0, (0, 1)])
def test_gradients_of_variances(device, dim):
    check(lambda x: x.var(dim), leaf(3, 4, device=device))
    check(lambda x: x.std(dim, correction=0), leaf(3, 4, device=device))
    check(lambda x: torch.var_mean(x, dim), leaf(3, 4, device=device))
    check(lambda x: torch.std_mean(x, dim, keepdim=True), leaf(3, 4, device=device))


def test_names_and_gradients_at_rest(device):
    x = torch.tensor([1.0, 1, 1], device=device, requires_grad=True)
    y = x.std()
    assert "StdBackward0" in repr(y.grad_fn)
    y.backward()
    assert x.grad.tolist() == [0, 0, 0]
    z = torch.var_mean(x)
    assert "VarMeanBackward0" in repr(z[1].grad_fn)
    z[1].backward()
    close(x.grad, [1 / 3] * 3)


# --- counts


def test_count_nonzero(device):
    x = torch.tensor([[0.0, 1], [2, nan]], device=device)
    assert torch.count_nonzero(x).item() == 3
    assert x.count_nonzero(0).tolist() == [1, 2]
    assert x.count_nonzero(dim=(0, 1)).item() == 3
    assert (
        torch.tensor([True, False], device=device).count_nonzero().dtype is torch.int64
    )


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=40, deadline=None)
@given(
    data=st.lists(st.integers(0, 9), max_size=30),
    minlength=st.integers(0, 12),
    dtype=st.sampled_from([np.uint8, np.int32, np.int64]),
)
def test_bincount_like_numpy(where, data, minlength, dtype):
    x = np.array(data, dtype)
    t = torch.tensor(x, device=where)
    wanted = np.bincount(x, minlength=minlength)
    assert np.array_equal(t.bincount(minlength=minlength).cpu().numpy(), wanted)
    weights = (np.arange(len(data)) / 4).astype(np.float32)
    made = torch.bincount(t, torch.tensor(weights, device=where), minlength)
    assert made.dtype is torch.float32
    close(made, np.bincount(x, weights, minlength))


def test_bad_bincounts(device):
    x = torch.tensor([1, 2, 2], device=device)
    assert x.bincount(torch.tensor([1, 1, 2], device=device)).dtype is torch.float64
    with pytest.raises(RuntimeError, match="-1"):
        torch.tensor([1, -1], device=device).bincount()
    with pytest.raises(RuntimeError, match="minlength"):
        x.bincount(minlength=-1)
    with pytest.raises(RuntimeError, match="weight"):
        x.bincount(x[:2])
    with pytest.raises(RuntimeError, match="dimensions"):
        x.reshape(1, 3).bincount()
    with pytest.raises(NotImplementedError):
        x.float().bincount()


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 99), bins=st.integers(1, 12), limits=st.booleans())
def test_histc_like_numpy(where, seed, bins, limits):
    # Quarters, and edges at eighths: no element is on an edge but for the last.
    x = np.random.default_rng(seed).integers(-8, 8, size=50) / 4
    low, high = (-1.125, 1.125) if limits else (x.min(), x.max())
    if not limits:
        bins = 1
    t = torch.tensor(x, device=where)
    made = t.histc(bins, low, high) if limits else t.histc(bins)
    width = (high - low) / bins
    if limits and np.any(np.isclose((x - low) / width % 1, 0)):
        return
    wanted, _ = np.histogram(x, bins, (low, high))
    assert made.tolist() == wanted.tolist()


def test_histc_as_pytorch(device):
    x = torch.tensor([1.0, 2, 3, 4], device=device)
    assert x.histc(4).tolist() == [1, 1, 1, 1]
    assert x.histc(4, 0, 2).tolist() == [0, 0, 1, 1]
    assert x.histc(bins=4, min=2, max=2).tolist() == [1, 1, 1, 1]
    assert torch.tensor([2.0, 2], device=device).histc(3).tolist() == [0, 2, 0]
    assert torch.tensor([1.0, nan, 5], device=device).histc(2, 0, 2).tolist() == [0, 1]
    assert torch.zeros(0, device=device).histc(3).tolist() == [0, 0, 0]
    out = torch.empty(0, device=device)
    assert torch.histc(x, 2, out=out) is out
    for bad in (
        lambda: torch.tensor([1, nan], device=device).histc(4),
        lambda: torch.tensor([1, inf], device=device).histc(4),
        lambda: x.histc(0),
        lambda: x.histc(3, 2, 1),
        lambda: x.histc(3, 0, inf),
    ):
        with pytest.raises(RuntimeError):
            bad()
    with pytest.raises(NotImplementedError):
        torch.tensor([1, 2], device=device).histc(3)


# --- without NaN, both extremes, differences


def test_without_nan(device):
    x = torch.tensor([[1, nan], [3, 4]], device=device)
    close(x.nansum(), 8)
    close(x.nansum(0), [4, 4])
    close(x.nanmean(), 8 / 3)
    close(x.nanmean(1, keepdim=True), [[1], [3.5]])
    assert math.isnan(torch.tensor([nan], device=device).nanmean(0).item())
    whole = torch.tensor([1, 2], device=device)
    assert whole.nansum().item() == 3
    with pytest.raises(RuntimeError, match="float"):
        whole.nanmean()
    y = torch.tensor(
        [1, nan, 3], device=device, dtype=torch.float64, requires_grad=True
    )
    y.nanmean().backward()
    assert y.grad.tolist() == [0.5, 0, 0.5]


def test_aminmax(device):
    x = torch.tensor([[3, 1, 2], [0, 5, 2]], device=device)
    low, high = torch.aminmax(x)
    assert (low.item(), high.item()) == (0, 5)
    made = x.aminmax(dim=1, keepdim=True)
    assert made.min.tolist() == [[1], [0]]
    assert made.max.tolist() == [[3], [5]]
    assert math.isnan(torch.tensor([1, nan], device=device).aminmax().max.item())
    with pytest.raises(RuntimeError):
        torch.zeros(0, device=device).aminmax()
    check(lambda x: x.aminmax(dim=0), leaf(3, 2, device=device))


def test_diff(device):
    def t(values):
        return torch.tensor(values, device=device)

    assert t([1.0, 2, 4, 8]).diff().tolist() == [1, 2, 4]
    assert t([1, 2, 4, 8]).diff(n=2).tolist() == [1, 2]
    assert t([1, 2]).diff(n=0).tolist() == [1, 2]
    assert t([1, 2]).diff(n=5).tolist() == []
    assert t([1, 2]).diff(n=2**62).tolist() == []
    assert t([1, 2]).diff(prepend=t([0]), append=t([9, 9])).tolist() == [1, 1, 7, 0]
    assert t([True, False, False]).diff().tolist() == [True, False]
    assert t([[1, 2], [5, 9]]).diff(dim=0).tolist() == [[4, 7]]
    assert torch.zeros(0, device=device).diff().tolist() == []
    with pytest.raises(RuntimeError):
        t(3).diff()
    with pytest.raises(RuntimeError):
        t([1, 2]).diff(n=-1)
    with pytest.raises(IndexError):
        t([1, 2]).diff(dim=3)
    check(lambda x: x.diff(dim=1), leaf(2, 4, device=device))


# --- places in order


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    how=st.sampled_from(["linear", "lower", "higher", "midpoint", "nearest"]),
    q=st.sampled_from([0.0, 0.25, 0.5, 0.625, 1.0]),
    data=st.data(),
)
def test_quantiles_like_numpy(where, shape, how, q, data):
    x = np.random.default_rng(len(shape)).normal(size=shape)
    dim = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1)))
    keepdim = data.draw(st.booleans())
    t = torch.tensor(x, device=where)
    wanted = np.quantile(x, q, axis=dim, keepdims=keepdim, method=how)
    made = t.quantile(q, dim, keepdim, interpolation=how)
    assert tuple(made.shape) == np.shape(wanted)
    np.testing.assert_allclose(made.cpu().numpy(), wanted, rtol=1e-12)
    both = torch.tensor([q, 0.5], dtype=torch.float64, device=where)
    wanted = np.quantile(x, [q, 0.5], axis=dim, keepdims=keepdim, method=how)
    made = torch.quantile(t, both, dim, keepdim=keepdim, interpolation=how)
    assert tuple(made.shape) == wanted.shape
    np.testing.assert_allclose(made.cpu().numpy(), wanted, rtol=1e-12)


def test_quantiles_as_pytorch(device):
    x = torch.tensor([1.0, 2, 3, 4], device=device)
    close(x.quantile(0.5), 2.5)
    close(x.quantile(torch.tensor([0.5, 0.25], device=device)), [2.5, 1.75])
    holes = torch.tensor([1, 2, nan, 4], device=device)
    assert math.isnan(holes.quantile(0.4).item())
    close(holes.nanquantile(0.4), 1.8)
    assert math.isnan(torch.tensor([nan], device=device).nanquantile(0.5).item())
    out = torch.empty(0, device=device)
    assert torch.quantile(x, 0.5, out=out) is out
    for bad in (
        lambda: x.quantile(1.4),
        lambda: x.quantile(0.4, interpolation="x"),
        lambda: x.to(torch.int64).quantile(0.4),
        lambda: torch.zeros(0, device=device).quantile(0.4),
        lambda: x.quantile(torch.tensor([0.5], dtype=torch.float64, device=device)),
    ):
        with pytest.raises(RuntimeError):
            bad()
    with pytest.raises(IndexError):
        x.quantile(0.5, 3)
    check(lambda x: x.quantile(0.3, 0) ** 2, leaf(4, 2, device=device))


def test_mode(device):
    def t(values):
        return torch.tensor(values, device=device)

    pair = t([2, 1, 2, 1, 3]).mode()
    assert [part.tolist() for part in pair] == [1, 3]
    pair = t([[2, 1, 2, 1, 3]]).mode(1, True)
    assert [part.tolist() for part in pair] == [[[1]], [[3]]]
    assert t([[1, 2], [1, 3], [0, 3]]).mode(0).values.tolist() == [1, 3]
    assert t(3.0).mode().indices.item() == 0
    assert repr(t([1]).cpu().mode()).startswith("torch.return_types.mode(\nvalues=")
    with pytest.raises(IndexError):
        torch.zeros(0, device=device).mode()
    with pytest.raises(IndexError):
        t([1]).mode(2)


@pytest.mark.parametrize("count", [3, 40])
def test_isin(device, count):
    x = torch.arange(20, device=device).reshape(4, 5)
    others = torch.arange(count, device=device) * 3
    wanted = np.isin(np.arange(20).reshape(4, 5), np.arange(count) * 3)
    assert np.array_equal(torch.isin(x, others).cpu().numpy(), wanted)
    assert np.array_equal(torch.isin(x, others, invert=True).cpu().numpy(), ~wanted)
    assert torch.isin(3, others).item() is True
    assert torch.isin(x, 7).sum().item() == 1
    assert not torch.isin(x, others[:0]).any().item()
    with pytest.raises(TypeError):
        torch.isin(1, 2)


def test_covariances(device):
    data = np.random.default_rng(8).normal(size=(3, 7))
    x = torch.tensor(data, device=device)
    close(x.cov(), np.cov(data), rtol=1e-12)
    close(x.corrcoef(), np.corrcoef(data), rtol=1e-12)
    often = np.array([1, 2, 1, 0, 3, 1, 1])
    weight = np.linspace(0.1, 1, 7)
    made = torch.cov(
        x,
        correction=0,
        fweights=torch.tensor(often, device=device),
        aweights=torch.tensor(weight, device=device),
    )
    close(made, np.cov(data, ddof=0, fweights=often, aweights=weight), rtol=1e-12)
    made = x.cov(aweights=torch.tensor(weight, device=device))
    close(made, np.cov(data, aweights=weight), rtol=1e-12)
    close(x[0].cov(), np.var(data[0], ddof=1), rtol=1e-12)
    with pytest.raises(RuntimeError):
        x.reshape(3, 7, 1).cov()
    check(lambda x: x.cov(), leaf(2, 4, device=device))


@pytest.mark.parametrize("name", ["cov", "corrcoef"])
def test_one_variable_has_a_number(name, device):
    x = torch.tensor([[1.0, 2.0, 4.0]], device=device)
    expected = getattr(np, name)(x.cpu().numpy())
    found = getattr(x, name)()
    assert found.dim() == expected.ndim == 0
    np.testing.assert_allclose(found.item(), expected, rtol=1e-6)


def test_bins_are_found_in_the_order_of_pytorch_s_operations(device):
    """Multiplied first, then divided: an element at an edge goes where PyTorch's goes."""
    x = ((torch.arange(24.0, dtype=torch.float64, device=device) * 7 + 4) % 11 - 5) / 3
    bins = x.float().histc().nonzero().flatten()
    assert bins.tolist() == [0, 9, 20, 29, 40, 50, 60, 70, 80, 90, 99]


def test_elements_are_looked_up_in_the_wider_type(device):
    x = torch.tensor([0.1, 0.5], device=device)
    assert torch.isin(x, x.double()).all()
    wide = torch.tensor([0.1, 0.5], dtype=torch.float64, device=device)
    assert torch.isin(x, wide).tolist() == [False, True]
    many = torch.linspace(0, 1, 41, dtype=torch.float64, device=device)
    assert torch.isin(x, many).tolist() == [False, True]
