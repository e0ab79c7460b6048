"""Sorting, topk, medians, unique, searchsorted."""

import math

import numpy as np
import pytest
from conftest import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch

nan, inf = math.nan, math.inf


TYPES = [
    np.bool_,
    np.uint8,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.float32,
    np.float64,
]


def numbers(dtype, shape, seed=0, spread=20):
    """Numbers of which many are equal; floats with NaN, infinities and both zeros."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(-spread, spread, size=shape)
    if dtype == np.bool_:
        return whole > 0
    if np.dtype(dtype).kind == "u":
        return np.abs(whole).astype(dtype)
    if np.dtype(dtype).kind == "i":
        return whole.astype(dtype)
    data = (whole / 4).astype(dtype)
    odd = rng.integers(0, 12, size=shape)
    special = {0: nan, 1: inf, 2: -inf, 3: -0.0, 4: 0.0}
    for key, value in special.items():
        data[odd == key] = value
    return data


def order(data, axis, descending):
    """A stable order with NaN the greatest, from NumPy's, which has it last."""
    if not descending:
        return np.argsort(data, axis, kind="stable")
    turned = np.flip(data, axis)
    found = np.argsort(turned, axis, kind="stable")
    return data.shape[axis] - 1 - np.flip(found, axis)


def identical(made, wanted):
    made = made.cpu().numpy()
    assert made.dtype == wanted.dtype
    assert made.shape == wanted.shape
    assert made.tobytes() == np.ascontiguousarray(wanted).tobytes()


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=120, deadline=None)
@given(
    dtype=st.sampled_from(TYPES),
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    seed=st.integers(0, 99),
    descending=st.booleans(),
    turned=st.booleans(),
    data=st.data(),
)
def test_sorts_like_numpy(where, dtype, shape, seed, descending, turned, data):
    x = numbers(dtype, tuple(shape), seed)
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    t = torch.tensor(x, device=where)
    if turned:
        x, t = x.T, t.T
    wanted = order(x, dim, descending)
    values, indices = t.sort(dim, descending)
    identical(indices, wanted)
    identical(values, np.take_along_axis(x, wanted, dim))
    identical(torch.argsort(t, dim, descending=descending, stable=True), wanted)


@pytest.mark.parametrize("n", [49, 100, 513, 2048, 2049, 5000])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.int64])
@pytest.mark.parametrize("descending", [False, True])
def test_longer_rows(device, n, dtype, descending):
    x = numbers(dtype, (3, n), n, spread=100)
    wanted = order(x, 1, descending)
    values, indices = torch.tensor(x, device=device).sort(1, descending)
    identical(indices, wanted)
    identical(values, np.take_along_axis(x, wanted, 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_one_long_row(dtype):
    x = numbers(dtype, 700_001, 5, spread=100_000)
    for descending in (False, True):
        wanted = order(x, 0, descending)
        values, indices = torch.tensor(x).sort(0, descending)
        identical(indices, wanted)
        identical(values, x[wanted])


def test_keys_use_all_bits(device):
    rng = np.random.default_rng(7)
    for bits in (np.uint8, np.uint16, np.uint32, np.uint64):
        name = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[
            np.dtype(bits).itemsize
        ]
        x = rng.integers(
            0, np.iinfo(bits).max, size=4000, dtype=bits, endpoint=True
        ).view(name)
        identical(torch.tensor(x, device=device).sort().values, np.sort(x))
    for name in (np.float32, np.float64):
        x = (rng.normal(size=4000) * 10.0 ** rng.integers(-30, 30, size=4000)).astype(
            name
        )
        identical(torch.tensor(x, device=device).sort().values, np.sort(x))


# --- rows longer than a GPU sorts in one block
#
# There a row is sorted digit by digit, in tiles of 4096 elements, or 2048 of 8 bytes.


BORDERS = [*(pytest.param(n, marks=pytest.mark.slow) for n in (2049, 4095, 6145, 8193))]


@pytest.mark.parametrize("n", [4096, 4097, *BORDERS])
@pytest.mark.parametrize("dtype", TYPES)
def test_borders_of_tiles(device, n, dtype):
    x = numbers(dtype, (2, n), n, spread=1000)
    t = torch.tensor(x, device=device)
    for descending in (False, True):
        wanted = order(x, 1, descending)
        values, indices = t.sort(1, descending)
        identical(indices, wanted)
        identical(values, np.take_along_axis(x, wanted, 1))
    identical(t.argsort(1, stable=True), order(x, 1, False))


@pytest.mark.parametrize(
    ("rows", "n", "dtype"),
    [(70, 2049, np.uint8), (40, 2500, np.float32), (1, 100_000, np.int8)],
)
def test_many_tiles(device, rows, n, dtype):
    x = numbers(dtype, (rows, n), n, spread=100)
    wanted = order(x, 1, True)
    values, indices = torch.tensor(x, device=device).sort(1, True)
    identical(indices, wanted)
    identical(values, np.take_along_axis(x, wanted, 1))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(520, 3073), (1, 3_200_000)])
