"""flip, roll, repeat, diagonals, unfold and views of parts."""

import numpy as np
import pytest
from conftest import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

DTYPES = ["bool", "uint8", "int16", "int32", "int64", "float32", "float64"]


def numbers(shape, dtype="float32"):
    values = np.arange(np.prod(shape, dtype=int))
    return (
        (values % 5 % 2 if dtype == "bool" else values % 100)
        .astype(dtype)
        .reshape(shape)
    )


def laid_out(array, layout, where):
    x = torch.tensor(array, device=where)
    if layout == "columns" and x.dim() > 1:
        return torch.tensor(array.swapaxes(0, -1).copy(), device=where).transpose(0, -1)
    if layout == "steps" and x.dim():
        wide = torch.zeros(*array.shape[:-1], 2 * array.shape[-1], dtype=x.dtype)
        wide = wide.to(where)
        wide[..., 1::2] = x
        return wide[..., 1::2]
    return x


@st.composite
def cases(draw, least=0, most=4):
    shape = draw(st.lists(st.integers(0, 4), min_size=least, max_size=most))
    array = numbers(shape, draw(st.sampled_from(DTYPES)))
    return array, draw(st.sampled_from(["rows", "columns", "steps"]))


def same(made, wanted):
    assert tuple(made.shape) == np.shape(wanted)
    assert np.array_equal(made.cpu().numpy(), wanted)


# --- copies in another order


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=120, deadline=None)
@given(case=cases(), data=st.data())
def test_flip_as_numpy(where, case, data):
    array, layout = case
    x = laid_out(array, layout, where)
    dims = (
        data.draw(st.lists(st.sampled_from(range(array.ndim)), unique=True))
        if (array.ndim)
        else []
    )
    dims = [d - array.ndim * data.draw(st.integers(0, 1)) for d in dims]
    made = x.flip(dims)
    same(made, np.flip(array, tuple(dims)))
    assert made.dtype == x.dtype
    assert not made.numel() or made.data_ptr() != x.data_ptr()
    same(torch.flip(x, tuple(dims)), np.flip(array, tuple(dims)))
    if array.ndim > 1:
        same(torch.fliplr(x), np.fliplr(array))
    if array.ndim:
        same(x.flipud(), np.flipud(array))


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=120, deadline=None)
@given(case=cases(), data=st.data())
def test_roll_as_numpy(where, case, data):
    array, layout = case
    x = laid_out(array, layout, where)
    shifts = st.integers(-9, 9)
    by = data.draw(shifts)
    made = x.roll(by)
    same(made, np.roll(array, by))
    assert made.is_contiguous()
    if array.ndim:
        count = data.draw(st.integers(1, 3))
        by = tuple(data.draw(shifts) for _ in range(count))
        dims = tuple(
            data.draw(st.integers(-array.ndim, array.ndim - 1)) for _ in range(count)
        )
        made = torch.roll(x, by, dims)
        same(made, np.roll(array, by, dims))
        assert made.is_contiguous()


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=60, deadline=None)
@given(case=cases(least=2), k=st.integers(-5, 5), data=st.data())
def test_rot90_as_numpy(where, case, k, data):
    array, layout = case
    dims = tuple(data.draw(st.permutations(range(array.ndim)))[:2])
    same(torch.rot90(laid_out(array, layout, where), k, dims), np.rot90(array, k, dims))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_as_long_as_vector_registers_like(device, dtype):
    for length in (7, 8, 9, 31, 33, 64, 129):
        array = numbers((2, length), dtype)
        x = torch.tensor(array, device=device)
        same(x.flip(1), array[:, ::-1])
        same(x.flip(0, 1), array[::-1, ::-1])
        same(x[:, 1:].flip(1), array[:, :0:-1])
        same(x[0].flip(0), array[0, ::-1])
        same(x.roll(5, 1), np.roll(array, 5, 1))
        same(x.repeat(2, 3), np.tile(array, (2, 3)))


def test_more_than_one_thread_takes_at_once(device):
    array = numbers((300, 401), "float64")
    x = torch.tensor(array, device=device)
    same(x.flip(0, 1), array[::-1, ::-1])
    same(x.t().flip(0), array.T[::-1])
    same(x.roll((7, -90), (0, 1)), np.roll(array, (7, -90), (0, 1)))
    same(x.roll(1234), np.roll(array, 1234))
    same(x.repeat(2, 1), np.tile(array, (2, 1)))
    same(x.repeat_interleave(2, 1), np.repeat(array, 2, 1))
    same(torch.rot90(x), np.rot90(array))


