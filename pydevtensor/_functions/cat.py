"""Relatives of cat and stack, and tensors brought to one shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor, Tensors


def _cat(tensors: list[Tensor], dim: int) -> Tensor:
    if not tensors:
        raise RuntimeError("no Tensors were given; give at least one")
    return _C.cat(tensors, dim)


@function(out=True)
def hstack(tensors: Tensors) -> Tensor:
    """Concatenates along dimension 1, vectors along 0.

    tensors: Tensors that cat() takes; numbers become vectors.

    >>> torch.hstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([1, 2, 3, 4])
    """
    parts = [_at_least(1, x) for x in tensors]
    return _cat(parts, 0 if parts and parts[0].dim() == 1 else 1)


@function(out=True, aliases=("row_stack",))
def vstack(tensors: Tensors) -> Tensor:
    """Concatenates along dimension 0, vectors as rows.

    tensors: Tensors that cat() takes; numbers and vectors of size n become (1, n).

    >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return _cat([_at_least(2, x) for x in tensors], 0)


@function(out=True)
def dstack(tensors: Tensors) -> Tensor:
    """Concatenates atleast_3d of each tensor along dimension 2.

    tensors: Tensors of which cat() takes what atleast_3d() makes.

    >>> torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[[1, 3],
             [2, 4]]])
    """
    return _cat([_at_least(3, x) for x in tensors], 2)


@function(out=True)
def column_stack(tensors: Tensors) -> Tensor:
    """Concatenates along dimension 1, vectors as columns.

    tensors: Tensors that cat() takes; vectors and numbers become (n, 1).

    >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    return _cat([x if x.dim() > 1 else x.reshape(-1, 1) for x in tensors], 1)


def _at_least(n: int, x: Tensor) -> Tensor:
    """x with dimensions of size 1 added until it has n."""
    ndim = x.dim()
    while ndim < n:
        x = x.unsqueeze(2 if ndim == 2 else 0)
        ndim += 1
    return x


def _each_at_least(n: int, given: tuple[Any, ...]) -> Any:
    tensors = given[0] if len(given) == 1 else given
    if isinstance(tensors, _C.Tensor):
        return _at_least(n, tensors)
    if not isinstance(tensors, (tuple, list)):
        kind = type(tensors).__name__
        raise TypeError(f"tensors is {tensors!r} ({kind}); give Tensors")
    for i, x in enumerate(tensors):
        if not isinstance(x, _C.Tensor):
            kind = type(x).__name__
            raise TypeError(f"item {i} of tensors is {x!r} ({kind}); give Tensors")
    return tuple(_at_least(n, x) for x in tensors)


@function()
def atleast_1d(*tensors: Any) -> Any:
    """The tensors, a tuple of them for several, with at least 1 dimension: views.

    >>> torch.atleast_1d(torch.tensor(1))
    tensor([1])
    """
    return _each_at_least(1, tensors)


@function()
def atleast_2d(*tensors: Any) -> Any:
    """The tensors, a tuple of them for several, with at least 2 dimensions: views.

    A vector becomes a row.

    >>> torch.atleast_2d(torch.tensor(1))
    tensor([[1]])
    """
    return _each_at_least(2, tensors)


@function()
def atleast_3d(*tensors: Any) -> Any:
    """The tensors, a tuple of them for several, with at least 3 dimensions: views.

    The shape [n] becomes [1, n, 1], and [n, m] becomes [n, m, 1].

    >>> torch.atleast_3d(torch.tensor(1))
    tensor([[[1]]])
    """
    return _each_at_least(3, tensors)


@function()
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Views of the tensors, all broadcast to one shape.

    Raises RuntimeError if their shapes do not broadcast.

    >>> torch.broadcast_tensors(torch.tensor([1, 2]), torch.tensor([[3]]))
    (tensor([[1, 2]]), tensor([[3, 3]]))
    """
    shape = _C.broadcast_shapes(*(x.shape for x in tensors))
    return tuple(x.expand(shape) for x in tensors)