def test_more_tiles_than_blocks(device, shape):
    x = np.random.default_rng(6).integers(0, 256, size=shape, dtype=np.uint8)
    identical(torch.tensor(x, device=device).argsort(1), order(x, 1, False))


@pytest.mark.parametrize("descending", [False, True])
def test_long_rows_of_halves(device, descending):
    """In the order of the float32 that they are, with the bits that they had."""
    bits = np.random.default_rng(8).integers(0, 1 << 16, size=3500, dtype=np.uint16)
    bits = bits.view(np.int16)
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.tensor(bits).view(dtype)
        wanted = order(x.float().numpy(), 0, descending)
        values, indices = x.to(device).sort(0, descending)
        identical(indices, wanted)
        identical(values.view(torch.int16), bits[wanted])


@pytest.mark.parametrize("n", [2000, 4000])
@pytest.mark.parametrize("bits", [np.uint32, np.uint64])
def test_sorting_moves_bits(device, n, bits):
    """All NaNs compare equal, and so do 0 and -0; a sort keeps their bits."""
    rng = np.random.default_rng(n)
    x = rng.integers(0, np.iinfo(bits).max, size=n, dtype=bits, endpoint=True)
    sign = bits(1) << bits(8 * x.itemsize - 1)
    nans = bits(np.array(inf, f"f{x.itemsize}").view(bits)) + 1
    x[::3] = rng.integers(0, 2, size=x[::3].size).astype(bits) * sign
    x[1::3] = nans + x[1::3] % 1000 + x[1::3] // 1000 % 2 * sign
    data = x.view(f"f{x.itemsize}")
    for descending in (False, True):
        wanted = order(data, 0, descending)
        values, indices = torch.tensor(data, device=device).sort(0, descending)
        identical(indices, wanted)
        identical(values, data[wanted])


def test_long_rows_of_equal_elements(device):
    for value in (0, -1, nan):
        x = torch.full((2, 5000), value, dtype=torch.float32, device=device)
        for descending in (False, True):
            made = x.argsort(1, descending=descending, stable=True)
            assert torch.equal(made[1].cpu(), torch.arange(5000))


@pytest.mark.parametrize("k", [513, 2049, 4999])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("largest", [False, True])
def test_topk_of_half_a_row(device, k, dtype, largest):
    x = numbers(dtype, (2, 5000), k, spread=100)
    wanted = order(x, 1, largest)[:, :k]
    values, indices = torch.tensor(x, device=device).topk(k, 1, largest)
    identical(indices, wanted)
    identical(values, np.take_along_axis(x, wanted, 1))


def test_long_rows_turned(device):
    x = numbers(np.float32, (2500, 3), 9)
    wanted = order(x, 0, False)
    values, indices = torch.tensor(x, device=device).sort(0)
    identical(indices, wanted)
    identical(values, np.take_along_axis(x, wanted, 0))


def test_many_short_rows(device):
    x = numbers(np.float32, (4000, 7), 3)
    wanted = order(x, 1, False)
    identical(torch.tensor(x, device=device).argsort(1), wanted)


# --- the greatest few


@pytest.mark.parametrize("n", [10, 300, 5000, 9000])
@pytest.mark.parametrize("k", [1, 3, 200, 700])
@pytest.mark.parametrize("largest", [False, True])
def test_topk(device, n, k, largest):
    k = min(k, n)
    x = numbers(np.float32, (2, n), n + k, spread=1000)
    wanted = order(x, 1, largest)[:, :k]
    values, indices = torch.tensor(x, device=device).topk(k, 1, largest)
    identical(indices, wanted)
    identical(values, np.take_along_axis(x, wanted, 1))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64])
def test_topk_of_equal_elements(device, dtype):
    x = np.ones(3000, dtype)
    assert torch.tensor(x, device=device).topk(5).indices.tolist() == [0, 1, 2, 3, 4]