# --- copies several times


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=120, deadline=None)
@given(case=cases(most=3), data=st.data())
def test_repeat_and_tile_as_numpy(where, case, data):
    array, layout = case
    x = laid_out(array, layout, where)
    repeats = data.draw(st.lists(st.integers(0, 3), max_size=5))
    wanted = np.tile(array, repeats)
    same(torch.tile(x, tuple(repeats)), wanted)
    same(x.tile(repeats), wanted)
    if len(repeats) >= array.ndim:
        made = x.repeat(repeats)
        same(made, wanted)
        assert made.is_contiguous()


def test_repeat_in_many_dimensions(device):
    x = torch.arange(2**9, device=device).reshape([2] * 9)
    same(x.repeat([2] * 9), np.tile(x.cpu().numpy(), [2] * 9))
    y = torch.ones([1] * 14 + [2, 2], device=device, dtype=torch.float64)
    y.requires_grad_()
    y.repeat([2] * 16).sum().backward()
    assert y.grad.flatten().tolist() == [2.0**16] * 4


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=120, deadline=None)
@given(case=cases(), data=st.data())
def test_repeat_interleave_as_numpy(where, case, data):
    array, layout = case
    x = laid_out(array, layout, where)
    count = data.draw(st.integers(0, 3))
    same(x.repeat_interleave(count), np.repeat(array, count))
    if not array.ndim:
        return
    dim = data.draw(st.integers(-array.ndim, array.ndim - 1))
    wanted = np.repeat(array, count, dim)
    made = torch.repeat_interleave(x, count, dim=dim)
    same(made, wanted)
    assert not made.numel() or made.data_ptr() != x.data_ptr()
    size = array.shape[dim]
    counts = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), int
    )
    dtype = data.draw(st.sampled_from([torch.int32, torch.int64]))
    tensor = torch.tensor(counts, dtype=dtype, device=where)
    wanted = np.repeat(array, counts, dim)
    same(x.repeat_interleave(tensor, dim), wanted)
    same(x.repeat_interleave(tensor, dim, output_size=int(counts.sum())), wanted)
    same(torch.repeat_interleave(tensor), np.repeat(np.arange(size), counts))
    one = torch.tensor([count], device=where)
    same(x.repeat_interleave(one, dim), np.repeat(array, count, dim))
    same(x.repeat_interleave(one[0], dim), np.repeat(array, count, dim))


# --- diagonals and windows


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=120, deadline=None)
@given(case=cases(least=2), offset=st.integers(-5, 5), data=st.data())
def test_diagonal_as_numpy(where, case, offset, data):
    array, layout = case
    x = laid_out(array, layout, where)
    a, b = data.draw(st.permutations(range(array.ndim)))[:2]
    made = x.diagonal(offset, a, b - array.ndim)
    wanted = np.diagonal(array, offset, a, b)
    same(made, wanted)
    if made.numel() and array.dtype != bool:
        made.fill_(3)
        copy = array.copy()
        view = np.diagonal(copy, offset, a, b)
        view.flags.writeable = True
        view[...] = 3
        same(x, copy)


@pytest.mark.parametrize("offset", [-2, -1, 0, 1, 2, 7])
def test_diag_and_its_kin(device, offset):
    vector, matrix = numbers((3,)), numbers((3, 4))
    v, m = torch.tensor(vector, device=device), torch.tensor(matrix, device=device)
    same(torch.diag(v, offset), np.diag(vector, offset))
    same(m.diag(offset), np.diag(matrix, offset))
    same(torch.diagflat(m, offset), np.diagflat(matrix, offset))
    out = torch.empty(0, device=device)
    assert torch.diag(m, offset, out=out) is out
    same(out, np.diag(matrix, offset))
    embedded = torch.diag_embed(m, offset, 0, 2)
    same(embedded.diagonal(offset, 0, 2), matrix)
    assert embedded.sum().item() == matrix.sum()
    same(torch.trace(m), np.trace(matrix))
    assert torch.trace(m.int()).dtype is torch.int64
    assert m.diag().data_ptr() != m.data_ptr()


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=80, deadline=None)
@given(case=cases(least=1), data=st.data())
def test_unfold_as_numpy(where, case, data):
    array, layout = case
    x = laid_out(array, layout, where)
    dim = data.draw(st.integers(0, array.ndim - 1))
    size = data.draw(st.integers(0, array.shape[dim]))
    step = data.draw(st.integers(1, 3))
    if not size:
        assert x.unfold(dim, 0, step).shape[-1] == 0
        return
    wanted = np.lib.stride_tricks.sliding_window_view(array, size, dim)
    wanted = wanted[(slice(None),) * dim + (slice(None, None, step),)]
    made = x.unfold(dim - array.ndim, size, step)
    same(made, wanted)
    assert not made.numel() or made.data_ptr() == x.data_ptr()


