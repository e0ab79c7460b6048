"""Cumulative sums, products and extremes."""

import math

import numpy as np
import pytest
from conftest import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch

nan, inf = math.nan, math.inf
LONG = 300_001  # elements of a row that is shared among threads, or blocks


def leaf(*shape, device="cpu", seed=0, low=0.5, high=2.0):
    numbers = np.random.default_rng(seed).uniform(low, high, size=shape)
    return torch.tensor(numbers, device=device, requires_grad=True)


def same(made, wanted):
    np.testing.assert_array_equal(np.array(made.tolist()), np.array(wanted))


# --- against NumPy


@st.composite
def arrays(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int64, np.int8, np.uint8]))
    seed = draw(st.integers(0, 1000))
    data = np.random.default_rng(seed).integers(0, 7, size=shape).astype(dtype)
    return data, draw(st.integers(-len(shape), len(shape) - 1))


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=60, deadline=None)
@given(case=arrays(), turned=st.booleans())
def test_sums_and_products_like_numpy(where, case, turned):
    data, dim = case
    x = torch.tensor(data, device=where)
    if turned:
        x, data = x.T, data.T
    integer = data.dtype.kind in "iu"
    for ours, theirs in ((torch.cumsum, np.cumsum), (torch.cumprod, np.cumprod)):
        wanted = theirs(data, dim, dtype=np.int64 if integer else None)
        made = ours(x, dim)
        assert made.dtype is (torch.int64 if integer else x.dtype)
        np.testing.assert_allclose(made.cpu().numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=60, deadline=None)
