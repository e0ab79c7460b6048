"""Products of vectors and matrices, which the standard has beside linalg as well."""

from __future__ import annotations

from collections.abc import Sequence

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor.array_api._operands import alike, promoted

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product, of the operands' common type.

    >>> import pydevtensor.array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2]]), xp.asarray([3.0, 4.0]))
    tensor([11.])
    """
    return torch.matmul(*alike(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two dimensions exchanged: x.mT.

    >>> import pydevtensor.array_api as xp
    >>> xp.matrix_transpose(xp.zeros((2, 3, 4))).shape
    torch.Size([2, 4, 3])
    """
    return x.mT


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """The sum of products over dimensions of both operands.

    axes says how many, the last of x1 and the first of x2, or names them for each.
    They have the same sizes, else ValueError: a size of 1 is not repeated.

    >>> import pydevtensor.array_api as xp
    >>> xp.tensordot(xp.asarray([1, 2]), xp.asarray([3, 4]), axes=1)
    tensor(11)
    """
    which: int | tuple[list[int], list[int]]
    if isinstance(axes, (tuple, list)):
        first, second = axes
        pairs = list(zip(first, second, strict=False))
        which = (list(first), list(second))
    else:
        pairs = [(x1.ndim - axes + i, i) for i in range(axes)]
        which = axes
    for one, two in pairs:
        _same_size(x1.size(one), x2.size(two))
    return torch.tensordot(*alike(x1, x2), which)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The products of the vectors along a dimension, of the operands' common type.

    Complex elements of x1 count as their conjugates.

    The other dimensions broadcast. This one has the same size in both, else ValueError.

    >>> import pydevtensor.array_api as xp
    >>> xp.vecdot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
    tensor([3, 7])
    """
    ndim = max(x1.ndim, x2.ndim)
    if -ndim <= axis < ndim:
        one, two = ((1,) * (ndim - x.ndim) + tuple(x.shape) for x in (x1, x2))
        _same_size(one[axis], two[axis])
    products = torch.mul(*promoted(x1.conj(), x2))
    return products.sum(axis, dtype=products.dtype)


def _same_size(one: int, two: int) -> None:
    """PyTorch would repeat a size of 1."""
    if one != two:
        raise ValueError(
            f"products are summed over a dimension with {one} elements in x1 and {two} "
            "in x2; give the same number"
        )
