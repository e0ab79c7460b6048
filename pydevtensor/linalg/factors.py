"""Triangular factorizations: Cholesky's, LU and QR, and triangular systems."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor._autocast import casts
from pydevtensor._C import Tensor
from pydevtensor._functions import function
from pydevtensor.autograd import Function
from pydevtensor.linalg import lapack
from pydevtensor.linalg.lapack import TRANSPOSED, UNIT, UPPER


class _Triangular(Function):
    """op(A) X = B, the flags saying which triangle and what op is."""

    _node = "LinalgSolveTriangularBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor, B: Tensor, flags: int) -> Tensor:
        X = lapack.triangular(A, B, flags)
        ctx.flags = flags
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Any, ...]:
        A, X = ctx.saved_tensors
        gB = _Triangular.apply(A, G, ctx.flags ^ TRANSPOSED)
        if not ctx.needs_input_grad[0]:
            return None, gB, None
        gA = -(X @ gB.mH if ctx.flags & TRANSPOSED else gB @ X.mH)
        inner = 1 if ctx.flags & UNIT else 0
        gA = gA.triu(inner) if ctx.flags & UPPER else gA.tril(-inner)
        return gA, gB, None


@function(out=True)
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X of A X = B, or of X A = B with left=False, for triangular matrices A.

    The other triangle is not read, with unitriangular neither the diagonal, which
    counts as ones. Batches broadcast. A 0 on the diagonal gives inf or nan.

    upper: read A's upper triangle, else its lower one.

    >>> import pydevtensor as torch
    >>> A = torch.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> torch.linalg.solve_triangular(A, torch.tensor([[2.0], [3.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    lapack.square(A)
    lapack.matrices(B, "B")
    lapack.alike(A, B)
    if A.shape[-1] != B.shape[-2 if left else -1]:
        raise RuntimeError(
            f"the shapes {tuple(A.shape)} and {tuple(B.shape)} do not fit: B needs "
            f"{A.shape[-1]} {'rows' if left else 'columns'}"
        )
    flags = UPPER * upper | UNIT * unitriangular
    if left:
        return _Triangular.apply(*lapack.broadcast(A, B), flags)
    A, B = lapack.broadcast(A, B.mH)
    return _Triangular.apply(A, B, flags | TRANSPOSED).mH


class _Cholesky(Function):
    """Murray, Differentiation of the Cholesky decomposition (2016)."""

    _node = "LinalgCholeskyExBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor, upper: bool) -> tuple[Any, ...]:
        L, info = lapack.cholesky(A.mH if upper else A)
        L = L.tril()
        ctx.save_for_backward(L)
        ctx.mark_non_differentiable(info)
        return L, info

    @staticmethod
    def backward(ctx: Any, G: Tensor, _: Any) -> tuple[Any, ...]:
        (L,) = ctx.saved_tensors
        P = (L.mH @ G).tril()
        P = _Triangular.apply(L, (P + P.tril(-1).mH) / 2, TRANSPOSED)
        return _Triangular.apply(L, P.mH, TRANSPOSED).mH, None


@function(out=True)
@casts(cpu="float32")
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L of A = L L^H, or U of A = U^H U with upper, for positive definite matrices A.

    Such matrices are symmetric, or Hermitian; ^H is the conjugate transpose, of real
    matrices the transpose. Only the lower triangle is read. LinAlgError where A is not
    positive definite.

    >>> import pydevtensor as torch
    >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    lapack.square(A)
    L, info = _Cholesky.apply(A, upper)
    lapack.succeeded(
        info, "is not positive definite: its minor of order {0} is not positive"
    )
    return L.mH if upper else L


@function(out=True, results=("L", "info"))
@casts(cpu="float32")
def cholesky_ex(
    A: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, ...]:
    """cholesky() that does not raise: (L, info).

    info, int32, is 0, or the order of the first minor that is not positive.

    upper         give U of A = U^H U in place of L
    check_errors  raise LinAlgError where info is not 0

    >>> import pydevtensor as torch
    >>> torch.linalg.cholesky_ex(-torch.eye(2)).info
    tensor(1, dtype=torch.int32)
    """
    lapack.square(A)
    L, info = _Cholesky.apply(A, upper)
    if check_errors:
        lapack.succeeded(info, "is not positive definite (minor {0})")
    return (L.mH if upper else L, info)


# --- LU -----------------------------------------------------------------------------


def rows_of(pivots: Tensor, m: int, dtype: Any) -> Tensor:
    """The matrix P of A = P L U from LAPACK's exchanges of rows."""
    batch, count = pivots.shape[:-1], pivots.shape[-1]
    order = _C.arange(m, device=pivots.device).expand(*batch, m).clone()
    for i in range(count):  # exchange i and the pivot, in every matrix
        j = pivots[..., i : i + 1].long() - 1
        kept = order[..., i : i + 1].clone()
        order[..., i : i + 1] = order.gather(-1, j)
        order.scatter_(-1, j, kept)
    P = _C.zeros(*batch, m, m, dtype=dtype, device=pivots.device)
    return P.scatter_(-2, order.unsqueeze(-2), 1.0)


