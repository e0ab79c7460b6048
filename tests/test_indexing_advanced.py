"""Indexing with index tensors, masks, lists and arrays."""

import numpy as np
import pytest
from conftest import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float32,
    torch.float64,
]


def numbers(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


# --- reading and writing by mixtures, against NumPy


@st.composite
def subscripts(draw):
    """A shape, and a subscript that NumPy and PyTorch read alike: no integer stands
    beside an index array, since NumPy counts it among the arrays."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    common = draw(st.sampled_from([(), (2,), (3, 1), (0,)]))
    items, d, arrays = [], 0, 0
    while d < len(shape):
        kind = draw(st.sampled_from(["slice", "array", "mask", "none", "stop"]))
        if kind == "stop":
            break
        if kind == "none":
            items.append(None)
            if len(items) > 6:
                break
            continue
        if kind == "array" and common:
            values = draw(
                st.lists(
                    st.integers(-shape[d], shape[d] - 1),
                    min_size=int(np.prod(common)),
                    max_size=int(np.prod(common)),
                )
            )
            dtype = draw(st.sampled_from([np.int64, np.int32, np.int8]))
            items.append(np.array(values, dtype).reshape(common))
            arrays += 1
        elif kind == "mask" and not arrays and common == ():
            bits = draw(st.lists(st.booleans(), min_size=shape[d], max_size=shape[d]))
            items.append(np.array(bits))
            arrays += 1
        else:
            items.append(slice(draw(st.sampled_from([None, 0, 1])), None))
        d += 1
    if draw(st.booleans()):
        items.append(Ellipsis)
    return shape, tuple(items)


def ours(items, device):
    return tuple(
        torch.tensor(item, device=device) if isinstance(item, np.ndarray) else item
        for item in items
    )


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=150, deadline=None)
@given(case=subscripts())
def test_reads_like_numpy(where, case):
    shape, items = case
    data = numbers(*shape)
    made = torch.tensor(data, device=where)[ours(items, where)]
    wanted = data[items]
    assert tuple(made.shape) == wanted.shape
    assert np.array_equal(made.cpu().numpy(), wanted)


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=150, deadline=None)
@given(case=subscripts())
def test_writes_like_numpy(where, case):
    shape, items = case
    data = numbers(*shape)
    x = torch.tensor(data, device=where)
    x[ours(items, where)] = -7
    data[items] = -7
    assert np.array_equal(x.cpu().numpy(), data)


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=60, deadline=None)
@given(st.permutations(range(5)), st.integers(1, 5))
def test_writes_values_to_different_places(where, order, count):
    data = numbers(5, 3)
    x = torch.tensor(data, device=where)
    rows = np.array(order[:count])
    values = -numbers(count, 3) - 1
    x[torch.tensor(rows, device=where)] = torch.tensor(values, device=where)
    data[rows] = values
    assert np.array_equal(x.cpu().numpy(), data)


def test_places_dimensions_as_pytorch(device):
    x = torch.tensor(numbers(2, 3, 4, 5), device=device)
    i = torch.tensor([0, 1, 1], device=device)
    assert x[i, :, i].shape == (3, 3, 5)
    assert x[:, i, i].shape == (2, 3, 5)
    # PyTorch takes an integer first; for NumPy this would be (3, 3, 5).
    assert x[:, i, :, 0].shape == (2, 3, 4)
    assert x[0, :, i].shape == (3, 3, 5)


def test_lists_and_arrays(device):
    x = torch.tensor(numbers(4, 3), device=device)
    assert x[[0, -1]].tolist() == [[0, 1, 2], [9, 10, 11]]
    assert x[[True, False, False, True]].tolist() == [[0, 1, 2], [9, 10, 11]]
    assert x[np.array([1]), [2]].tolist() == [5]
    assert x[[]].shape == (0, 3)
    assert x[x > 9].tolist() == [10, 11]
    assert x[torch.tensor(2, device=device)].tolist() == [6, 7, 8]
    assert x[torch.tensor(True, device=device)].shape == (1, 4, 3)
    assert x[torch.tensor(False, device=device)].shape == (0, 4, 3)


def test_source_and_target_overlap(device):
    x = torch.tensor(numbers(5), device=device)
    i = torch.tensor([1, 2, 3, 4], device=device)
    x[i] = x[:4]
    assert x.tolist() == [0, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("items", "error"),
    [
        (([3],), IndexError),
        (([-4],), IndexError),
        (([0, 1], [0, 1, 0]), IndexError),
        (([True, False],), IndexError),
        (([0], [0], [0]), IndexError),
        (([0.5],), IndexError),
    ],
)
def test_bad_subscripts(items, error):
    x = torch.tensor(numbers(3, 2))
    with pytest.raises(error):
        x[items]
    with pytest.raises(error):
        x[items] = 1
    assert x.tolist() == numbers(3, 2).tolist()


def test_error_names_index_dimension_and_size():
    with pytest.raises(IndexError, match=r"index 7 .* dimension 1 of size 2"):
        torch.tensor(numbers(3, 2))[:, [0, 7]]


# --- many indices

# A row of places for some of the dimensions of a table of eight; what is broadcast; and
# rows of an odd length behind them.
COUNTS = [1, 2, 3, 4, 5, 8]
FORMS = [(37,), (3, 5), (1,)]


def table_and_places(count, form, dtype, wraps=True):
    """A table, and an index for each of its first dimensions: every other one is of one
    column, so that they have to be broadcast."""
    rng = np.random.default_rng(count)
    shape = [2, 3, 2, 4, 2, 3, 2, 3][:count] + [7] * (count < 3)
    places = []
    for d in range(count):
        own = (*form[:-1], 1) if d % 2 else form
        places.append(rng.integers(-shape[d] if wraps else 0, shape[d], own))
    return numbers(*shape), [place.astype(dtype) for place in places]


@pytest.mark.parametrize(
    "dtype", [np.int64, np.int32, np.uint8], ids=lambda t: t.__name__
)
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("count", COUNTS)
def test_many_indices(device, count, form, dtype):
    data, places = table_and_places(count, form, dtype, wraps=dtype is not np.uint8)
    x = torch.tensor(data, device=device)
    at = tuple(torch.tensor(place, device=device) for place in places)
    where = tuple(place.astype(np.int64) for place in places)
    wanted = data[where]
    if dtype is not np.uint8:  # whose tensors are masks in a subscript
        assert np.array_equal(x[at].cpu().numpy(), wanted)
    at = tuple(index.long() for index in at)
    assert np.array_equal(x[at].cpu().numpy(), wanted)
    values = numbers(*wanted.shape) + 0.5
    summed = x.index_put(at, torch.tensor(values, device=device), accumulate=True)
    added = data.copy()
    np.add.at(added, where, values)
    assert np.array_equal(summed.cpu().numpy(), added)
    # Equal places get equal values: a GPU writes them in no order.
    x[at] = -torch.tensor(data, device=device)[at] - 1
    written = data.copy()
    written[where] = -wanted - 1
    assert np.array_equal(x.cpu().numpy(), written)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16, torch.bfloat16], ids=str)
def test_many_indices_of_every_type(device, dtype):
    data, places = table_and_places(5, (37,), np.int64)
    x = torch.tensor(data % 7, device=device).to(dtype)
    own = x.cpu().double().numpy()
    at = tuple(torch.tensor(place, device=device) for place in places)
    assert np.array_equal(x[at].cpu().double().numpy(), own[tuple(places)])
    ones = torch.ones(37, device=device).to(dtype)
    made = x.index_put(at, ones, accumulate=True).cpu().double().numpy()
    np.add.at(own, tuple(places), 1)
    assert np.array_equal(made, own > 0 if dtype is torch.bool else own)


@pytest.mark.parametrize("count", COUNTS)
def test_many_indices_out_of_range(gpu, count):
    data, places = table_and_places(count, (5,), np.int64)
    places = [np.broadcast_to(place, 5).copy() for place in places]
    places[-1][2] = 40
    x = torch.tensor(data, device=gpu)
    at = tuple(torch.tensor(place, device=gpu) for place in places)
    said = f"index 40 is out of range for dimension {count - 1} of size"
    made = x[at]
    with pytest.raises(torch.AcceleratorError, match=said):
        torch.cuda.synchronize(gpu)
    places[-1][2] = 0  # what is wrong is read from the first
    assert np.array_equal(made.cpu().numpy(), data[tuple(places)])
    # One that is right, and the wrong one: nothing is written there, nor is it said
    # twice.
    x[tuple(index[1:3] for index in at)] = -1
    with pytest.raises(torch.AcceleratorError, match=said):
        torch.cuda.synchronize(gpu)
    torch.cuda.synchronize(gpu)
    data[tuple(place[1] for place in places)] = -1
    assert np.array_equal(x.cpu().numpy(), data)


@pytest.mark.parametrize("shape", [(1,), (3,), (1025,), (3, 5), (2, 1, 7)], ids=str)
def test_gather_of_odd_sizes(device, shape):
    rng = np.random.default_rng(1)
    wide = numbers(*shape[:-1], shape[-1] + 2)
    index = rng.integers(0, wide.shape[-1], shape)
    x, i = torch.tensor(wide, device=device), torch.tensor(index, device=device)
    for bits in (torch.int8, torch.int16, torch.float32, torch.float64):
        made = x.to(bits).gather(-1, i)
        wanted = np.take_along_axis(x.to(bits).cpu().numpy(), index, -1)
        assert np.array_equal(made.cpu().numpy(), wanted)
    # Of a transposed table, by a transposed index.
    made = x.transpose(0, -1).gather(0, i.transpose(0, -1))
    assert np.array_equal(made.transpose(0, -1).cpu().numpy(), wanted)
    assert np.array_equal(x.take(i).cpu().numpy(), wide.ravel()[index])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_halves_beside_those_that_are_added_to_stay(device, dtype, start, size):
    """-0, infinities and the smallest number, at even and odd addresses."""
    kept = torch.tensor([-0.0, float("inf"), 2.0**-24, -0.0, 0.0, -float("inf"), -0.0])
    x = kept.to(device, dtype)
    own = x.clone()
    table = x[start : start + size]
    place = torch.tensor([size - 1] * 3, device=device)
    added = torch.tensor([0.5, 0.25, 4.0], device=device).to(dtype)
    table.index_add_(0, place, added)
    table.reshape(-1, 1).index_add_(0, place, added.reshape(-1, 1))
    last = start + size - 1
    bits = x.view(torch.int16).tolist()
    wanted = own.view(torch.int16).tolist()
    sums = own[last : last + 1].clone()
    for value in [0.5, 0.25, 4.0] * 2:
        sums += value
    wanted[last] = sums.view(torch.int16).item()
    assert bits == wanted


# --- functions


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type(device, dtype):
    data = (np.arange(12) % 5).reshape(4, 3)
    x = torch.tensor(data, device=device).to(dtype)
    own = x.cpu().numpy()
    i = torch.tensor([3, 0, 3], device=device)
    assert np.array_equal(x.index_select(0, i).cpu().numpy(), own[[3, 0, 3]])
    added = x.index_add(0, i, x[:3])
    wanted = own.copy()
    np.add.at(wanted, [3, 0, 3], own[:3])
    assert added.dtype is dtype
    assert np.array_equal(added.cpu().numpy(), wanted)
    x[i] = x[1]
    own[[3, 0]] = own[1]
    assert np.array_equal(x.cpu().numpy(), own)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather_and_scatter(device, dim):
    rng = np.random.default_rng(1)
    data = rng.normal(size=(4, 5)).astype(np.float32)
    index = rng.integers(0, 4, size=(4, 5))
    x, i = torch.tensor(data, device=device), torch.tensor(index, device=device)
    assert np.array_equal(
        x.gather(dim, i).cpu().numpy(), np.take_along_axis(data, index, dim)
    )
    wanted = np.zeros_like(data)
    for at in np.ndindex(data.shape):
        to = list(at)
        to[dim] = index[at]
        wanted[tuple(to)] += data[at]
    made = torch.zeros(4, 5, device=device).scatter_add_(dim, i, x)
    np.testing.assert_allclose(made.cpu().numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_scatter_reduces(device):
    x = torch.full((4,), 2.0, device=device)
    i = torch.tensor([0, 0, 3], device=device)
    assert x.scatter(0, i, 3.0, reduce="multiply").tolist() == [18, 2, 2, 6]
    assert x.scatter(0, i, 3.0, reduce="add").tolist() == [8, 2, 2, 5]
    assert x.scatter(0, i, 5.0).tolist() == [5, 2, 2, 5]
    assert x.tolist() == [2, 2, 2, 2]
    with pytest.raises(RuntimeError):
        x.scatter(0, i, 3.0, reduce="mean")


def test_along_one_dimension(device):
    x = torch.tensor(numbers(3, 2), device=device)
    i = torch.tensor([2, 0], device=device)
    one = torch.ones(2, 2, device=device)
    assert x.index_add(0, i, one, alpha=2).tolist() == [[2, 3], [2, 3], [6, 7]]
    assert x.index_copy(0, i, one).tolist() == [[1, 1], [2, 3], [1, 1]]
    assert x.index_fill(1, i[1:], -1).tolist() == [[-1, 1], [-1, 3], [-1, 5]]
    assert x.take(torch.tensor([[0, -1]], device=device)).tolist() == [[0, 5]]
    assert x.T.take(torch.tensor([1], device=device)).tolist() == [2]
    with pytest.raises(RuntimeError, match="source"):
        x.index_add(0, i, torch.ones(3, 2, device=device))


def test_masks(device):
    x = torch.tensor([[1.0, -2.0], [-3.0, 4.0]], device=device)
    assert torch.where(x > 0, x, 0).tolist() == [[1, 0], [0, 4]]
    assert x.where(x > 0, -x).tolist() == [[1, 2], [3, 4]]
    assert [i.tolist() for i in torch.where(x < 0)] == [[0, 1], [1, 0]]
    assert torch.nonzero(x < 0).tolist() == [[0, 1], [1, 0]]
    assert x.masked_fill(x < 0, 9).tolist() == [[1, 9], [9, 4]]
    x.masked_fill_(x < 0, 0)
    assert x.tolist() == [[1, 0], [0, 4]]
    with pytest.raises(RuntimeError, match="bools"):
        x.masked_fill(x, 0)


def test_out_of_range_on_the_cpu():
    x = torch.tensor(numbers(3, 2))
    bad = torch.tensor([0, 5])
    with pytest.raises(IndexError, match="index_select: index 5"):
        x.index_select(0, bad)
    with pytest.raises(IndexError, match="take: index -7"):
        x.take(torch.tensor([-7]))
    with pytest.raises(RuntimeError, match="gather: index 5"):
        x.gather(0, bad.reshape(1, 2))
    with pytest.raises(IndexError):
        x.index_fill_(0, bad, 1)
    assert x.tolist() == numbers(3, 2).tolist()  # nothing was written


# --- reports of a GPU


@pytest.mark.parametrize("wait", ["synchronize", "item", "cpu", "repr", "tolist"])
def test_gpu_reports_at_the_next_wait(gpu, wait):
    x = torch.tensor(numbers(3, 2), device=gpu)
    bad = torch.tensor([0, 5], device=gpu)
    made = x.index_select(0, bad)  # does not wait, so cannot fail
    with pytest.raises(
        torch.AcceleratorError, match=r"index_select: index 5 .* size 3"
    ):
        if wait == "synchronize":
            torch.cuda.synchronize(gpu)
        elif wait == "item":
            made[0, 0].item()
        elif wait == "repr":
            repr(made)
        else:
            getattr(made, wait)()
    # The device works on, and what was not wrong is right.
    assert x.index_select(0, bad[:1]).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "index",
    [0, slice(1), ..., [0], torch.tensor([0]), torch.tensor([True, False])],
    ids=str,
)
@pytest.mark.parametrize("shape", [(3,), (1,), ()], ids=str)
def test_assignment_copies_to_the_device_written(gpu, index, shape):
    for x, value in (
        (torch.zeros(2, 3), torch.full(shape, 7.0, device=gpu)),
        (torch.zeros(2, 3, device=gpu), torch.full(shape, 7.0)),
    ):
        x[index] = value
        rows = 2 if index is ... else 1
        assert x.tolist() == [[7.0] * 3] * rows + [[0.0] * 3] * (2 - rows)


def test_gpu_writes_nothing_out_of_range(gpu):
    x = torch.tensor(numbers(3), device=gpu)
    x[torch.tensor([1, 9, -4], device=gpu)] = -1
    with pytest.raises(torch.AcceleratorError, match=r"index: index (9|-4)"):
        torch.cuda.synchronize(gpu)
    assert x.tolist() == [0, -1, 2]


# --- gradients


def check(function, *inputs):
    assert torch.autograd.gradcheck(function, inputs)


def test_gradients(device):
    rng = np.random.default_rng(3)

    def leaf(*shape):
        return torch.tensor(rng.normal(size=shape), device=device, requires_grad=True)

    i = torch.tensor([2, 0, 2], device=device)
    g = torch.tensor([[2, 0], [1, 1]], device=device)
    check(lambda x: x.index_select(0, i), leaf(3, 2))
    check(lambda x: x[i], leaf(3, 2))
    check(lambda x: x[:, i, None], leaf(2, 3))
    check(lambda x: x[x > 0], leaf(3, 2))
    check(lambda x: x.gather(0, g), leaf(3, 2))
    check(lambda x: x.take(g), leaf(2, 2))
    check(lambda x, y: x.index_add(0, i, y), leaf(3, 2), leaf(3, 2))
    check(lambda x, y: x.index_copy(0, i[:2], y), leaf(3, 2), leaf(2, 2))
    check(lambda x, y: x.scatter_add(0, g, y), leaf(3, 2), leaf(3, 2))
    check(lambda x: x.index_fill(0, i, 1.0), leaf(3, 2))
    check(lambda x: x.masked_fill(x.detach() > 0, 1.0), leaf(3, 2))

    def write(x, y):
        z = x * 1
        z[i[:2]] = y
        return z

    check(write, leaf(3, 2), leaf(2))


def test_gradient_of_repeated_rows(device):
    table = torch.zeros(4, 2, device=device, requires_grad=True)
    table[torch.tensor([1, 1, 3], device=device)].sum().backward()
    assert table.grad.tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]


def test_a_masked_write_converts_one_element(device):
    """x[mask] = value with one element of another type, as PyTorch's masked_fill_."""
    x = torch.ones(2, 3, device=device)
    mask = torch.tensor([True, False], device=device)
    for value in (torch.tensor(3), torch.tensor([[4.0]], dtype=torch.float64)):
        x[mask] = value.to(device)
        assert x.tolist() == [[value.item()] * 3, [1.0] * 3]
        x[None, mask, 1:] = value.to(device) + 1
        assert x[0].tolist() == [value.item()] + [value.item() + 1] * 2
    # Several elements, or indices other than masks, have to be of the type.
    for key, value in ((mask, [1, 2, 3]), ([0], [[1]])):
        with pytest.raises(RuntimeError, match="convert one"):
            x[key] = torch.tensor(value, device=device)


# --- where something is true


# Around a pack of 16 and a tile of 4096, and tiles of several groups.
@pytest.mark.parametrize(
    "shape", [(1,), (17,), (4095,), (4096,), (4097,), (70, 603), (3, 0), (5, 4, 3)]
)
@pytest.mark.parametrize("share", [0, 0.02, 0.6, 1])
def test_nonzero(shape, share, device):
    a = (np.random.default_rng(2).random(shape) < share).astype(np.float32)
    x = torch.tensor(a, device=device)
    assert np.array_equal(torch.nonzero(x).cpu().numpy(), np.argwhere(a))
    if a.ndim == 2:
        assert np.array_equal(torch.nonzero(x.t()).cpu().numpy(), np.argwhere(a.T))
    mask = x > 0
    assert x[mask].tolist() == a[a > 0].tolist()


@pytest.mark.parametrize("start", [0, 1, 8, 15])
def test_nonzero_of_bytes_of_any_value(start, device):
    """A bool that is not 0 is true, also one that another library has written, at any
    distance from an aligned address."""
    a = np.random.default_rng(4).integers(0, 256, 9000, "uint8")
    a[np.random.default_rng(5).random(9000) < 0.4] = 0
    a[:256], a[256:512] = np.arange(256), 0x80
    mask = torch.tensor(a, device=device).view(torch.bool)[start:]
    where = np.flatnonzero(a[start:])
    assert mask.nonzero().flatten().tolist() == where.tolist()
    values = torch.arange(9000 - start, device=device)
    assert values[mask].tolist() == where.tolist()


def test_only_the_count_comes_to_the_host(gpu):
    mask = torch.arange(40_000, device=gpu) % 3 == 0
    torch.cuda.synchronize()
    with torch.cuda.transfers() as record:
        found = torch.nonzero(mask)
    assert found.shape == (13_334, 1)
    assert record.device_to_host_bytes == 8, record
    assert record.host_to_device_bytes == 0, record


class Series:
    """A column of another library, such as pandas' or Polars'."""

    def __init__(self, *values):
        self.values = np.array(values)

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __repr__(self):
        return f"0 {self.values[0]}\n..."


def test_columns_of_other_libraries_choose():
    for device in DEVICES:
        x = torch.arange(6.0, device=device).reshape(3, 2)
        assert x[Series(2, 0)].tolist() == [[4, 5], [0, 1]]
        assert x[Series(True, False, True), 1].tolist() == [1, 5]
        x[Series(0, 1)] = 0
        assert x.sum() == 9
    with pytest.raises(IndexError, match="index 3 is out of range"):
        torch.ones(3)[Series(3)]
    with pytest.raises(TypeError, match=r"index\(\): no tensor type matches"):
        torch.ones(3)[Series("a")]


def test_errors_show_no_table_of_another_library():
    with pytest.raises(TypeError, match="other is an object of type Series; give a"):
        torch.mul(torch.ones(1), Series(1.0))
    with pytest.raises(TypeError, match=r"tensor\(\): no tensor type matches"):
        torch.tensor(Series("a"))
