"""Views as tensors of their own memory: PyTorch's names that end in _copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dims, Sizes, Tensor


def _of(view: Any) -> Any:
    """A row-major tensor of the view's elements."""
    return view.clone(memory_format=_C.contiguous_format)


@function(out=True)
def alias_copy(input: Tensor) -> Tensor:
    """input as a tensor of its own memory.

    >>> torch.alias_copy(torch.ones(2))
    tensor([1., 1.])
    """
    return _of(input)


@function(out=True)
def detach_copy(input: Tensor) -> Tensor:
    """detach() as a tensor of its own memory.

    >>> torch.detach_copy(torch.ones(2))
    tensor([1., 1.])
    """
    return _of(input.detach())


@function(out=True)
def t_copy(input: Tensor) -> Tensor:
    """t() as a tensor of its own memory.

    >>> torch.t_copy(torch.tensor([[1, 2]]))
    tensor([[1],
            [2]])
    """
    return _of(input.t())


@function(out=True)
def view_as_real_copy(input: Tensor) -> Tensor:
    """view_as_real() as a tensor of its own memory.

    >>> torch.view_as_real_copy(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return _of(_C.view_as_real(input))


@function(out=True)
def view_as_complex_copy(input: Tensor) -> Tensor:
    """view_as_complex() as a tensor of its own memory.

    >>> torch.view_as_complex_copy(torch.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    return _of(_C.view_as_complex(input))


@function(out=True)
def view_copy(input: Tensor, size: Sizes) -> Tensor:
    """view() as a tensor of its own memory.

    size: as in view().

    >>> torch.view_copy(torch.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return _of(input.view(size))


@function(out=True)
def expand_copy(input: Tensor, size: Sizes, *, implicit: bool = False) -> Tensor:
    """expand() as a tensor of its own memory.

    size: as in expand(). implicit has no effect.

    >>> torch.expand_copy(torch.tensor([[1], [2]]), (2, 2))
    tensor([[1, 1],
            [2, 2]])
    """
    return _of(input.expand(size))


@function(out=True)
def permute_copy(input: Tensor, dims: Sizes) -> Tensor:
    """permute() as a tensor of its own memory.

    dims: as in permute().

    >>> torch.permute_copy(torch.tensor([[1, 2]]), (1, 0))
    tensor([[1],
            [2]])
    """
    return _of(input.permute(dims))


@function(out=True)
def transpose_copy(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """transpose() as a tensor of its own memory.

    dim0, dim1: as in transpose().

    >>> torch.transpose_copy(torch.tensor([[1, 2]]), 0, 1)
    tensor([[1],
            [2]])
    """
    return _of(input.transpose(dim0, dim1))


@function(out=True)
def select_copy(input: Tensor, dim: int, index: int) -> Tensor:
    """select() as a tensor of its own memory.

    dim, index: as in select().

    >>> torch.select_copy(torch.tensor([[1, 2]]), 1, 0)
    tensor([1])
    """
    return _of(input.select(dim, index))


@function(out=True)
def slice_copy(
    input: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Every step-th element from start to end along dim, as a tensor of its own memory.

    dim    the dimension
    start  the first element, None for 0; negative ones count from the end
    end    the one behind the last, None for all
    step   1 or more

    >>> torch.slice_copy(torch.arange(6), 0, 1, 5, 2)
    tensor([1, 3])
    """
    return _of(input.movedim(dim, 0)[start:end:step].movedim(0, dim))


@function(out=True)
def squeeze_copy(input: Tensor, dim: Dims | None = None) -> Tensor:
    """squeeze() as a tensor of its own memory.

    dim: as in squeeze().

    >>> torch.squeeze_copy(torch.ones(1, 2))
    tensor([1., 1.])
    """
    return _of(input.squeeze() if dim is None else input.squeeze(dim))


@function(out=True)
def unsqueeze_copy(input: Tensor, dim: int) -> Tensor:
    """unsqueeze() as a tensor of its own memory.

    dim: as in unsqueeze().

    >>> torch.unsqueeze_copy(torch.ones(2), 0)
    tensor([[1., 1.]])
    """
    return _of(input.unsqueeze(dim))


@function(out=True)
def unfold_copy(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """unfold() as a tensor of its own memory.

    dimension, size, step: as in Tensor.unfold().

    >>> torch.unfold_copy(torch.arange(4), 0, 2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    return _of(input.unfold(dimension, size, step))


@function(out=True)
def diagonal_copy(
    input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """diagonal() as a tensor of its own memory.

    offset, dim1, dim2: as in diagonal().

    >>> torch.diagonal_copy(torch.eye(2))
    tensor([1., 1.])
    """
    return _of(input.diagonal(offset, dim1, dim2))


@function(out=True)
def as_strided_copy(
    input: Tensor, size: Sizes, stride: Sizes, storage_offset: int | None = None
) -> Tensor:
    """as_strided() as a tensor of its own memory.

    size, stride, storage_offset: as in as_strided().

    >>> torch.as_strided_copy(torch.arange(4), (2,), (2,))
    tensor([0, 2])
    """
    return _of(_C.as_strided(input, size, stride, storage_offset))


@function()
def unbind_copy(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """unbind() with memory of its own for each part.

    dim: as in unbind().

    >>> torch.unbind_copy(torch.tensor([1, 2]))
    (tensor(1), tensor(2))
    """
    return tuple(map(_of, input.unbind(dim)))


@function()
def split_copy(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """split() with memory of its own for each part.

    split_size, dim: as in split().

    >>> torch.split_copy(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return tuple(map(_of, input.split(split_size, dim)))


@function()
def split_with_sizes_copy(
    input: Tensor, split_sizes: Sizes, dim: int = 0
) -> tuple[Tensor, ...]:
    """split() by sizes, with memory of its own for each part.

    split_sizes, dim: as in split().

    >>> torch.split_with_sizes_copy(torch.arange(3), (1, 2))
    (tensor([0]), tensor([1, 2]))
    """
    return tuple(map(_of, input.split(split_sizes, dim)))