def test_unfold_of_a_single_element():
    x = torch.tensor(3.0)
    assert x.unfold(0, 1, 1).tolist() == [3]
    assert x.unfold(0, 0, 1).tolist() == []
    assert torch.arange(3).unfold(0, 2, 2**62).tolist() == [[0, 1]]


def test_unflatten_is_a_view(device):
    x = torch.arange(24.0, device=device).reshape(2, 12)
    for made in (
        x.unflatten(1, (3, -1)),
        torch.unflatten(x, -1, [3, 4]),
        x.unflatten(dim=1, sizes=torch.Size([3, 4])),
    ):
        assert made.shape == (2, 3, 4)
        assert made.data_ptr() == x.data_ptr()
    assert x.t().unflatten(0, (3, 4)).stride() == (4, 1, 12)


# --- parts


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=80, deadline=None)
@given(case=cases(least=1), data=st.data())
def test_tensor_split_as_numpy(where, case, data):
    array, layout = case
    x = laid_out(array, layout, where)
    dim = data.draw(st.integers(-array.ndim, array.ndim - 1))
    sections = data.draw(st.integers(1, 6))
    places = data.draw(st.lists(st.integers(-6, 6), max_size=5))
    for how, numpys in (
        (sections, sections),
        (tuple(places), places),
        (torch.tensor(places, dtype=torch.int64, device=where), places),
        (torch.tensor(sections), sections),
    ):
        made = x.tensor_split(how, dim)
        wanted = np.array_split(array, numpys, dim)
        assert len(made) == len(wanted)
        for a, b in zip(made, wanted, strict=True):
            same(a, b)
            assert not a.numel() or 0 <= a.data_ptr() - x.data_ptr() < 8 * 2 * 4**4
        assert len(torch.tensor_split(x, how, dim=dim)) == len(wanted)


def test_splits_by_name(device):
    array = numbers((4, 6, 2))
    x = torch.tensor(array, device=device)
    for name, how in [
        ("hsplit", 3),
        ("vsplit", 2),
        ("dsplit", 2),
        ("hsplit", [1, 4]),
        ("vsplit", (1,)),
        ("dsplit", [1]),
    ]:
        for made in (getattr(torch, name)(x, how), getattr(x, name)(how)):
            assert isinstance(made, tuple)
            for a, b in zip(made, getattr(np, name)(array, how), strict=True):
                same(a, b)
    assert [p.tolist() for p in torch.arange(4).hsplit(2)] == [[0, 1], [2, 3]]
    assert [p.shape[1] for p in x.split_with_sizes((1, 0, 5), 1)] == [1, 0, 5]
    assert x.hsplit(sections=3)[0].data_ptr() == x.data_ptr()
    assert len(x.tensor_split(indices=list(range(30)), dim=1)) == 31


def test_moved_dimensions(device):
    x = torch.zeros(2, 3, 4, device=device)
    assert torch.moveaxis(x, 0, 2).shape == (3, 4, 2)
    assert x.moveaxis((0, 1), (1, 2)).shape == (4, 2, 3)
    assert x.adjoint().shape == (2, 4, 3)


# --- shapes changed in place


