"""Sums, copies, conversions, constants and rows of a table of operands that lie in every way: rows of all
lengths, with gaps, from an odd element on, broadcast, transposed. Kernels move several
elements at a time where they can, and must not touch those beyond a row."""

import numpy as np
import pytest

import pydevtensor as torch

TYPES = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.float64),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
)
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 255, 256, 257, 1023, 1025)
SHAPES = [
    (r, c) for r in (1, 2, 3, 17, 70) for c in (1, 2, 3, 4, 8, 16, 17, 24, 67, 128)
]
# What a copy or an operand may be of a matrix.
VIEWS = {
    "all": lambda m: m,
    "transposed": lambda m: m.T,
    "from an odd column": lambda m: m[:, 1:],
    "from an even column": lambda m: m[:, 4:],
    "every second column": lambda m: m[:, ::2],
    "every third row": lambda m: m[::3],
    "a column": lambda m: m[:, :1],
    "a row": lambda m: m[:1],
    "an element": lambda m: m[0, 0],
}


def numbers(*shape):
    """Whole numbers that each type has, and their sums too."""
    return (np.arange(np.prod(shape), dtype=np.int64) * 7 % 59).reshape(shape)


def same(result, expected):
    assert tuple(result.shape) == expected.shape
    assert np.array_equal(result.cpu().to(torch.float64).numpy(), expected)


def tensor(values, dtype, device):
    return torch.from_numpy(values.copy()).to(dtype).to(device)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_runs(device, dtype):
    for n in LENGTHS:
        x = numbers(n)
        t = tensor(x, dtype, device)
        same(t + t, x + x)
        same(t[1:] + t[:-1], x[1:] + x[:-1])
        same(t[::2] + 1, x[::2] + 1)
        same((t > 20).to(dtype), x > 20)
        same(torch.where(t > 20, t, t[0]), np.where(x > 20, x, x[0]))
        t[1:] = 3
        same(t, np.where(np.arange(n) > 0, 3, x))


@pytest.mark.parametrize("dtype", [*TYPES, torch.bool], ids=str)
def test_rows_of_each_arity(device, dtype):
    """Of each arity, with numbers, an element and a row among the operands, in place, and
    into a part of a run, beside which nothing changes."""
    for n in LENGTHS:
        x = numbers(n) % 3
        t, one = tensor(x, dtype, device), tensor(numbers(1) + 1, dtype, device)
        x = t.cpu().to(torch.float64).numpy()
        same((t != 0).to(dtype), x != 0)
        same((t == t.flip(0)).to(dtype), x == x[::-1])
        same(torch.where(t > 0, t, one), np.where(x > 0, x, 1))
        same(torch.maximum(t, t.flip(0)), np.maximum(x, x[::-1]))
        same(torch.maximum(t, one), np.maximum(x, 1))
        wide = tensor(np.ones(n + 16, np.int64), dtype, device)
        wide[8 : 8 + n].copy_(t)
        wide[8 : 8 + n].mul_(t)
        same(wide, np.concatenate([np.ones(8), x * x, np.ones(8)]))
        if dtype.is_floating_point:
            same(torch.addcmul(t, t, one, value=2), x + 2 * x)
            same(torch.nn.functional.relu(-t), np.maximum(-x, 0))
            same(torch.sigmoid(t * 0), x * 0 + 0.5)  # a long row
    rows = tensor(numbers(5, 16) % 2, dtype, device)
    x = numbers(5, 16) % 2
    same(torch.maximum(rows, rows[1]), np.maximum(x, x[1]))
    same(torch.maximum(rows[:, 8:], rows[:, :1]), np.maximum(x[:, 8:], x[:, :1]))
    for columns in range(4, 33, 4):  # of rows that start where packs of all sizes may
        t = tensor(numbers(5, 32) % 3, dtype, device)
        x = t.cpu().to(torch.float64).numpy()
        t[:, :columns].mul_(t[:, :columns])
        x[:, :columns] *= x[:, :columns]
        same(t, x)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_operands_of_a_sum(device, dtype, view):
    view = VIEWS[view]
    for shape in SHAPES:
        x = numbers(*shape)
        t = tensor(x, dtype, device)
        part, theirs = view(t), view(x)
        whole = np.broadcast_to(numbers(*theirs.shape), theirs.shape)
        other = tensor(whole, dtype, device)
        same(part + other, theirs + whole)
        if theirs.ndim == 2 and theirs.shape[0] in (1, shape[0]):
            narrow = tensor(x[:, : theirs.shape[1]], dtype, device)
            same(narrow + part, x[:, : theirs.shape[1]] + theirs)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_writing_into_part_of_a_matrix(device, dtype):
    for rows, columns in SHAPES:
        x = numbers(rows, columns)
        t = tensor(x, dtype, device)
        for matrix in (t, x):
            matrix[:, 1:] += matrix[:, 1:]
            matrix[::2, ::3] = 5
            matrix.T[1:] -= matrix.T[:1]
            matrix[1:, 4:] = matrix[:-1, 4:] * 1
        expected = x.astype(np.uint8) if dtype == torch.uint8 else x
        expected = expected.astype(np.int8) if dtype == torch.int8 else expected
        same(t, expected)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_copies_and_conversions(device, dtype, view):
    view = VIEWS[view]
    for shape in SHAPES:
        x = numbers(*shape)
        t = tensor(x, dtype, device)
        same(view(t).contiguous(), view(x))
        for to in (
            torch.float32,
            torch.float16,
            torch.bfloat16,
            torch.int64,
            torch.uint8,
        ):
            same(view(t).to(to), view(x))
        same(view(t).to(torch.bool), view(x) != 0)
        same((view(t) != 0).to(dtype), view(x) != 0)


