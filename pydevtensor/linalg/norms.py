"""Norms and products of vectors and matrices, under torch.linalg's names."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._autocast import casts
from pydevtensor._functions import function
from pydevtensor._functions.checks import at_least, dimension, floating
from pydevtensor._functions.linalg import chain

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dims, Dtype, Tensor, Tensors


@function(out=True)
def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
) -> Tensor:
    """The norm of order `ord` of x as one vector, or of the vectors along dim.

    ord is any number, also 0 (how many elements are not 0) and inf. RuntimeError for
    Tensors of integers.

    keepdim  the reduced dimensions stay, with size 1
    dtype    convert x to it first; RuntimeError for one that holds less

    >>> import pydevtensor as torch
    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    return x.norm(ord, dim, keepdim, dtype=dtype)


def _extreme(x: Tensor, ord: float, dim: int, keepdim: bool = False) -> Tensor:
    """The maximum of numbers from 0 on, or 0; for a negative ord the minimum."""
    if ord < 0:
        return x.amin(dim, keepdim)
    return x.amax(dim, keepdim) if x.shape[dim] else x.sum(dim, keepdim)


@function(out=True)
def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Dims = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
) -> Tensor:
    """The norm of the matrices in the two dimensions dim.

    ord is "fro" (the root of the sum of squares), "nuc" (the sum of singular values), 2
    or -2 (the greatest or least of them), 1 or -1 (the greatest or least sum of a
    column's magnitudes), inf or -inf (of a row's). RuntimeError for other orders and
    for Tensors of integers.

    keepdim  the reduced dimensions stay, with size 1
    dtype    convert A to it first; RuntimeError for one that holds less

    >>> import pydevtensor as torch
    >>> torch.linalg.matrix_norm(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    if not A.is_complex():
        floating("the input", A)
    if A.dim() < 2:
        raise RuntimeError(
            f"the input has the shape {tuple(A.shape)}; give at least two dimensions"
        )
    if len(dim) != 2:
        raise RuntimeError(f"dim is {dim!r}; give a tuple of two ints")
    rows, columns = (dimension(A, d) for d in dim)
    if rows == columns:
        raise RuntimeError(f"dim is {dim!r}; give two different ints")
    if dtype is not None:
        if _C.promote_types(A.dtype, dtype) != dtype:
            raise RuntimeError(
                f"dtype is {dtype}, which does not hold every element of {A.dtype}; "
                "give a wider one, or convert the result"
            )
        A = A.to(dtype)
    if ord == "fro":
        return A.norm(2, dim=(rows, columns), keepdim=keepdim)
    if ord in ("nuc", 2, -2):
        from pydevtensor.linalg.spectra import svdvals

        S = svdvals(A.movedim((rows, columns), (-2, -1)))
        value = S.sum(-1) if ord == "nuc" else _extreme(S, float(ord), -1)
        for place in sorted((rows, columns)) if keepdim else ():
            value = value.unsqueeze(place)
        return value
    if ord not in (1, -1, inf, -inf):
        raise RuntimeError(
            f"there is no norm of order {ord!r}; use 'fro', 'nuc', 1, -1, 2, -2, inf "
            "or -inf"
        )
    first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = A.abs().sum(first, keepdim=True)
    result = _extreme(sums, ord, second, keepdim=True)
    if not keepdim:
        result = result.squeeze((rows, columns))
    return result


def call_nuclear_norm(
    what: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor:
    """torch.norm(x, "nuc"), which the extension leaves to this function."""

    from pydevtensor import linalg

    def norm(input, p, dim=None, keepdim=False, out=None, dtype=None):
        dims = range(input.dim()) if dim is None else dim
        dims = (dims,) if isinstance(dims, int) else tuple(dims)
        return linalg.matrix_norm(input, p, dims, keepdim, dtype=dtype, out=out)

    return norm(*args, **kwargs)


@function()
def norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
) -> Tensor:
    """A vector's or a matrix's norm, by the number of dimensions.

    Without ord, the root of the sum of squares of all elements, or along dim. With ord,
    vector_norm for one dimension and matrix_norm for two.

    keepdim: the reduced dimensions stay, with size 1. dtype: convert A to it first.

    >>> import pydevtensor as torch
    >>> torch.linalg.norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor(5.)
    """
    count = A.dim() if dim is None else len({dimension(A, d) for d in dim})
    if dim is not None and count < len(dim):
        raise RuntimeError(f"dim is {dim!r}; name each dimension once")
    if ord is None:
        return A.norm(2, dim, keepdim, dtype=dtype)
    if count == 1 and not isinstance(ord, str):
        return vector_norm(A, ord, dim, keepdim, dtype=dtype)
    if dim is None and count not in (1, 2):
        raise RuntimeError(
            f"ord is {ord!r} and the input has {count} dimensions; give dim, or one or "
            "two dimensions"
        )
    both = (-2, -1) if dim is None else dim
    return matrix_norm(A, ord, both, keepdim, dtype=dtype)


@function(out=True)
def multi_dot(tensors: Tensors) -> Tensor:
    """The product of two or more matrices, in the order that costs the least.

    tensors: a sequence, whose first and last may be vectors. RuntimeError where they do
    not fit together.

    >>> import pydevtensor as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)])
    tensor([12., 12.])
    """
    matrices = list(tensors)
    at_least(2, "the number of Tensors", len(matrices))
    row, column = matrices[0].dim() == 1, matrices[-1].dim() == 1
    if row:
        matrices[0] = matrices[0].unsqueeze(0)
    if column:
        matrices[-1] = matrices[-1].unsqueeze(1)
    for place, each in enumerate(matrices):
        if each.dim() != 2:
            raise RuntimeError(
                f"Tensor {place} has the shape {tuple(each.shape)}; give matrices, or "
                "vectors as the first and the last"
            )
    result = chain(matrices)
    result = result.squeeze(0) if row else result
    return result.squeeze(-1) if column else result


@function(out=True)
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of 3 elements along dim, broadcasting.

    >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return _C.cross(input, other, dim)


@function(out=True)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of vectors, matrices or batches of matrices.

    >>> torch.linalg.matmul(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    return _C.matmul(input, other)


@function(out=True)
def matrix_power(A: Tensor, n: int) -> Tensor:
    """A square matrix, or a batch of them, multiplied n times with itself.

    >>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    return _C.matrix_power(A, n)