def test_views_in_place(device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    start = x.data_ptr()
    assert x.t_() is x
    assert x.shape == (3, 2)
    assert x.stride() == (1, 3)
    assert x.unsqueeze_(0).shape == (1, 3, 2)
    assert x.transpose_(0, 2).shape == (2, 3, 1)
    assert x.swapaxes_(0, 1).shape == (3, 2, 1)
    assert x.swapdims_(0, 1).shape == (2, 3, 1)
    assert x.squeeze_(-1).shape == (2, 3)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.data_ptr() == start
    assert x.as_strided_((2, 2), (3, 1), 1).tolist() == [[1, 2], [4, 5]]
    with pytest.raises(IndexError):
        x.unsqueeze_(5)
    assert x.shape == (2, 2)


def test_gradients_of_views_in_place(device):
    a = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
    for call, name in [
        (lambda t: t.t_(), "TBackward1"),
        (lambda t: t.transpose_(0, 1), "TransposeBackward1"),
        (lambda t: t.unsqueeze_(1), "UnsqueezeBackward1"),
        (lambda t: t.squeeze_(), "SqueezeBackward3"),
        (lambda t: t.squeeze_(0), "SqueezeBackward4"),
        (lambda t: t.as_strided_((2,), (1,)), "AsStridedBackward1"),
    ]:
        y = a * 2
        assert call(y).grad_fn.name() == name
        (y * y).sum().backward()
        wanted = torch.zeros(6, device=device)
        wanted[: y.numel()] = 8 * torch.arange(float(y.numel()), device=device)
        assert a.grad.flatten().tolist() == wanted.tolist()
        a.grad = None
    with pytest.raises(RuntimeError, match="leaf"):
        a.t_()
    with pytest.raises(RuntimeError, match="view of a leaf"):
        a[0].unsqueeze_(0)
    assert a.shape == (2, 3)
    with torch.no_grad():
        a.t_()
    assert a.shape == (3, 2)


def test_views_of_what_changes_its_shape():
    # What PyTorch gives for the same lines.
    a = torch.ones(2, 3, requires_grad=True)
    y = a * 2
    v = y[0]
    y.t_()
    v.mul_(3)
    assert y.tolist() == [[6, 2]] * 3
    y.sum().backward()
    assert a.grad.tolist() == [[6, 6, 6], [2, 2, 2]]
    b = torch.ones(2, 3, requires_grad=True)
    y = b * 2
    row = y[0].unsqueeze_(0)
    row.mul_(5)
    y.mul_(torch.tensor([[1.0], [7.0]]))
    (y.sum() + row.sum()).backward()
    assert b.grad.tolist() == [[20, 20, 20], [14, 14, 14]]


# --- gradients


def leaf(*shape, device="cpu"):
    x = torch.arange(1.0, 1 + np.prod(shape, dtype=int), dtype=torch.float64) / 7
    return x.reshape(shape).to(device).requires_grad_()


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x.flip(0, -1), (2, 3)),
        (lambda x: torch.fliplr(x), (2, 3)),
        (lambda x: x.roll(2), (2, 3)),
        (lambda x: x.roll((1, -4), (0, 1)), (2, 3)),
        (lambda x: x.roll((1, 1), (-1, -1)), (2, 3)),
        (lambda x: torch.rot90(x), (2, 3)),
        (lambda x: torch.rot90(x, -2, (0, 2)), (2, 3, 2)),
        (lambda x: torch.rot90(x, 3, (1, 0)), (2, 3)),
        (lambda x: x.repeat(2, 1, 3), (2, 2)),
        (lambda x: x.repeat(3, 2), (1, 2)),
        (lambda x: x.repeat(2, 2), ()),
        (lambda x: x.repeat(0, 2), (2,)),
        (lambda x: x.tile(2), (2, 2)),
        (lambda x: x.repeat_interleave(2, 1), (2, 2)),
        (lambda x: x.repeat_interleave(1, 1), (2, 2)),
        (lambda x: x.repeat_interleave(2), (2, 2)),
        (lambda x: x.repeat_interleave(torch.tensor([0, 2]).to(x.device), 1), (2, 2)),
        (lambda x: x.diagonal(1), (3, 3)),
        (lambda x: x.diagonal(-1, 2, 0), (3, 2, 2)),
        (lambda x: x.diagonal(9), (3, 3)),
        (lambda x: x.unfold(0, 3, 1), (5,)),
        (lambda x: x.unfold(1, 2, 1), (2, 4)),
        (lambda x: x.unfold(-1, 4, 2), (2, 6)),
        (lambda x: x.unfold(0, 2, 3), (6, 2)),
        (lambda x: x.unfold(0, 0, 1), (3,)),
        (lambda x: x.unfold(0, 1, 1), ()),
        (lambda x: x.unflatten(1, (2, -1)), (2, 4)),
        (lambda x: torch.diag(x, 1), (3,)),
        (lambda x: torch.diag(x, -1), (3, 2)),
        (lambda x: torch.diag_embed(x, 1, 0, -1), (2, 3)),
        (lambda x: torch.diagflat(x), (2, 2)),
        (lambda x: torch.trace(x), (2, 3)),
        (lambda x: x.tensor_split((1, 2), 1)[1], (2, 3)),
        (lambda x: x.hsplit(2)[1], (2, 4)),
        (lambda x: (x * 1).t_().unsqueeze_(1), (2, 3)),
    ],
)
def test_gradients(device, function, shape):
    x = leaf(*shape, device=device)
    assert gradcheck(function, [x])
    assert gradgradcheck(lambda x: function(x) ** 3, [x])


