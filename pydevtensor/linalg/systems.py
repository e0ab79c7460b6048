"""Systems of linear equations, inverses and determinants."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._autocast import casts
from pydevtensor._C import Tensor
from pydevtensor._functions import function
from pydevtensor._functions.dtypes import finfo
from pydevtensor.autograd import Function, enable_grad, grad
from pydevtensor.linalg import lapack
from pydevtensor.linalg.factors import solve_triangular
from pydevtensor.linalg.spectra import pinv, svdvals

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dims

_SINGULAR = "is singular: element {0} of the diagonal of U is 0, counted from 1"


def _eye(A: Tensor) -> Tensor:
    return _C.eye(A.shape[-1], dtype=A.dtype, device=A.device)


class _Solve(Function):
    """A X = B. The gradients: Giles, Collected Matrix Derivative Results (2008)."""

    _node = "LinalgSolveExBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor, B: Tensor) -> tuple[Any, ...]:
        LU, pivots, info = lapack.lu(A)
        X = lapack.lu_solve(LU, pivots, B)
        ctx.save_for_backward(A, X, LU, pivots)
        ctx.mark_non_differentiable(info)
        return X, info

    @staticmethod
    def backward(ctx: Any, G: Tensor, _: Any) -> tuple[Any, ...]:
        A, X, LU, pivots = ctx.saved_tensors
        if _C.is_grad_enabled():
            gB = _Solve.apply(A.mH, G)[0]
        else:
            gB = lapack.lu_solve(LU, pivots, G, True)
        gA = -gB @ X.mH if ctx.needs_input_grad[0] else None
        return gA, gB


class _Inverse(Function):
    _node = "LinalgInvExBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> tuple[Any, ...]:
        LU, pivots, info = lapack.lu(A)
        X = lapack.lu_solve(LU, pivots, _eye(A).expand(A.shape))
        ctx.save_for_backward(X)
        ctx.mark_non_differentiable(info)
        return X, info

    @staticmethod
    def backward(ctx: Any, G: Tensor, _: Any) -> Tensor:
        (X,) = ctx.saved_tensors
        return -X.mH @ G @ X.mH


def _diagonal(A: Tensor) -> tuple[Tensor, Tensor]:
    """U's diagonal, and 1 or -1 for the exchanges of rows."""
    LU, pivots, _ = lapack.lu(A)
    places = _C.arange(1, A.shape[-1] + 1, dtype=_C.int32, device=A.device)
    odd = (pivots != places).sum(-1) % 2
    return LU.diagonal(dim1=-2, dim2=-1), (1 - 2 * odd).to(A.dtype)


def _cofactors(A: Tensor) -> Tensor:
    """The conjugate of det(A), times inv(A)^H, also of a singular A: of the singular
    values, products of the others."""
    U, S, Vh, _ = lapack.svd(A, False)
    n = S.shape[-1]
    keep = _C.eye(n, dtype=_C.bool, device=A.device)
    others = _C.where(keep, 1.0, S.unsqueeze(-2)).prod(-1)
    sign = (det(U) * det(Vh)).conj()
    return (U * (others * sign.unsqueeze(-1)).unsqueeze(-2)) @ Vh


class _Det(Function):
    _node = "LinalgDetBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        diagonal, sign = _diagonal(A)
        result = diagonal.prod(-1) * sign
        ctx.save_for_backward(A, result)
        return result

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> Tensor:
        A, result = ctx.saved_tensors
        G = G[..., None, None]
        if (result != 0).all():
            inverse, _ = _Solve.apply(A.mH, _eye(A).expand(A.shape))
            return G * result.conj()[..., None, None] * inverse
        return G * _cofactors(A)


class _LogDet(Function):
    _node = "LinalgSlogdetBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> tuple[Any, ...]:
        diagonal, sign = _diagonal(A)
        sign = sign * diagonal.sgn().prod(-1)
        ctx.save_for_backward(A, sign)
        return sign, diagonal.abs().log().sum(-1)

    @staticmethod
    def backward(ctx: Any, turned: Tensor, G: Tensor) -> Tensor:
        A, sign = ctx.saved_tensors
        if A.is_complex():  # the sign is a direction
            G = _C.complex(G, (turned * sign.conj()).imag)
        inverse, _ = _Solve.apply(A.mH, _eye(A).expand(A.shape))
        return G[..., None, None] * inverse


