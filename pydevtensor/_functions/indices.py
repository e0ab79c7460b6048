"""Index tensors, and elements chosen by them."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._functions.checks import bool_mask, int_dimension, vector

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


def _triangle(function, row, col, offset, upper, factory):
    dtype = factory.get("dtype") or _C.int64
    if row < 0 or col < 0:
        raise RuntimeError(f"{function}(): the shape is {row} by {col}; give 0 or more")
    if dtype.is_floating_point or dtype == _C.bool:
        raise NotImplementedError(
            f"{function}(): dtype is {dtype}; give an integer type"
        )
    offset = max(-row, min(offset, col))
    rows = _C.arange(row, device=factory.get("device"))
    edge = (rows + (offset if upper else offset + 1)).clamp(0, col)
    counts = col - edge if upper else edge
    total = _below(row, col, offset + (not upper))
    if upper:
        total = row * col - total
    rows, columns = _repeated(counts, edge if upper else 0, total)
    made = _C.stack([rows, columns]).to(dtype)
    if factory.get("pin_memory"):
        made = made.pin_memory()
    return made.requires_grad_() if factory.get("requires_grad") else made


def _grid(tensors):
    """Views of the vectors expanded to a grid, vector d along dimension d."""
    shape = [each.numel() for each in tensors]
    ones = [1] * len(shape)
    return [
        each.reshape([*ones[:d], -1, *ones[d + 1 :]]).expand(shape)
        for d, each in enumerate(tensors)
    ]


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
        raise RuntimeError("meshgrid(): no Tensors were given; give at least one")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f"meshgrid(): indexing is {indexing!r}; give 'ij' (rows first) or 'xy'"
        )
    for place, each in enumerate(tensors):
        if each.dim() > 1:
            raise RuntimeError(
                f"meshgrid(): argument {place} has the shape {tuple(each.shape)}; "
                "give Tensors of one dimension"
            )
        if each.dtype != tensors[0].dtype or each.device != tensors[0].device:
            raise RuntimeError(
                f"meshgrid(): argument 0 is {tensors[0].dtype} on {tensors[0].device}, "
                f"argument {place} {each.dtype} on {each.device}; convert by .to()"
            )
    swap = indexing == "xy" and len(tensors) > 1
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    grid = _grid(tensors)
    if swap:
        grid[0], grid[1] = grid[1], grid[0]
    return tuple(grid)


@function()
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Cartesian product of vectors: [n0 * n1 * ..., number of vectors].

    All have the same dtype. A single vector is returned as it is.

    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    if not tensors:
        raise RuntimeError("cartesian_prod(): no Tensors were given; give at least one")
    for each in tensors:
        vector("cartesian_prod", "a Tensor", each)
        if each.dtype != tensors[0].dtype:
            raise RuntimeError(
                f"cartesian_prod(): the Tensors are of {tensors[0].dtype} and "
                f"{each.dtype}; convert one of them with .to()"
            )
    if len(tensors) == 1:
        return tensors[0]
    return _C.stack([each.reshape(-1) for each in _grid(tensors)], 1)


@function()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Combinations of r elements of a vector, in its order: [count, r].

    with_replacement=True may repeat elements.

    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    vector("combinations", "input", input)
    if r < 0:
        raise RuntimeError(f"combinations(): r is {r}; give 0 or more")
    if r == 0:
        return input.new_empty(0)
    n, again = input.numel(), with_replacement
    if r > n and not (again and n):
        return input.new_empty(0, r)
    if (comb(n + r - 1, r) if again else comb(n, r)) * r >= 1 << 40:
        raise RuntimeError(
            f"combinations(): too many of {r} of {n} elements; choose fewer"
        )
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
    return _triangle("tril_indices", row, col, offset, False, factory)


@function(factory=True)
def triu_indices(row: int, col: int, offset: int = 0, **factory: Any) -> Tensor:
    """Indices of the upper triangle of a row by col matrix: [2, count].

    In row-major order, int64 by default. offset selects the first diagonal included.

    >>> torch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle("triu_indices", row, col, offset, True, factory)


@function()
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Convert flat indices to one index tensor for each dimension of shape.

    indices is an integer tensor (TypeError); the results are int64 of its shape.

    >>> torch.unravel_index(torch.tensor([5, 1]), (2, 3))
    (tensor([1, 0]), tensor([2, 1]))
    """
    if indices.is_floating_point() or indices.dtype == _C.bool:
        raise TypeError(
            f"unravel_index(): indices are of {indices.dtype}; give integers, see "
            ".long()"
        )
    sizes = [shape] if isinstance(shape, int) else shape
    if not isinstance(sizes, (tuple, list)) or not all(
        isinstance(size, int) for size in sizes
    ):
        raise TypeError(
            f"unravel_index(): shape is {shape!r}; give an int or a tuple of ints"
        )
    if any(size < 0 for size in sizes):
        raise ValueError(
            f"unravel_index(): {shape!r} has a negative size; give 0 or more"
        )
    indices = indices.long()
    coordinates = []
    step = 1
    for size in reversed(sizes):
        coordinates.append(indices.div(step, rounding_mode="floor") % size)
        step *= size
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

    Without dim, both are flattened.

    >>> x = torch.tensor([[3, 1, 2]])
    >>> x.take_along_dim(x.argsort(dim=1), dim=1)
    tensor([[1, 2, 3]])
    """
    if indices.dtype != _C.int64:
        raise RuntimeError(
            f"take_along_dim(): indices are of {indices.dtype}; convert by .long()"
        )
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    if input.dim() != indices.dim():
        raise RuntimeError(
            f"take_along_dim(): input has {input.dim()} dimensions and indices "
            f"{indices.dim()}; give the same number"
        )
    dim = int_dimension("take_along_dim", dim, input.dim())
    wide, chosen = list(input.shape), list(indices.shape)
    for d, (n, m) in enumerate(zip(input.shape, indices.shape, strict=True)):
        if d != dim and n != m:
            if 1 not in (n, m):
                raise RuntimeError(
                    f"take_along_dim(): dimension {d} has size {n} in input and {m} in "
                    "indices; they have to broadcast"
                )
            wide[d] = chosen[d] = m if n == 1 else n
    return input.expand(wide).gather(dim, indices.expand(chosen))


@function(method=True, out=True)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Elements where the bool tensor mask is True, as a vector.

    mask broadcasts with input. Synchronizes with the GPU.

    >>> x = torch.tensor([-1.0, 2.0, 3.0])
    >>> x.masked_select(x > 0)
    tensor([2., 3.])
    """
    bool_mask("masked_select", mask)
    input, mask = _C.broadcast_tensors(input, mask)
    return input[mask].reshape(-1)