def test_nodes_are_named_as_pytorch_does():
    x = torch.ones(2, 2, requires_grad=True)
    for made, name in [
        (x.flip(0), "FlipBackward0"),
        (x.flipud(), "FlipBackward0"),
        (x.roll(1), "RollBackward0"),
        (x.rot90(), "Rot90Backward0"),
        (x.repeat(2, 2), "RepeatBackward0"),
        (x.tile(2), "RepeatBackward0"),
        (x.repeat_interleave(2), "ViewBackward0"),
        (x.repeat_interleave(torch.tensor([1, 2]), 0), "IndexSelectBackward0"),
        (x.diagonal(), "DiagonalBackward0"),
        (x.diag(), "DiagonalBackward0_copy"),
        (x[0].diag(), "DiagEmbedBackward0"),
        (x.trace(), "TraceBackward0"),
        (x.unfold(0, 1, 1), "UnfoldBackward0"),
        (x.unflatten(0, (2, 1)), "ViewBackward0"),
        (x.split_with_sizes((1, 1))[0], "SplitWithSizesBackward0"),
        (x.tensor_split(2)[0], "SliceBackward0"),
        (x.moveaxis(0, 1), "PermuteBackward0"),
    ]:
        assert made.grad_fn.name() == name


def test_writing_through_views_of_a_result(device):
    x = torch.ones(3, 3, requires_grad=True, device=device)
    y = x * 2
    y.diagonal().mul_(5)
    y.unfold(0, 1, 2)[0, 1] = 0
    y.sum().backward()
    assert x.grad.tolist() == [[10, 0, 2], [2, 10, 2], [2, 2, 10]]
    with pytest.raises(RuntimeError, match="share"):
        torch.ones(4, device=device).unfold(0, 2, 1).zero_()