def _inverse(A: Tensor) -> tuple[Tensor, Tensor]:
    lapack.square(A)
    X, info = _Inverse.apply(A)
    return X, info


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether B holds right-hand sides of one column: vectors."""
    return B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])


def _solved(A: Tensor, B: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    lapack.square(A)
    lapack.floats(B, "B")
    lapack.alike(A, B)
    vector = is_vector(A, B)
    if vector and not left:
        raise RuntimeError("B holds vectors; left=False takes matrices")
    B = B.unsqueeze(-1) if vector else B
    lapack.matrices(B, "B")
    if not left:
        A, B = A.mH, B.mH
    if A.shape[-1] != B.shape[-2]:
        raise RuntimeError(
            f"the shapes {tuple(A.shape)} and {tuple(B.shape)} do not fit: B needs "
            f"{A.shape[-1]} {'rows' if left else 'columns'}, one for each equation"
        )
    A, B = lapack.broadcast(A, B)
    X, info = _Solve.apply(A, B)
    return (X.squeeze(-1) if vector else X if left else X.mH), info


@function(out=True)
@casts(cpu="float32")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X of A X = B, or of X A = B with left=False, for square matrices A.

    B holds vectors where its shape is A's without the last dimension, or (n,). Batches
    broadcast. LinAlgError for a singular matrix; RuntimeError for other shapes and
    types than float32, float64 and the complex ones.

    >>> import pydevtensor as torch
    >>> A = torch.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> torch.linalg.solve(A, torch.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    X, info = _solved(A, B, left)
    lapack.succeeded(info, _SINGULAR)
    return X


@function(out=True, results=("result", "info"))
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, ...]:
    """solve() that does not raise: (result, info).

    A, B and left are those of solve(). info, int32, is not 0 for a singular matrix.
    check_errors: raise LinAlgError there.

    >>> import pydevtensor as torch
    >>> torch.linalg.solve_ex(torch.eye(2), torch.ones(2)).info
    tensor(0, dtype=torch.int32)
    """
    X, info = _solved(A, B, left)
    if check_errors:
        lapack.succeeded(info, _SINGULAR)
    return (X, info)


@function(out=True)
@casts(cpu="float32")
def inv(A: Tensor) -> Tensor:
    """The inverse of a square matrix A, or of each of a batch.

    LinAlgError for a singular matrix. To solve equations, solve() is quicker and
    nearer.

    >>> import pydevtensor as torch
    >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    X, info = _inverse(A)
    lapack.succeeded(info, _SINGULAR)
    return X