def test_topk_along_another_dimension(device):
    x = numbers(np.float32, (50, 3, 4), 1)
    wanted = order(x, 0, True)[:6]
    identical(torch.tensor(x, device=device).topk(6, dim=0).indices, wanted)


# --- what PyTorch answers


def answers(pair):
    return [part.tolist() for part in pair]


def test_special_values(device):
    x = torch.tensor([3, nan, 1, nan], device=device)
    assert x.sort().indices.tolist() == [2, 0, 1, 3]
    assert x.sort(descending=True).indices.tolist() == [1, 3, 0, 2]
    zeros = torch.tensor([0.0, -0.0, 0.0], device=device).sort()
    assert zeros.indices.tolist() == [0, 1, 2]
    assert [math.copysign(1, v) for v in zeros.values.tolist()] == [1, -1, 1]
    assert torch.tensor([3, nan, 2], device=device).topk(2).indices.tolist() == [1, 0]


def test_empty_and_zero_dimensional(device):
    assert answers(torch.tensor(3.0, device=device).sort()) == [3, 0]
    assert answers(torch.tensor(3.0, device=device).topk(1)) == [3, 0]
    assert torch.tensor(3, device=device).msort().tolist() == 3
    for shape in ((0,), (2, 0), (0, 3)):
        for dim in range(len(shape)):
            values, indices = torch.zeros(shape, device=device).sort(dim)
            assert values.shape == indices.shape == shape
    assert torch.tensor([3, 1], device=device).topk(0).values.shape == (0,)
    assert torch.tensor([[3, 1], [2, 5]], device=device).msort().tolist() == [
        [2, 1],
        [3, 5],
    ]


def test_bad_sorts(device):
    x = torch.ones(2, 3, device=device)
    for function in (x.sort, x.argsort):
        with pytest.raises(IndexError):
            function(2)
        with pytest.raises(TypeError):
            function("a")
    for k in (4, -1, -2):
        with pytest.raises(RuntimeError, match="k is"):
            x.topk(k)
    with pytest.raises(IndexError):
        x.topk(1, 2)
    for k in (0, 4):
        with pytest.raises(RuntimeError, match="k is"):
            x.kthvalue(k)
    with pytest.raises(IndexError, match="size 0"):
        torch.zeros(3, 0, device=device).kthvalue(1)
    with pytest.raises(NotImplementedError):
        torch.tensor([True], device=device).kthvalue(1)


def test_outputs(device):
    x = torch.tensor([3.0, 1, 2], device=device)
    out = (
        torch.empty(0, device=device),
        torch.empty(0, dtype=torch.int64, device=device),
    )
    made = torch.sort(x, out=out)
    assert made.values is out[0]
    assert out[1].tolist() == [1, 2, 0]
    assert torch.topk(x, 3, out=out).indices is out[1]
    assert out[0].tolist() == [3, 2, 1]
    with pytest.raises(RuntimeError, match="shape"):
        torch.topk(x, 1, out=out)
    one = torch.empty(0, device=device)
    assert torch.median(x, out=one) is one
    assert one.item() == 2


def test_names_of_results():
    assert repr(torch.tensor([3, 1, 2]).sort()) == (
        "torch.return_types.sort(\nvalues=tensor([1, 2, 3]),\nindices=tensor([1, 2, 0]))"
    )
    x = torch.tensor([3.0, 1, 2], requires_grad=True)
    for made, name in (
        (x.sort(), "Sort"),
        (x.topk(2), "Topk"),
        (x.kthvalue(1), "Kthvalue"),
        (torch.median(x, 0), "Median"),
        (torch.nanmedian(x, 0), "Nanmedian"),
    ):
        assert f"grad_fn=<{name}Backward" in repr(made)


# --- one of each row


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_kthvalue(device, dtype, dim):
    x = numbers(dtype, (5, 4, 6), 2)
    places = order(x, dim, False)
    t = torch.tensor(x, device=device)
    for k in (1, 3, x.shape[dim]):
        wanted = np.take(places, k - 1, dim)
        values, indices = t.kthvalue(k, dim)
        identical(indices, wanted)
        kept = t.kthvalue(k, dim, True)
        assert kept.values.shape == kept.indices.shape
        np.testing.assert_array_equal(
            kept.values.cpu().numpy(),
            np.take_along_axis(x, np.expand_dims(wanted, dim), dim),
        )
        np.testing.assert_array_equal(
            values.cpu().numpy(), kept.values.cpu().numpy().squeeze(dim)
        )


