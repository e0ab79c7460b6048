"""The array API standard's linear algebra."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor import linalg as _library
from pydevtensor._names import publish as _publish
from pydevtensor.array_api._operands import alike, spread
from pydevtensor.array_api.products import matmul, matrix_transpose, tensordot, vecdot

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh"]
__all__ += ["inv", "matmul"]
__all__ += ["matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer"]
__all__ += ["pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace"]
__all__ += ["vecdot", "vector_norm"]

# The library's own, which agree with the standard.
cholesky, det, diagonal = _library.cholesky, _library.det, _library.diagonal
eig, eigvals, inv = _library.eig, _library.eigvals, _library.inv
eigh, eigvalsh = _library.eigh, _library.eigvalsh
matrix_power, matrix_rank = _library.matrix_power, _library.matrix_rank
outer, pinv, qr = torch.outer, _library.pinv, _library.qr
slogdet, svd, svdvals = _library.slogdet, _library.svd, _library.svdvals


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector products of the vectors of 3 elements along a dimension.

    The other dimensions broadcast, also those that only one operand has.

    >>> import pydevtensor.array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    tensor([0, 0, 1])
    """
    ndim = max(x1.ndim, x2.ndim)
    # PyTorch's wants as many dimensions of both.
    same = (x[(None,) * (ndim - x.ndim)] for x in alike(x1, x2))
    return _library.cross(*same, dim=axis)


def matrix_norm(
    x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro"
) -> Tensor:
    """The norms of the matrices in the last two dimensions, of linalg.matrix_norm's orders.

    >>> import pydevtensor.array_api as xp
    >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """  # noqa: E501
    order = "fro" if ord is None else ord
    return _library.matrix_norm(x, order, (-2, -1), keepdims)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of x1 @ y == x2, where x2 is a vector only if it has one dimension.

    >>> import pydevtensor.array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 4.0]))
    tensor([1., 1.])
    """
    x1, x2 = alike(x1, x2)
    if x2.ndim == 1:
        return _library.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    if x2.ndim == x1.ndim - 1:  # the library might take matrices for vectors
        x2 = x2.unsqueeze(0)
    return _library.solve(x1, x2)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums along a diagonal of the matrices in the last two dimensions.

    >>> import pydevtensor.array_api as xp
    >>> xp.linalg.trace(xp.eye(3))
    tensor(3.)
    """
    return _library.diagonal(x, offset=offset).sum(-1, dtype=dtype)


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Tensor:
    """The norm of x as one vector, or of the vectors along dimensions.

    >>> import pydevtensor.array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
    tensor(5.)
    """
    x, axis, keepdims = spread(x, axis, keepdims)
    return _library.vector_norm(x, ord, axis, keepdims)


_publish(__name__, errors=True)