@given(case=arrays(), holes=st.booleans())
def test_extremes_so_far(where, case, holes):
    data, dim = case
    if holes and data.dtype.kind == "f":
        data[data == 3] = nan
    x = torch.tensor(data, device=where)
    for ours, theirs in ((torch.cummax, np.maximum), (torch.cummin, np.minimum)):
        values, indices = ours(x, dim)
        assert values.dtype is x.dtype
        assert indices.dtype is torch.int64
        wanted = theirs.accumulate(data, dim)
        np.testing.assert_array_equal(values.cpu().numpy(), wanted)
        # Where it says, and nothing later until there equals it.
        rows = np.moveaxis(data, dim, -1).reshape(-1, data.shape[dim])
        found = np.moveaxis(indices.cpu().numpy(), dim, -1).reshape(rows.shape)
        for row, places in zip(rows, found, strict=True):
            for i, at in enumerate(places):
                same = (row[: i + 1] == row[at]) | (
                    np.isnan(row[: i + 1]) & np.isnan(row[at])
                )
                assert at == np.flatnonzero(same)[-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_one_long_row(device, dtype):
    data = np.random.default_rng(1).integers(-50, 50, size=LONG).astype(dtype)
    if dtype != np.int64:
        data += dtype(0.25)
    x = torch.tensor(data, device=device)
    wanted = np.cumsum(data.astype(np.float64))
    np.testing.assert_allclose(x.cumsum(0).cpu().numpy(), wanted, rtol=1e-5, atol=0.5)
    values, indices = x.cummax(0)
    assert np.array_equal(values.cpu().numpy(), np.maximum.accumulate(data))
    assert np.array_equal(data[indices.cpu().numpy()], values.cpu().numpy())
    if dtype != np.int64:
        small = (data / 100).astype(dtype)
        np.testing.assert_allclose(
            torch.tensor(small, device=device).logcumsumexp(0).cpu().numpy(),
            np.logaddexp.accumulate(small.astype(np.float64)),
            rtol=1e-5,
        )


@pytest.mark.slow
def test_long_columns(device):
    x = torch.arange(180_000.0).mul(7).fmod(1001).sub(500).reshape(20_000, 9).to(device)
    rows = x.T.contiguous().requires_grad_()
    x.requires_grad_()
    for scan in (torch.cumsum, torch.logcumsumexp):
        made, wanted = scan(x, 0), scan(rows, 1)
        made.mul(x).sum().backward()
        wanted.mul(rows).sum().backward()
        assert torch.allclose(made, wanted.T)
    assert torch.allclose(x.grad, rows.grad.T, rtol=1e-4)
    for scan in (torch.cummax, torch.cummin):
        made, wanted = scan(x, 0), scan(rows, 1)
        assert all(torch.equal(m, w.T) for m, w in zip(made, wanted, strict=True))


def test_one_thread_scans_a_long_row_as_several_do():
    x = torch.arange(LONG).mul(7).remainder(1001) - 500
    made, threads = [], torch.get_num_threads()
    for n in (1, 2):
        torch.set_num_threads(n)
        made.append([x.cumsum(0), *x.cummax(0), *x.flip(0).cummin(0)])
    torch.set_num_threads(threads)
    assert all(torch.equal(one, two) for one, two in zip(*made, strict=True))


# --- rows that a GPU sums up in tiles of 1024 elements, and long ones in parts of these


def last_maxima(rows):
    best = np.maximum.accumulate(rows, 1)
    found = np.where(rows == best, np.arange(rows.shape[1]), 0)
    return best, np.maximum.accumulate(found, 1)


@pytest.mark.parametrize(
    "n", [17, 1021, 1023, 1024, 1025, 1028, 2048, 8191, 8192, 8194, 12_289, 20_484]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_borders_of_tiles(device, n, dtype):
    """Whole numbers, whose sums are exact in any order."""
    data = np.random.default_rng(n).integers(-50, 50, size=(3, n)).astype(dtype)
    x = torch.tensor(data, device=device)
    same(x.cumsum(1), np.cumsum(data, 1))
    values, indices = x.cummax(1)
    best, places = last_maxima(data)
    same(values, best)
    same(indices, places)
    lowest, places = last_maxima(-data)
    values, indices = x.cummin(1)
    same(values, -lowest)
    same(indices, places)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_rows_that_start_anywhere(device, dtype):
    data = np.arange(30_000).astype(dtype) % 97 - 48
    x = torch.tensor(data, device=device)
    for first in (1, 2, 3, 4):
        same(x[first:].cumsum(0), np.cumsum(data[first:]))
        same(x[first:].cummax(0).indices, last_maxima(data[None, first:])[1][0])
    y = x.clone()
    y[3:].cumsum_(0)
    same(y[3:], np.cumsum(data[3:]))
    same(y[:3], data[:3])


@pytest.mark.parametrize("n", [1025, 4096, 30_001])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_backwards(device, n, dtype):
    """The gradient of a running sum is that of its gradient from the end on."""
    weights = np.random.default_rng(n).integers(-50, 50, size=(2, n)).astype(dtype)
    x = torch.zeros(2, n, dtype=getattr(torch, dtype.__name__), device=device)
    x.requires_grad_()
    x.cumsum(1).backward(torch.tensor(weights, device=device))
    same(x.grad, np.cumsum(weights[:, ::-1], 1)[:, ::-1])


def test_products_and_logarithms_over_many_parts(device):
    rng = np.random.default_rng(9)
    signs = rng.choice([-1.0, 1.0], size=40_004)
    signs[5000::5000] *= 2
    signs[7500::5000] /= 2
    for dtype in (np.float32, np.float64):
        x = torch.tensor(signs.astype(dtype), device=device)
        same(x.cumprod(0), np.cumprod(signs))
        numbers = rng.normal(size=40_004).astype(dtype)
        made = torch.tensor(numbers, device=device).logcumsumexp(0)
        wanted = np.logaddexp.accumulate(numbers.astype(np.float64))
        np.testing.assert_allclose(made.cpu().numpy(), wanted, rtol=1e-6)
    whole = torch.tensor(signs.clip(-1, 1).round().astype(np.int64), device=device)
    same(whole.cumprod(0), np.cumprod(whole.cpu().numpy()))


def test_more_parts_than_one_thread_has(device):
    """4 parts are a thread's, so 171 take lanes and warps; a NaN stays to the end."""
    n = 700_000
    x = torch.arange(n, device=device)
    assert torch.equal(x.cumsum(0), x * (x + 1) // 2)
    x = x.float() % 1000
    x[n // 2] = nan
    values, indices = x.cummax(0)
    assert values[n // 2 - 1].item() == 999
    assert indices[n // 2 - 1].item() == n // 2 - 1
    assert values[n // 2 :].isnan().all().item()
    assert (indices[n // 2 :] == n // 2).all().item()


def test_results_are_the_same_each_time(device):
    x = torch.tensor(np.random.default_rng(5).normal(size=100_003), device=device)
    first = x.cumsum(0)
    assert torch.equal(first, x.cumsum(0))
    assert torch.equal(first, x.clone().cumsum_(0))


@pytest.mark.parametrize("shape", [(34, 2100, 2), (2, 2100, 34), (2, 70_000, 1)])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_layouts(device, shape, dim):
    data = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    x = torch.tensor(data, device=device)
    wanted = np.cumsum(data, dim, dtype=np.float64)
    np.testing.assert_allclose(
        x.cumsum(dim).cpu().numpy(), wanted, rtol=1e-4, atol=1e-4
    )
    at = 2 - dim
    np.testing.assert_allclose(
        x.permute(2, 1, 0).cumsum(at).cpu().numpy(),
        wanted.transpose(2, 1, 0),
        rtol=1e-4,
        atol=1e-4,
    )


def test_sums_of_positive_numbers_never_fall():
    data = np.random.default_rng(3).uniform(size=LONG)
    made = torch.tensor(data).cumsum(0).numpy()
    assert np.all(np.diff(made) >= 0)


def test_common_rows_of_float64_are_added_one_by_one():
    data = np.random.default_rng(4).uniform(size=20_000)
    assert np.array_equal(torch.tensor(data).cumsum(0).numpy(), np.cumsum(data))


def test_float32_sums_gather_in_float64(device):
    x = torch.full((2_000_000,), 0.1, device=device)
    assert abs(x.cumsum(0)[-1].item() - 200_000) < 0.05


# --- what PyTorch answers


def test_types(device):
    x = torch.tensor([True, True], device=device)
    assert x.cumsum(0).dtype is torch.int64
    assert torch.cumsum(x, 0, dtype=torch.float64).tolist() == [1, 2]
    narrow = torch.tensor([200, 100], dtype=torch.uint8, device=device)
    assert narrow.cumsum(0).tolist() == [200, 300]
    made = narrow.cumsum(0, dtype=torch.uint8)
    assert made.dtype is torch.uint8
    assert made.tolist() == [200, 44]
    floats = torch.tensor([1.5, 2.7], device=device)
    assert floats.cumsum(0, dtype=torch.int64).tolist() == [1, 3]
    assert x.cummax(0)[0].tolist() == [True, True]
    with pytest.raises(NotImplementedError, match="bool"):
        x.cumsum(0, dtype=torch.bool)
    with pytest.raises(NotImplementedError, match="float"):
        narrow.logcumsumexp(0)


def test_nan_and_infinities(device):
    x = torch.tensor([1, nan, 3, nan, 3], device=device)
    assert x.cummax(0).indices.tolist() == [0, 1, 1, 3, 3]
    assert x.cummin(0).indices.tolist() == [0, 1, 1, 3, 3]
    same(x.cummin(0).values, [1, nan, nan, nan, nan])
    y = torch.tensor([1, 2, -inf, inf, nan], device=device).logcumsumexp(0)
    np.testing.assert_allclose(y.tolist(), [1, 2.3132617, 2.3132617, inf, nan])
    same(torch.tensor([-inf, -inf], device=device).logcumsumexp(0), [-inf, -inf])
    same(torch.tensor([inf, -inf, inf], device=device).logcumsumexp(0), [inf] * 3)
    same(
        torch.tensor([1000.0, 1000], device=device).logcumsumexp(0),
        [1000, 1000.6931762695312],
    )


def test_empty_and_zero_dimensional(device):
    assert torch.tensor(3.0, device=device).cumsum(0).tolist() == 3
    assert torch.tensor(3, device=device).cumprod(-1).tolist() == 3
    values, indices = torch.tensor(2.0, device=device).cummax(0)
    assert (values.tolist(), indices.tolist()) == (2, 0)
    for shape in ((0,), (2, 0), (0, 3)):
        empty = torch.zeros(shape, device=device)
        assert empty.cumsum(-1).shape == shape
        assert empty.cummax(0).indices.shape == shape


def test_bad_calls(device):
    x = torch.ones(2, 3, device=device)
    for function in (x.cumsum, x.cumprod, x.cummax, x.cummin, x.logcumsumexp):
        with pytest.raises(IndexError):
            function(2)
        with pytest.raises(IndexError):
            function(-3)
        with pytest.raises(TypeError):
            function()
        with pytest.raises(TypeError):
            function("a")
    with pytest.raises(RuntimeError, match="float64"):
        x.cumsum_(0, dtype=torch.float64)


def test_outputs_and_in_place(device):
    x = torch.tensor([1.0, 2, 3], device=device)
    out = torch.empty(0, device=device)
    assert torch.cumsum(x, 0, out=out) is out
    assert out.tolist() == [1, 3, 6]
    values, indices = (
        torch.empty(0, device=device),
        torch.empty(0, dtype=torch.int64, device=device),
    )
    made = torch.cummax(x, axis=0, out=(values, indices))
    assert made.values is values
    assert made[1] is indices
    assert indices.tolist() == [0, 1, 2]
    assert x.cumsum_(0) is x
    assert x.cumprod_(0).tolist() == [1, 3, 18]
    whole = torch.tensor([1, 2], dtype=torch.int32, device=device)
    assert whole.cumsum_(0).dtype is torch.int32
    with pytest.raises(RuntimeError):
        torch.cumsum(x, 0, out=torch.empty(2, device=device))
    with pytest.raises(TypeError):
        torch.cummax(x, 0, out=values)


def test_names_of_results():
    pair = torch.tensor([1, 3, 2]).cummax(0)
    assert repr(pair) == (
        "torch.return_types.cummax(\nvalues=tensor([1, 3, 3]),\nindices=tensor([0, 1, 1]))"
    )
    assert "grad_fn=<CummaxBackward0>" in repr(
        torch.ones(1, requires_grad=True).cummax(0)
    )


# --- gradients


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gradients(device, dim):
    def check(function, x):
        assert torch.autograd.gradcheck(function, (x,))
        assert torch.autograd.gradgradcheck(function, (x,))

    check(lambda x: x.cumsum(dim), leaf(3, 4, device=device))
    check(lambda x: x.cumprod(dim), leaf(3, 4, device=device))
    check(lambda x: x.logcumsumexp(dim), leaf(3, 4, device=device, low=-2))
    check(lambda x: x.cummax(dim)[0], leaf(3, 4, device=device))
    check(lambda x: x.cummin(dim)[0], leaf(3, 4, device=device))


def test_gradient_of_a_product_with_zeros(device):
    x = torch.tensor([[2.0, 0, 3, 4], [0, 5, 0, 2]], dtype=torch.float64, device=device)
    assert torch.autograd.gradcheck(lambda x: x.cumprod(1), (x.requires_grad_(),))


def test_gradient_of_the_sum_in_place(device):
    x = torch.tensor([1.0, 2, 3], device=device, requires_grad=True)
    y = x * 2
    y.cumsum_(0)
    y.sum().backward()
    assert x.grad.tolist() == [6, 4, 2]


def test_gradient_of_equal_extremes(device):
    x = torch.tensor([1.0, 2, 2], device=device, requires_grad=True)
    x.cummax(0)[0].sum().backward()
    assert x.grad.tolist() == [1, 1, 1]