# --- errors


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: torch.flip(x, 0), TypeError, ["flip()", "dims is 0 (int)"]),
        (lambda x: x.flip(2), IndexError, ["flip", "2", "-2 to 1"]),
        (lambda x: x.flip(0, -2), RuntimeError, ["dimension 0", "twice"]),
        (lambda x: x.flip(), TypeError, ["dims"]),
        (lambda x: torch.fliplr(x[0]), RuntimeError, ["fliplr", "1 dimension;", "2"]),
        (lambda x: torch.flipud(x[0, 0]), RuntimeError, ["flipud", "0 dimensions"]),
        (lambda x: x.roll((1, 2), 0), RuntimeError, ["2 shifts", "1 dimension;"]),
        (lambda x: x.roll(()), RuntimeError, ["no shifts"]),
        (lambda x: x.roll(None), TypeError, ["shifts is None"]),
        (lambda x: x.roll(1, 2), IndexError, ["-2 to 1"]),
        (lambda x: x[0, 0].roll(1, 0), IndexError, ["no dimensions"]),
        (lambda x: torch.rot90(x[0]), RuntimeError, ["1 dimension "]),
        (lambda x: torch.rot90(x, 1, (1, -1)), RuntimeError, ["number 1"]),
        (lambda x: torch.rot90(x, 1, (0,)), RuntimeError, ["1 dimension;"]),
        (lambda x: x.repeat(2), RuntimeError, ["1 repeat was", "2 dimensions"]),
        (lambda x: x.repeat(2, -1), RuntimeError, ["[2, -1]", "negative"]),
        (lambda x: x.repeat(2**62, 2), RuntimeError, ["repeat"]),
        (lambda x: x.repeat([1] * 17), RuntimeError, ["17", "16"]),
        (lambda x: torch.tile(x, 2), TypeError, ["dims is 2 (int)"]),
        (lambda x: x.repeat_interleave(-1), RuntimeError, ["negative"]),
        (lambda x: x.repeat_interleave(2, 2), IndexError, ["-2 to 1"]),
        (lambda x: x.repeat_interleave(2.5), TypeError, ["float"]),
        (
            lambda x: x.repeat_interleave(torch.tensor([1, 2]).to(x.device)),
            RuntimeError,
            ["2 repeats", "size 6"],
        ),
        (
            lambda x: x.repeat_interleave(torch.tensor([1, -2]).to(x.device), 0),
            RuntimeError,
            ["repeat 1 is -2"],
        ),
        (
            lambda x: x.repeat_interleave(torch.tensor([1.0, 2]), 0),
            NotImplementedError,
            ["float32"],
        ),
        (lambda x: x.repeat_interleave(2, 0, output_size=5), RuntimeError, ["5", "4"]),
        (lambda x: x.repeat_interleave(torch.tensor([2**62] * 2), 0), RuntimeError, []),
        (lambda x: x.diagonal(0, 1, -1), RuntimeError, ["both dimensions"]),
        (lambda x: x[0].diagonal(), IndexError, ["1"]),
        (lambda x: x.unfold(1, 4, 1), RuntimeError, ["size 4", "3"]),
        (lambda x: x.unfold(1, 2, 0), RuntimeError, ["step is 0"]),
        (lambda x: torch.ones([1] * 16).unfold(0, 1, 1), RuntimeError, ["17"]),
        (
            lambda x: x.unflatten(1, (2, 2)),
            RuntimeError,
            ["[2, 2]", "3", "dimension 1"],
        ),
        (lambda x: x.unflatten(1, (-1, -1)), RuntimeError, ["[-1, -1]"]),
        (lambda x: x.unflatten(1, (0, -1)), RuntimeError, ["[0, -1]"]),
        (lambda x: x.unflatten(1, ()), RuntimeError, ["no sizes"]),
        (lambda x: x.unflatten(1, 3), TypeError, ["sizes is 3"]),
        (lambda x: torch.diag(x[None]), RuntimeError, ["3 dimensions"]),
        (lambda x: torch.diag_embed(x, 0, 1, 1), RuntimeError, ["number 1"]),
        (lambda x: torch.diag_embed(x, 2**63 - 1), RuntimeError, ["offset"]),
        (lambda x: torch.trace(x[0]), RuntimeError, ["1 dimension;"]),
        (lambda x: torch.trace(x > 0), NotImplementedError, ["bools"]),
        (lambda x: x.tensor_split(0), RuntimeError, ["0 parts"]),
        (lambda x: x.tensor_split(2.5), TypeError, ["2.5 (float)"]),
        (lambda x: x.tensor_split((1, "a")), TypeError, ["item 1", "'a'"]),
        (lambda x: x.tensor_split(torch.ones(2)), RuntimeError, ["float32", "int64"]),
        (lambda x: x[0, 0].tensor_split(2), RuntimeError, ["no dimensions"]),
        (lambda x: x.hsplit(2), RuntimeError, ["size 3", "2 equal"]),
        (lambda x: x.vsplit(0), RuntimeError, ["0 equal"]),
        (lambda x: x.dsplit(2), RuntimeError, ["2 dimensions; give one of at least 3"]),
        (lambda x: x.split_with_sizes((1, 1), 1), RuntimeError, ["add up to 3"]),
        (lambda x: x.split_with_sizes(3, 1), TypeError, ["3 (int)"]),
        (lambda x: x[None].t_(), RuntimeError, ["[1, 2, 3]"]),
        (lambda x: x.moveaxis((0, 0), (0, 1)), RuntimeError, ["moveaxis()", "twice"]),
    ],
)
def test_wrong_calls(device, call, error, words):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    with pytest.raises(error) as caught:
        call(x)
    for word in words:
        assert word in str(caught.value)
    assert x.sum().item() == 15
