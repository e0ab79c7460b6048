"""Products of vectors and matrices, which the standard has beside linalg as well."""

from __future__ import annotations

from collections.abc import Sequence

from pydevtensor import _C
from pydevtensor._C import Tensor
from pydevtensor._functions.checks import named
from pydevtensor.array_api._operands import alike, promoted

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


@named
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product, of the operands' common type.

    >>> import pydevtensor.array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2]]), xp.asarray([3.0, 4.0]))
    tensor([11.])
    """
    return _C.matmul(*alike(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two dimensions exchanged: x.mT.

    >>> import pydevtensor.array_api as xp
    >>> xp.matrix_transpose(xp.zeros((2, 3, 4))).shape
    torch.Size([2, 4, 3])
    """
    return x.mT


@named
def tensordot(
    x1: Tensor,
    x2: Tensor,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
) -> Tensor:
    """The sum of products over dimensions of both operands.

    axes says how many, the last of x1 and the first of x2, or names them for each.

    >>> import pydevtensor.array_api as xp
    >>> xp.tensordot(xp.asarray([1, 2]), xp.asarray([3, 4]), axes=1)
    tensor(11)
    """
    if isinstance(axes, tuple):
        first, second = axes
        return _C.tensordot(*alike(x1, x2), (list(first), list(second)))
    return _C.tensordot(*alike(x1, x2), axes)


@named
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The products of the vectors along a dimension, of the operands' common type.

    >>> import pydevtensor.array_api as xp
    >>> xp.vecdot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
    tensor([3, 7])
    """
    products = _C.mul(*promoted(x1, x2))
    return products.sum(axis, dtype=products.dtype)