@pytest.mark.parametrize("dtype", [*TYPES, torch.bool], ids=str)
@pytest.mark.parametrize(
    "order", [(0, 2, 1), (2, 1, 0), (1, 2, 0), (1, 0, 2), (2, 0, 1)]
)
def test_permuted_copies(device, dtype, order):
    for shape in [(3, 16, 17), (2, 70, 130), (17, 5, 64), (65, 16, 16), (1, 15, 40)]:
        x = numbers(*shape)
        x = x % 2 if dtype == torch.bool else x
        t = tensor(x, dtype, device)
        same(t.permute(order).contiguous(), x.transpose(order))
        wider = tensor(np.pad(x, ((0, 0), (0, 3), (2, 1))), dtype, device)
        inside = wider[:, : shape[1], 2 : 2 + shape[2]]
        same(inside.permute(order).contiguous(), x.transpose(order))
        target = torch.zeros_like(wider)[:, : shape[1], 2 : 2 + shape[2]]
        target.permute(order).copy_(t.permute(order))
        same(target, x)


@pytest.mark.parametrize("dtype", [*TYPES, torch.bool], ids=str)
def test_rows_by_index(device, dtype):
    for columns in (1, 2, 3, 4, 8, 16, 17, 24, 67, 128):
        x = numbers(9, columns + 4)
        x = x % 2 if dtype == torch.bool else x
        places = np.array([[8, 0, -9], [3, 3, -1]])
        index = torch.from_numpy(places).to(device)
        for first in (0, 1, 4):
            t = tensor(x, dtype, device)
            table, theirs = t[:, first : first + columns], x[:, first : first + columns]
            same(table[index], theirs[places])
            same(table.t()[:, index[0]], theirs.T[:, places[0]])
            same(table.index_select(0, index[1] % 9), theirs[places[1] % 9])
            target, expected = table.clone(), theirs.copy()
            target[index[0]] = table[:3]
            expected[places[0] % 9] = theirs[:3]
            same(target[1:], expected[1:])
            part = t.clone()[:, first : first + columns]
            part[index[0, 1:2]] = table[5:6]
            same(part[0], theirs[5])
            if dtype == torch.bool:
                continue
            part = torch.zeros_like(t)[:, first : first + columns]
            part.index_add_(0, index[1] % 9, table[:3] % 3)
            expected = np.zeros_like(theirs)
            np.add.at(expected, places[1] % 9, theirs[:3] % 3)
            same(part, expected)


def test_rows_by_an_index_out_of_range(gpu):
    table = torch.ones(9, 8, device=gpu)
    with pytest.raises(torch.AcceleratorError, match="9"):
        table[torch.tensor([3, 9], device=gpu)].cpu()
    with pytest.raises(torch.AcceleratorError, match="-10"):
        table[torch.tensor([-10, 0], device=gpu)] = 5.0
        torch.cuda.synchronize(gpu)
    assert table[1:].sum().item() == 64 and table[0, 0].item() == 5