def test_medians(device):
    def t(values):
        return torch.tensor(values, device=device)

    assert t([3, 1, 2, 4]).median().item() == 2
    assert answers(t([3, 1, 2, 4]).median(0)) == [2, 2]
    assert answers(t([[3, 1, 2, 4]]).median(1, keepdim=True)) == [[[2]], [[2]]]
    assert answers(t([2, 1, 2, 1]).median(0)) == [1, 3]
    assert math.isnan(t([3, nan, 2, nan]).median().item())
    assert t([3, nan, 2, nan]).median(0).indices.item() == 1
    assert t([3, nan, 2, nan]).nanmedian().item() == 2
    assert answers(t([3, nan, 2, nan]).nanmedian(0)) == [2, 2]
    assert t([nan, nan]).nanmedian(0).indices.item() == 0
    assert math.isnan(torch.zeros(0, device=device).median().item())
    assert t([]).to(torch.int64).median().item() == -(2**63)
    assert torch.zeros(3, 0, device=device).median(0).values.shape == (0,)
    assert answers(t(3.0).median(0)) == [3, 0]
    with pytest.raises(IndexError):
        torch.zeros(0, device=device).median(0)
    with pytest.raises(NotImplementedError):
        t([True]).median()


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=50, deadline=None)
@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_medians_like_numpy(where, shape, seed, data):
    x = numbers(np.float64, tuple(shape), seed)
    dim = data.draw(st.integers(0, x.ndim - 1))
    t = torch.tensor(x, device=where)
    n = x.shape[dim]
    wanted = np.asarray(np.take(np.sort(x, dim), (n - 1) // 2, dim))
    wanted[np.isnan(x).any(dim)] = nan
    np.testing.assert_array_equal(t.median(dim).values.cpu().numpy(), wanted)
    values, indices = t.nanmedian(dim, True)
    np.testing.assert_array_equal(
        values.cpu().numpy(), np.take_along_axis(x, indices.cpu().numpy(), dim)
    )
    rows = np.moveaxis(x, dim, -1).reshape(-1, n)
    for row, value in zip(
        rows, np.moveaxis(values.cpu().numpy(), dim, -1).ravel(), strict=True
    ):
        kept = np.sort(row[~np.isnan(row)])
        assert np.isnan(value) if not len(kept) else value == kept[(len(kept) - 1) // 2]


# --- what differs


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=80, deadline=None)
@given(
    dtype=st.sampled_from([np.bool_, np.uint8, np.int64, np.float32]),
    shape=st.lists(st.integers(0, 6), min_size=0, max_size=3),
    seed=st.integers(0, 99),
)
def test_unique_like_numpy(where, dtype, shape, seed):
    x = np.asarray(numbers(dtype, (*shape, 1), seed, spread=4).squeeze(-1))
    x = np.nan_to_num(x) if x.dtype.kind == "f" else x
    wanted = np.unique(x, return_inverse=True, return_counts=True)
    t = torch.tensor(x, device=where)
    made = t.unique(return_inverse=True, return_counts=True)
    for ours, theirs in zip(made, wanted, strict=True):
        assert np.array_equal(ours.cpu().numpy(), theirs)
    assert tuple(made[1].shape) == x.shape
    assert np.array_equal(t.unique().cpu().numpy(), wanted[0])


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_unique_along_a_dimension(where, shape, seed, data):
    x = np.random.default_rng(seed).integers(0, 2, size=shape)
    dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
    wanted = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    made = torch.unique(
        torch.tensor(x, device=where), return_inverse=True, return_counts=True, dim=dim
    )
    assert np.array_equal(made[0].cpu().numpy(), wanted[0])
    assert np.array_equal(made[1].cpu().numpy(), wanted[1].ravel())
    assert np.array_equal(made[2].cpu().numpy(), wanted[2])


def test_unique_as_pytorch(device):
    def t(values):
        return torch.tensor(values, device=device)

    assert answers(t(3).unique(return_inverse=True, return_counts=True)) == [
        [3],
        0,
        [1],
    ]
    values, counts = t([nan, nan, 1]).unique(return_counts=True)
    assert values.numel() == 3
    assert counts.tolist() == [1, 1, 1]
    made = t([1, 1, 2, 1]).unique_consecutive(return_inverse=True, return_counts=True)
    assert answers(made) == [[1, 2, 1], [0, 0, 1, 2], [2, 1, 1]]
    assert t([[1, 1], [1, 1], [2, 2]]).unique_consecutive(dim=0).tolist() == [
        [1, 1],
        [2, 2],
    ]
    assert answers(t([[3, 1], [3, 1], [2, 4]]).unique(True, True)) == [
        [1, 2, 3, 4],
        [[2, 0], [2, 0], [1, 3]],
    ]
    assert torch.zeros(0, 2, device=device).unique(dim=0).shape == (0, 2)
    assert torch.zeros(0, device=device).unique().shape == (0,)
    with pytest.raises(RuntimeError, match="size 0"):
        torch.zeros(0, 2, device=device).unique(dim=1)
    with pytest.raises(IndexError):
        torch.zeros(0, 2, device=device).unique(dim=5)


# --- where in order


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=60, deadline=None)
@given(
    dtype=st.sampled_from([np.uint8, np.int32, np.int64, np.float32, np.float64]),
    n=st.integers(0, 20),
    shape=st.lists(st.integers(0, 5), min_size=0, max_size=2),
    seed=st.integers(0, 99),
    right=st.booleans(),
)
def test_searches_like_numpy(where, dtype, n, shape, seed, right):
    rng = np.random.default_rng(seed)
    sequence = np.sort(rng.integers(0, 9, size=n).astype(dtype))
    values = np.asarray(rng.integers(0, 9, size=shape).astype(dtype))
    side = "right" if right else "left"
    wanted = np.searchsorted(sequence, values, side)
    t, v = torch.tensor(sequence, device=where), torch.tensor(values, device=where)
    for made in (
        torch.searchsorted(t, v, right=right),
        torch.searchsorted(t, v, side=side),
        torch.bucketize(v, t, right=right),
    ):
        assert made.dtype is torch.int64
        assert np.array_equal(made.cpu().numpy(), wanted)
    order = rng.permutation(n)
    mixed = np.empty_like(sequence)
    mixed[order] = sequence
    found = torch.searchsorted(
        torch.tensor(mixed, device=where),
        v,
        right=right,
        sorter=torch.tensor(order, device=where),
    )
    assert np.array_equal(found.cpu().numpy(), wanted)


def test_searches_as_pytorch(device):
    def t(values):
        return torch.tensor(values, device=device)

    assert torch.searchsorted(t([1, 3, 5]), 3).item() == 1
    assert torch.searchsorted(t([1, 3, 5]), 3.5).item() == 2
    assert torch.searchsorted(t([1.0, 3, 5]), t([nan, 3]), out_int32=True).tolist() == [
        3,
        1,
    ]
    assert torch.searchsorted(t([1.0, 3]), 3, out_int32=True).dtype is torch.int32
    assert torch.searchsorted(t([[1, 3, 5], [2, 4, 6]]), t([[3], [4]])).tolist() == [
        [1],
        [1],
    ]
    assert torch.bucketize(3, t([1, 3, 5]), right=True).item() == 2
    assert torch.searchsorted(torch.zeros(0, device=device), t([3.0])).tolist() == [0]
    sequence = t([1, 3, 5])
    for bad in (
        lambda: torch.searchsorted(sequence, t([3]), side="left", right=True),
        lambda: torch.searchsorted(sequence, t([3]), side="x"),
        lambda: torch.searchsorted(t([[1, 3], [2, 4]]), t([3, 4])),
        lambda: torch.searchsorted(t(3), t([3])),
        lambda: torch.searchsorted(sequence, t([3]), sorter=t([1, 2])),
        lambda: torch.searchsorted(sequence, t([3]), sorter=t([1.0, 2, 0])),
        lambda: torch.bucketize(t([1]), t([[1, 2]])),
    ):
        with pytest.raises(RuntimeError):
            bad()


def test_a_sorter_out_of_range():
    x = torch.tensor([5, 1, 3])
    with pytest.raises(RuntimeError, match="index 7"):
        torch.searchsorted(x, torch.tensor([3]), sorter=torch.tensor([1, 2, 7]))


def test_a_gpu_reports_a_sorter_out_of_range(gpu):
    x = torch.tensor([5, 1, 3], device=gpu)
    bad = torch.tensor([1, -9, 0], device=gpu)
    torch.searchsorted(x, torch.tensor([3], device=gpu), sorter=bad)
    with pytest.raises(torch.AcceleratorError, match="index -9"):
        torch.cuda.synchronize(gpu)
    assert x.sort().values.tolist() == [1, 3, 5]