def halves(LU: Tensor) -> tuple[Tensor, Tensor]:
    """L with its ones, and U."""
    m, n = LU.shape[-2:]
    least = min(m, n)
    L = LU[..., :, :least].tril(-1)
    eye = _C.eye(m, least, dtype=LU.dtype, device=LU.device)
    return L + eye, LU[..., :least, :].triu()


def _lu_gradient(P: Tensor, L: Tensor, U: Tensor, gL: Tensor, gU: Tensor) -> Tensor:
    """For square matrices P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H; what is below
    or beside the square part follows from it."""
    m, n = L.shape[-2], U.shape[-1]
    k = min(m, n)
    L1, U1 = L[..., :k, :], U[..., :, :k]
    below = L1.mH @ gL[..., :k, :]
    above = gU[..., :, :k] @ U1.mH
    if n > k:
        below = below - gU[..., :, k:] @ U[..., :, k:].mH
    if m > k:
        above = above - L[..., k:, :].mH @ gL[..., k:, :]
    core = below.tril(-1) + above.triu()
    core = solve_triangular(U1.mH, core, upper=False, left=False)
    core = solve_triangular(L1.mH, core, upper=True, unitriangular=True)
    if n > k:
        beside = solve_triangular(L1.mH, gU[..., :, k:], upper=True, unitriangular=True)
        core = _C.cat([core, beside], -1)
    if m > k:
        under = solve_triangular(U1.mH, gL[..., k:, :], upper=False, left=False)
        core = _C.cat([core, under], -2)
    return P @ core


class _LU(Function):
    _node = "LinalgLuFactorExBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> tuple[Any, ...]:
        LU, pivots, info = lapack.lu(A)
        ctx.save_for_backward(LU, pivots)
        ctx.mark_non_differentiable(pivots, info)
        return LU, pivots, info

    @staticmethod
    def backward(ctx: Any, G: Tensor, *_: Any) -> Tensor:
        LU, pivots = ctx.saved_tensors
        least = min(LU.shape[-2:])
        P = rows_of(pivots, LU.shape[-2], LU.dtype)
        gL, gU = G[..., :, :least].tril(-1), G[..., :least, :].triu()
        return _lu_gradient(P, *halves(LU), gL, gU)


def _factored(A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    lapack.matrices(A)
    if not pivot:
        raise RuntimeError("pivot is False, which LAPACK does not have; leave it out")
    return _LU.apply(A)


@function(out=True, results=("LU", "pivots"))
def lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, ...]:
    """L and U of A = P L U in one matrix, for lu_solve(): (LU, pivots).

    pivots, int32, say which row each row was exchanged with, from 1. RuntimeError
    where U has a 0 on its diagonal.

    pivot: only True, which exchanges rows; RuntimeError for False.

    See also solve(), which needs no factors.

    >>> import pydevtensor as torch
    >>> torch.linalg.lu_factor(torch.tensor([[0.0, 2.0], [1.0, 0.0]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    LU, pivots, info = _factored(A, pivot)
    lapack.succeeded(
        info,
        "is singular: element {0} of U's diagonal is 0, from 1; see lu_factor_ex()",
        RuntimeError,
    )
    return (LU, pivots)


@function(out=True, results=("LU", "pivots", "info"))
def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, ...]:
    """lu_factor() that does not raise: (LU, pivots, info).

    A and pivot are those of lu_factor(). info, int32, is 0, or the index on U's
    diagonal, from 1, of a 0. check_errors: raise LinAlgError where there is one.

    >>> import pydevtensor as torch
    >>> torch.linalg.lu_factor_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    found = _factored(A, pivot)
    if check_errors:
        lapack.succeeded(found[2], "is singular ({0})")
    return found


