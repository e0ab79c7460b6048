"""Index tensors, and elements chosen by them."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._functions.checks import (
    at_least,
    at_most_dims,
    bool_mask,
    dimension,
    same_device,
    same_dtype,
    sizes,
    vector,
)
from pydevtensor._functions.create import as_factory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydevtensor._functions.types import Tensor


def _repeated(counts, first, total):
    """For i = 0, 1, ..., counts[i] times: i, and first[i], first[i] + 1, ...

    total is the sum of counts.
    """
    outer = counts.repeat_interleave(output_size=total)
    starts = counts.cumsum(0) - counts - first
    inner = _C.arange(total, device=counts.device) - starts.index_select(0, outer)
    return outer, inner


def _below(row, col, offset):
    """The number of elements of a row by col matrix below a diagonal."""
    first = max(0, -offset)  # row that the diagonal crosses
    end = max(first, min(row, col - offset))
    crossed = (first + end - 1 + 2 * offset) * (end - first) // 2
    return crossed + col * max(0, row - max(0, col - offset))


def _triangle(
    row, col, offset, upper, dtype=None, pin_memory=False, requires_grad=False, **where
):
    at_least(0, "row", row)
    at_least(0, "col", col)
    if dtype and (dtype.is_floating_point or dtype == _C.bool):
        raise NotImplementedError(f"dtype is {dtype}; give an integer type")
    offset = max(-row, min(offset, col))
    rows = _C.arange(row, **where)
    edge = (rows + (offset if upper else offset + 1)).clamp(0, col)
    counts = col - edge if upper else edge
    total = _below(row, col, offset + (not upper))
    if upper:
        total = row * col - total
    made = _C.stack(_repeated(counts, edge if upper else 0, total))
    return as_factory(made.to(dtype or _C.int64), pin_memory, requires_grad)


@function()
def meshgrid(*tensors: Tensor, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinate grids from 1-dim tensors, one for each axis.

    The tensors, given as arguments or as one sequence, have the same dtype and device.
    The results are views of the shape of the grid. With indexing='ij', the default, the
    first tensor varies along dimension 0; 'xy' swaps the first two dimensions.

    >>> import pydevtensor as torch
    >>> rows, columns = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    >>> rows
    tensor([[0, 0, 0],
            [1, 1, 1]])
    >>> columns
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    if not tensors:
        raise RuntimeError("no Tensors were given; give at least one")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f"indexing is {indexing!r}; give 'ij' (rows first) or 'xy'")
    at_most_dims(1, tensors)
    same_dtype(*tensors)
    same_device(*tensors)
    shape, ones = [each.numel() for each in tensors], [1] * (len(tensors) - 1)
    grid = [
        each.reshape([*ones[:d], -1, *ones[d:]]).expand(shape)
        for d, each in enumerate(tensors)
    ]
    if indexing == "xy" and ones:
        grid = [each.transpose(0, 1) for each in grid]
    return tuple(grid)


@function()
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Cartesian product of tensors, vectors: [n0 * n1 * ..., number of vectors].

    All have the same dtype. A single vector is returned unchanged. RuntimeError for
    other shapes.

    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    for each in tensors:
        vector("a Tensor", each)
    grid = meshgrid(*tensors)
    return tensors[0] if len(grid) == 1 else _C.stack([x.reshape(-1) for x in grid], 1)


@function()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Combinations of r elements of a vector, in its order: [count, r].

    with_replacement=True may repeat elements.

    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    vector("input", input)
    at_least(0, "r", r)
    if r == 0:
        return input.new_empty(0)
    n, again = input.numel(), with_replacement
    if r > n and not (again and n):
        return input[:0].reshape(0, r)
    if (comb(n + r - 1, r) if again else comb(n, r)) * r >= 1 << 40:
        raise RuntimeError(f"too many of {r} of {n} elements; choose fewer")
    last = _C.arange(n, device=input.device)
    chosen = [last]
    for count in range(2, r + 1):
        total = comb(n + count - 1, count) if again else comb(n, count)
        first = last if again else last + 1
        outer, last = _repeated(n - first, first, total)
        chosen = [*(column.index_select(0, outer) for column in chosen), last]
    picked = input.index_select(0, _C.stack(chosen, 1).reshape(-1))
    return picked.reshape(last.numel(), r)


@function(factory=True)
def tril_indices(row: int, col: int, offset: int = 0, **factory: Any) -> Tensor:
    """Indices of the lower triangle of a row by col matrix: [2, count].

    In row-major order, int64 by default. offset selects the last diagonal included.

    >>> torch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle(row, col, offset, False, **factory)