@function(out=True, results=("inverse", "info"))
@casts(cpu="float32")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, ...]:
    """inv(A) that does not raise: (inverse, info).

    info, int32, is not 0 for a singular matrix. check_errors: raise LinAlgError there.

    >>> import pydevtensor as torch
    >>> torch.linalg.inv_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    X, info = _inverse(A)
    if check_errors:
        lapack.succeeded(info, _SINGULAR)
    return (X, info)


@function(out=True)
def det(A: Tensor) -> Tensor:
    """The determinant of a square matrix A, or of each of a batch.

    See also slogdet(), which does not overflow.

    >>> import pydevtensor as torch
    >>> torch.linalg.det(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor(3.)
    """
    lapack.square(A)
    return _Det.apply(A)


@function(out=True, results=("sign", "logabsdet"))
def slogdet(A: Tensor) -> tuple[Tensor, ...]:
    """The determinant's sign, and the logarithm of its magnitude: (sign, logabsdet).

    A is a square matrix or a batch of them. A singular one has sign 0 and -inf.

    >>> import pydevtensor as torch
    >>> torch.linalg.slogdet(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """
    lapack.square(A)
    return _LogDet.apply(A)


@function(out=True)
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X of A X = B from lu_factor(A); with adjoint of A^H, with left=False of X A = B.

    LU, pivots: the results of lu_factor(). RuntimeError for shapes that do not fit.

    See also solve(), which needs no factors.

    >>> import pydevtensor as torch
    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[2.0], [3.0]]))
    tensor([[3.],
            [1.]])
    """
    lapack.check_factors("LU", LU, pivots, B, left)
    if pivots.dtype != _C.int32:
        raise RuntimeError(f"pivots are of {pivots.dtype}; give lu_factor's int32")
    if not left:  # X A = B is A^H X^H = B^H
        adjoint = not adjoint
        B = B.mH
    rows = _C.lu_unpack(LU, pivots, unpack_data=False)[0]
    if adjoint:
        X = solve_triangular(LU.mH, B, upper=False)
        X = solve_triangular(LU.mH, X, upper=True, unitriangular=True)
        X = rows @ X
    else:
        X = solve_triangular(LU, rows.mT @ B, upper=False, unitriangular=True)
        X = solve_triangular(LU, X, upper=True)
    return X if left else X.mH


@function(out=True)
@casts(cpu="float32")
def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number in the norm p: the norms of A and its inverse, multiplied.

    p None or 2: the greatest singular value divided by the least; -2: the reverse;
    else an order of matrix_norm, and square matrices. inf for singular ones.

    >>> import pydevtensor as torch
    >>> torch.linalg.cond(torch.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    from pydevtensor.linalg.norms import matrix_norm

    lapack.matrices(A)
    if p in (None, 2, -2):
        S = svdvals(A)
        first, last = (S[..., 0], S[..., -1]) if S.shape[-1] else (S.sum(-1),) * 2
        return last / first if p == -2 else first / last
    lapack.square(A)
    inverse, info = _Inverse.apply(A)
    result = matrix_norm(A, p) * matrix_norm(inverse, p)
    return _C.where(info != 0, math.inf, result)


class _LeastSquares(Function):
    """The derivative is that of pinv(A) @ B."""

    _node = "LinalgLstsqBackward0"

    @staticmethod
    def forward(
        ctx: Any, A: Tensor, B: Tensor, rcond: float, driver: str
    ) -> tuple[Any, ...]:
        X, rank, S, info = lapack.least_squares(A, B, rcond, driver)
        n = A.shape[-1]
        rest = X[..., n:, :].abs().square().sum(-2)
        ctx.save_for_backward(A, B)
        ctx.mark_non_differentiable(rest, rank, S, info)
        return X[..., :n, :], rest, rank, S, info

    @staticmethod
    def backward(ctx: Any, G: Tensor, *_: Any) -> tuple[Any, ...]:
        A, B = ctx.saved_tensors
        again = _C.is_grad_enabled()
        with enable_grad():
            given = [x if again else x.detach().requires_grad_() for x in (A, B)]
            wanted = [x for x in given if x.requires_grad]
            found = iter(grad(pinv(given[0]) @ given[1], wanted, G, create_graph=again))
        return *(next(found) if x.requires_grad else None for x in given), None, None


@function(out=True, results=("solution", "residuals", "rank", "singular_values"))
@casts(cpu="float32")
def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Tensor, ...]:
    """The X with the least |A X - B|: (solution, residuals, rank, singular_values).

    Singular values up to rcond times the greatest count as 0; by default rcond is the
    type's eps times the greater size. driver: "gelsy" (the default), "gelsd", "gelss",
    or "gels" for matrices of full rank, the only one on a GPU, where it is the default
    and other matrices give inf or nan. residuals are empty for gelsy, and unless there
    are more rows than columns, of full rank. singular_values come from gelsd and gelss.

    >>> import pydevtensor as torch
    >>> A = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> torch.linalg.lstsq(A, torch.tensor([[1.0], [3.0], [5.0]])).solution
    tensor([[1.0000],
            [2.0000]])
    """
    lapack.matrices(A)
    lapack.floats(B, "B")
    lapack.alike(A, B)
    known = ("gels",) if A.is_cuda else ("gelsy", "gels", "gelsd", "gelss")
    driver = known[0] if driver is None else driver.lower()
    if driver not in known:
        raise RuntimeError(
            f"driver is {driver!r}; on {A.device.type} give {' or '.join(known)}"
        )
    m, n = A.shape[-2:]
    vector = A.dim() - 1 == B.dim() and B.shape == A.shape[:-1]
    B = B.unsqueeze(-1) if vector else B
    if B.dim() < 2 or B.shape[-2] != m:
        raise RuntimeError(
            f"the shapes {tuple(A.shape)} and {tuple(B.shape)} do not fit: B needs "
            f"{m} rows"
        )
    if rcond is None:
        rcond = float(finfo(A.dtype).eps) * max(m, n)
    found = _LeastSquares.apply(*lapack.broadcast(A, B), rcond, driver)
    X, rest, rank, S, info = found
    lapack.succeeded(info, "has no full rank, or does not converge ({0})")
    if m <= n or driver == "gelsy" or (driver != "gels" and not (rank == n).all()):
        rest = X.real.reshape(-1)[:0]
    elif X.requires_grad:
        rest = (A @ X - B).abs().square().sum(-2)
    X = X.squeeze(-1) if vector else X
    rank = A.new_empty(0, dtype=_C.int64) if driver == "gels" else rank.long()
    S = S if driver in ("gelsd", "gelss") else S.new_empty(0)
    return (X, rest, rank, S)


@function(out=True)
@casts(cpu="float32")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a map of its last dimensions to its first `ind` ones.

    >>> import pydevtensor as torch
    >>> torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 4), ind=2).shape
    torch.Size([4, 2, 2])
    """
    if ind <= 0:
        raise RuntimeError(f"ind is {ind}; give 1 or more")
    first, last = A.shape[:ind], A.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise RuntimeError(
            f"the first {ind} of the sizes {tuple(A.shape)} multiply to "
            f"{math.prod(first)} and the others to {math.prod(last)}; make them agree"
        )
    flat = A.reshape(math.prod(first), math.prod(last))
    return inv(flat).reshape(*last, *first)


@function(out=True)
@casts(cpu="float32")
def tensorsolve(A: Tensor, B: Tensor, dims: Dims | None = None) -> Tensor:
    """X of tensordot(A, X, X.ndim) = B. dims: dimensions of A to move to the end.

    >>> import pydevtensor as torch
    >>> A = torch.eye(6).reshape(2, 3, 2, 3)
    >>> torch.linalg.tensorsolve(A, torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    if dims is not None:
        ends = range(A.dim() - len(dims), A.dim())
        A = A.movedim(tuple(dims), tuple(ends))
    shape = A.shape[B.dim() :]
    if math.prod(shape) != B.numel() or A.numel() != B.numel() ** 2:
        raise RuntimeError(
            f"the shapes {tuple(A.shape)} and {tuple(B.shape)} do not make a square "
            "system"
        )
    flat = A.reshape(-1, math.prod(shape))
    return solve(flat, B.reshape(-1)).reshape(shape)