@function(out=True)
@casts(cpu="lower", cuda="lower")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The inner products of vectors along dim, broadcasting.

    x, y: Tensors of a floating or complex type (RuntimeError); x is conjugate.

    See also tensordot(), over several dimensions.

    >>> import pydevtensor as torch
    >>> torch.linalg.vecdot(torch.ones(2, 3), torch.tensor([1.0, 2.0, 3.0]))
    tensor([6., 6.])
    """
    if not (x.is_complex() or y.is_complex()):
        floating("x", x)
        floating("y", y)
    return (x.conj() * y).sum(dim)


@function()
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Powers 0 to N - 1 of each element of vectors x, as rows.

    N: above 1 (RuntimeError), by default the size of the last dimension.

    >>> import pydevtensor as torch
    >>> torch.linalg.vander(torch.tensor([2, 3]))
    tensor([[1, 2],
            [1, 3]])
    """
    if x.dim() < 1:
        x = x.unsqueeze(0)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError(f"N is {count}; give more than 1")
    if x.dtype == _C.bool:
        x = x.long()
    first = _C.ones_like(x).unsqueeze(-1)
    rest = x.unsqueeze(-1).expand(*x.shape, count - 1).cumprod(-1)
    return _C.cat([first, rest.to(x.dtype)], -1)


@function()
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of the matrices A, a view.

    offset: how far above (or, negative, below) the main one. dim1, dim2: the dimensions
    of rows and columns.

    >>> torch.linalg.diagonal(torch.eye(2))
    tensor([1., 1.])
    """
    return _C.diagonal(A, offset, dim1, dim2)