@function(factory=True)
def triu_indices(row: int, col: int, offset: int = 0, **factory: Any) -> Tensor:
    """Indices of the upper triangle of a row by col matrix: [2, count].

    In row-major order, int64 by default. offset selects the first diagonal included.

    >>> torch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle(row, col, offset, True, **factory)


@function()
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Convert flat indices to one index tensor for each dimension of shape.

    indices is an integer tensor (TypeError); the results are int64 of its shape.

    >>> torch.unravel_index(torch.tensor([5, 1]), (2, 3))
    (tensor([1, 0]), tensor([2, 1]))
    """
    if indices.is_floating_point() or indices.dtype == _C.bool:
        raise TypeError(f"indices are of {indices.dtype}; give integers, see .long()")
    indices = indices.long()
    coordinates = []
    for size in reversed(sizes(shape)):
        coordinates.append(indices % size)
        indices = indices.div(size, rounding_mode="floor")
    return tuple(reversed(coordinates))


@function(method=True)
def argwhere(input: Tensor) -> Tensor:
    """Indices of the nonzero elements: [count, input.dim()]. Synchronizes with the GPU.

    >>> torch.tensor([[0, 1], [2, 0]]).argwhere()
    tensor([[0, 1],
            [1, 0]])
    """
    return input.nonzero()


@function(method=True, out=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Gather elements along dim; indices and input broadcast otherwise.

    Without dim, both are flattened. With it, negative indices count from the end.

    >>> x = torch.tensor([[3, 1, 2]])
    >>> x.take_along_dim(x.argsort(dim=1), dim=1)
    tensor([[1, 2, 3]])
    """
    if indices.dtype != _C.int64:
        raise RuntimeError(f"indices are of {indices.dtype}; convert by .long()")
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    if input.dim() != indices.dim():
        raise RuntimeError(
            f"input has {input.dim()} dimensions and indices {indices.dim()}; give the "
            "same number"
        )
    dim = dimension(input, dim)
    pairs = zip(input.shape, indices.shape, strict=True)
    shape = [m if n == 1 else n for n, m in pairs]
    shape[dim] = -1  # as many as each has
    indices = _C.where(indices < 0, indices + input.shape[dim], indices)
    return input.expand(shape).gather(dim, indices.expand(shape))


@function(method=True, out=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Elements where the bool tensor mask is True, as a vector.

    mask broadcasts with input. Synchronizes with the GPU.

    >>> x = torch.tensor([-1.0, 2.0, 3.0])
    >>> x.masked_select(x > 0)
    tensor([2., 3.])
    """
    bool_mask(mask)
    input, mask = _C.broadcast_tensors(input, mask)
    return _C._named(input[mask].reshape(-1), "MaskedSelectBackward0")


@function(method=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Indices of nonzero elements, [size, input.dim()]: the first, or filled up.

    size: the number of rows of the result; RuntimeError where it is negative.
    fill_value: the value of rows without elements.

    >>> torch.tensor([0, 1, 2]).nonzero_static(size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise RuntimeError(f"size is {size}; give 0 or more")
    found = input.nonzero()[:size]
    rest = found.new_full((size - len(found), input.dim()), fill_value)
    return _C.cat([found, rest])
