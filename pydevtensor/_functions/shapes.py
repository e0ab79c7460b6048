"""Shapes, and copies and sums by shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function, method
from pydevtensor._functions.checks import sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydevtensor._functions.types import Size, Tensor


@function()
def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Shape that the given shapes broadcast to.

    Raises RuntimeError if they do not broadcast, ValueError for negative sizes.

    >>> torch.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    whole: list[int] = []
    for given in shapes:
        shape = sizes(given)
        whole = [1] * (len(shape) - len(whole)) + whole
        for place in range(-len(shape), 0):
            if whole[place] == 1:
                whole[place] = shape[place]
            elif shape[place] not in (1, whole[place]):
                raise RuntimeError(
                    f"{given!r} does not broadcast with {whole}, which precedes it; "
                    "give sizes that are the same or 1"
                )
    return _C.Size(whole)


@function(method=True, out=True)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Copy of narrow(dim, start, length).

    >>> torch.tensor([1, 2, 3]).narrow_copy(0, 1, 2)
    tensor([2, 3])
    """
    part = input.narrow(dim, start, length)
    return part.clone() if part.is_contiguous() else part.contiguous()


@function(method=True)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Copies of the parts that chunk() gives, which can be changed in place each.

    chunks, dim: as in chunk().

    >>> torch.arange(5).unsafe_chunk(2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    return tuple(part.clone() for part in input.chunk(chunks, dim))


@function(method=True)
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Copies of the parts that split() gives, which can be changed in place each.

    split_size, dim: as in split().

    >>> torch.arange(5).unsafe_split(3)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    return tuple(part.clone() for part in input.split(split_size, dim))


@method()
def sum_to_size(input: Tensor, *size: int) -> Tensor:
    """Sum over dimensions, so that the result has a shape that broadcasts to input's.

    Returns the tensor itself if it has that shape already, but for a shape without
    dimensions, whose result is that of sum().

    size: ints, or one sequence of them, each input's or 1. RuntimeError for others.

    >>> torch.tensor([[1, 2], [3, 4]]).sum_to_size(1, 2)
    tensor([[4, 6]])
    """
    if not size:
        return input.sum()
    leading = input.dim() - len(size)
    fits = leading >= 0 and all(
        n in (1, m) for n, m in zip(size, input.shape[leading:], strict=True)
    )
    if not fits:
        raise RuntimeError(
            f"{tuple(size)} does not broadcast to the shape {tuple(input.shape)}; give "
            "sizes that are 1 or the Tensor's"
        )
    dims = list(range(leading))
    dims += [
        leading + d
        for d, n in enumerate(size)
        if n == 1 and input.shape[leading + d] != 1
    ]
    if not dims:
        return input
    return input.sum(dims, keepdim=True).reshape(tuple(size))


@method()
def __reversed__(self: Tensor) -> Tensor:
    """Called by reversed(): the elements of the first dimension, the last one first."""
    return self.flip(0) if self.dim() else self


@method()
def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions in the order of their strides in memory, the slowest first.

    ambiguity_check  True: RuntimeError where other orders fit as well, since a size is
                     1 or strides are equal; a list of memory formats: sizes of 1 may
                     be there if the tensor is of exactly one of them

    >>> torch.ones(2, 3).T.dim_order()
    (1, 0)
    """
    strides = self.stride()
    moving = [d for d in range(self.dim()) if strides[d]]
    slowest = iter(sorted(moving, key=lambda d: (-strides[d], -self.shape[d])))
    order = tuple(next(slowest) if strides[d] else d for d in range(self.dim()))
    formats = ambiguity_check
    if isinstance(formats, bool):
        formats = [] if formats else None
    elif not isinstance(formats, list) or not all(
        isinstance(each, _C.memory_format) for each in formats
    ):
        raise TypeError(
            f"ambiguity_check is {formats!r}; give True, False or a list of memory "
            "formats"
        )
    if formats is None:
        return order
    if 0 not in strides and len({*strides}) == self.dim():
        fitting = [f for f in formats if self.is_contiguous(memory_format=f)]
        if 1 not in self.shape or len(fitting) == 1:
            return order
    raise RuntimeError(
        f"a tensor of shape {tuple(self.shape)} and strides {strides} has no unique "
        "order of dimensions, and is not of exactly one of the memory formats given"
    )