@function(out=True, results=("P", "L", "U"))
def lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, ...]:
    """A as a permutation, a lower and an upper triangular matrix: (P, L, U).

    A: (..., m, n). pivot: only True, which exchanges rows; RuntimeError for False.

    See also lu_factor(), whose result solves equations.

    >>> import pydevtensor as torch
    >>> torch.linalg.lu(torch.tensor([[1.0, 2.0], [2.0, 2.0]])).U
    tensor([[2., 2.],
            [0., 1.]])
    """
    LU, pivots, _ = _factored(A, pivot)
    P = rows_of(pivots, A.shape[-2], A.dtype)
    return (P, *halves(LU))


# --- QR -----------------------------------------------------------------------------


def _qr_square(Q: Tensor, R: Tensor, gQ: Tensor, gR: Tensor) -> Tensor:
    M = R @ gR.mH - gQ.mH @ Q
    diagonal = M.diagonal(dim1=-2, dim2=-1).real.diag_embed()  # as that of R is
    M = M.tril(-1) + M.tril(-1).mH + diagonal
    return solve_triangular(R.mH, gQ + Q @ M, upper=False, left=False)


class _QR(Function):
    """Walter and Lehmann, Algorithmic differentiation of linear algebra functions
    (2018); Liao et al., Differentiable programming tensor networks (2019)."""

    _node = "LinalgQrBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor, mode: str) -> tuple[Any, ...]:
        Q, R = lapack.qr(A, mode)
        ctx.mode = mode
        ctx.save_for_backward(A, Q, R)
        return Q, R

    @staticmethod
    def backward(ctx: Any, gQ: Tensor, gR: Tensor) -> tuple[Any, ...]:
        A, Q, R = ctx.saved_tensors
        m, n = A.shape[-2:]
        if ctx.mode == "r":
            raise RuntimeError(
                "qr: mode='r' has no derivative, which needs Q; use mode='reduced'"
            )
        if ctx.mode == "complete" and m > n:
            raise RuntimeError(
                "qr: mode='complete' has no derivative where there are more rows than "
                "columns; use mode='reduced'"
            )
        if m >= n:
            return _qr_square(Q, R, gQ, gR), None
        # R is (U, V) and A (X, Y): X = Q U, Y = Q V.
        Y, gV = A[..., :, m:], gR[..., :, m:]
        gX = _qr_square(Q, R[..., :, :m], gQ + Y @ gV.mH, gR[..., :, :m])
        return _C.cat([gX, Q @ gV], -1), None


@function(out=True, results=("Q", "R"))
@casts(cpu="float32")
def qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, ...]:
    """A = Q R with orthonormal columns of Q and an upper triangular R: (Q, R).

    mode: "reduced", "complete" (a square Q) or "r" (an empty Q). RuntimeError for
    others. Derivatives where Q has as many columns as the lesser size of A.

    >>> import pydevtensor as torch
    >>> torch.linalg.qr(torch.ones(3, 2)).R.shape
    torch.Size([2, 2])
    """
    lapack.matrices(A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"mode is {mode!r}; give 'reduced', 'complete' or 'r'")
    return _QR.apply(A, mode)


@function(out=True)
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections I - tau[i] v v.mH.

    input (..., m, n) has v of the reflection i in its column i, below the diagonal; v
    is 1 there and 0 above. tau (..., k) has up to n elements, and n is at most m;
    RuntimeError for others. By the triangular form of the product (Walker, 1988).

    >>> import pydevtensor as torch
    >>> torch.linalg.householder_product(torch.zeros(2, 2), torch.tensor([2.0, 0.0]))
    tensor([[-1.,  0.],
            [ 0.,  1.]])
    """
    lapack.matrices(input)
    lapack.alike(input, tau)
    m, n = input.shape[-2:]
    k = tau.shape[-1] if tau.dim() else n + 1
    if m < n or n < k or tau.shape[:-1] != input.shape[:-2]:
        raise RuntimeError(
            f"input has the shape {tuple(input.shape)} and tau {tuple(tau.shape)}; "
            "give (..., m, n) and (..., k), where m is not less than n and n not less "
            "than k"
        )
    one = _C.eye(m, n, dtype=input.dtype, device=input.device)
    if not k:
        return input.clone().copy_(one)
    V, W = triangular_form(input, tau)
    return one - V @ W[..., :n]


def triangular_form(input: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """V and W of the product of reflections, I - V W."""
    m, k = input.shape[-2], tau.shape[-1]
    one = _C.eye(m, k, dtype=input.dtype, device=input.device)
    V, column = input[..., :k].tril(-1) + one, tau.unsqueeze(-1)
    inner = (V.mH @ V).triu(1) * column
    return V, solve_triangular(inner, V.mH * column, upper=True, unitriangular=True)
