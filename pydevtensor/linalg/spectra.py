"""Singular values, eigenvalues, and functions computed from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._autocast import casts
from pydevtensor._C import Tensor
from pydevtensor._functions import function
from pydevtensor._functions.dtypes import finfo
from pydevtensor.autograd import Function
from pydevtensor.linalg import lapack

if TYPE_CHECKING:
    from pydevtensor._functions.types import Value

_NO_END = "does not converge ({0}); it may be badly scaled"


def _differences(L: Tensor) -> Tensor:
    """L[j] - L[i], with 1 on the diagonal."""
    E = L.unsqueeze(-2) - L.unsqueeze(-1)
    return E + _C.eye(L.shape[-1], dtype=L.dtype, device=L.device)


def _off_diagonal(X: Tensor) -> Tensor:
    return X - X.diagonal(dim1=-2, dim2=-1).diag_embed()


def _turned(X: Tensor, G: Tensor) -> Tensor:
    """By what a loss with the gradient G changes as vectors X turn in the complex
    plane."""
    return (X.conj() * G).sum(-2).imag


def _check_free(turned: Tensor) -> None:
    if not _C.allclose(turned, _C.zeros_like(turned), atol=1e-2):
        raise RuntimeError(
            "the loss depends on the direction in the complex plane of an eigenvector "
            "or a singular vector, which is free; use what is not, such as V.abs()"
        )


def _skew(X: Tensor) -> Tensor:
    """X - X^H without its diagonal, which is imaginary."""
    return _off_diagonal(X - X.mH) if X.is_complex() else X - X.mH


# --- singular values ----------------------------------------------------------------


class _SVD(Function):
    """Townsend, Differentiating the singular value decomposition (2016)."""

    _node = "LinalgSvdBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor, full: bool, driver: str | None) -> tuple[Any, ...]:
        U, S, Vh, info = lapack.svd(A, full, driver=driver)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(info)
        ctx.save_for_backward(U, S, Vh)
        return U, S, Vh, info

    @staticmethod
    def backward(ctx: Any, gU: Any, gS: Any, gVh: Any, _: Any) -> tuple[Any, ...]:
        U, S, Vh = ctx.saved_tensors
        (m, n), k = (U.shape[-2], Vh.shape[-1]), S.shape[-1]
        # The vectors beyond those of singular values are free, and get no gradient.
        U, Vh = U[..., :k], Vh[..., :k, :]
        gU = None if gU is None else gU[..., :k]
        gVh = None if gVh is None else gVh[..., :k, :]
        row, column = S.unsqueeze(-2), S.unsqueeze(-1)
        E = _differences(S * S)
        core = _C.zeros_like(E) if gS is None else gS.diag_embed()
        if gU is not None:
            core = core + _skew(U.mH @ gU) / E * row
        if gVh is not None:
            core = core + column * (_skew(Vh @ gVh.mH) / E)
        if U.is_complex() and not (gU is gVh is None):
            both = [(U, gU), (Vh.mH, None if gVh is None else gVh.mH)]
            turns = [_C.zeros_like(S) if g is None else _turned(x, g) for x, g in both]
            _check_free(turns[0] + turns[1])
            core = core + _C.complex(_C.zeros_like(S), turns[0] / S).diag_embed()
        core = core.to(U.dtype)
        left = U @ core
        if gU is not None and m > k:
            left = left + (gU - U @ (U.mH @ gU)) / row
        result = left @ Vh
        if gVh is not None and n > k:
            result = result + (U / row) @ (gVh - (gVh @ Vh.mH) @ Vh)
        return result, None, None


def checked_svd(
    A: Tensor, full: bool = False, driver: str | None = None
) -> tuple[Any, ...]:
    lapack.matrices(A)
    *found, info = _SVD.apply(A, full, driver)
    lapack.succeeded(info, _NO_END)
    return tuple(found)


@function(out=True, results=("U", "S", "Vh"))
@casts(cpu="float32")
def svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None
) -> tuple[Tensor, ...]:
    """A = U diag(S) Vh with orthonormal columns of U and rows of Vh: (U, S, Vh).

    S is descending. With full_matrices U and Vh are square; what a result owes to the
    columns of U and rows of Vh without a singular value is left out of gradients.
    driver, "gesvd", "gesvdj" or "gesvda", is for GPUs alone: gesvd, or Jacobi's method;
    None means gesvdj, and gesvd where that does not end. LinAlgError for inf and nan.

    >>> import pydevtensor as torch
    >>> torch.linalg.svd(torch.tensor([[0.0, 3.0], [4.0, 0.0]])).S
    tensor([4., 3.])
    """
    lapack.matrices(A)
    _check_driver(A, driver)
    return checked_svd(A, full_matrices, driver)


def _check_driver(A: Tensor, driver: Any) -> None:
    if driver is not None and not A.is_cuda:
        raise RuntimeError(f"driver is {driver!r}; leave it out: it is for GPUs")
    if driver not in (None, "gesvd", "gesvdj", "gesvda"):
        raise RuntimeError(f"driver is {driver!r}; give gesvd, gesvdj or gesvda")


@function(out=True)
@casts(cpu="float32")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of A, descending.

    driver is that of svd().

    See also svd().

    >>> import pydevtensor as torch
    >>> torch.linalg.svdvals(torch.tensor([[0.0, 3.0], [4.0, 0.0]]))
    tensor([4., 3.])
    """
    lapack.matrices(A)
    _check_driver(A, driver)
    if A.requires_grad and _C.is_grad_enabled():
        return checked_svd(A, driver=driver)[1]
    _, S, _, info = lapack.svd(A, False, vectors=False, driver=driver)
    lapack.succeeded(info, _NO_END)
    return S


# --- eigenvalues --------------------------------------------------------------------


class _Eigh(Function):
    """Giles, Collected Matrix Derivative Results (2008)."""

    _node = "LinalgEighBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor, upper: bool) -> tuple[Any, ...]:
        L, V, info = lapack.eigh(A, upper)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(info)
        ctx.save_for_backward(L, V)
        return L, V, info

    @staticmethod
    def backward(ctx: Any, gL: Any, gV: Any, _: Any) -> tuple[Any, ...]:
        L, V = ctx.saved_tensors
        if gV is None:
            return None if gL is None else (V * gL.unsqueeze(-2)) @ V.mH, None
        if V.is_complex():
            _check_free(_turned(V, gV))
        core = _skew(V.mH @ gV) / (2 * _differences(L))
        if gL is not None:
            core = core + gL.diag_embed()
        return V @ core @ V.mH, None


def _upper(UPLO: str) -> bool:
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"UPLO is {UPLO!r}; give 'L' or 'U', the triangle to read")
    return UPLO.upper() == "U"


@function(out=True, results=("eigenvalues", "eigenvectors"))
@casts(cpu="float32")
def eigh(A: Tensor, UPLO: str = "L") -> tuple[Tensor, ...]:
    """Eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices A.

    (eigenvalues, eigenvectors), the vectors being columns. Only the triangle that UPLO
    names, 'L' or 'U', is read. LinAlgError for inf and nan.

    >>> import pydevtensor as torch
    >>> torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    lapack.square(A)
    L, V, info = _Eigh.apply(A, _upper(UPLO))
    lapack.succeeded(info, _NO_END)
    return (L, V)


@function(out=True)
@casts(cpu="float32")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric or Hermitian matrices A, ascending.

    UPLO: 'L' or 'U', the triangle that is read (RuntimeError for others).

    See also eigh().

    >>> import pydevtensor as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    lapack.square(A)
    if A.requires_grad and _C.is_grad_enabled():
        L, _, info = _Eigh.apply(A, _upper(UPLO))
    else:
        L, _, info = lapack.eigh(A, _upper(UPLO), vectors=False)
    lapack.succeeded(info, _NO_END)
    return L


class _Eig(Function):
    """Giles (2008), and what keeps the vectors' length of 1."""

    _node = "LinalgEigBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> tuple[Any, ...]:
        L, V, info = lapack.eig(A)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(info)
        ctx.save_for_backward(L, V)
        ctx.is_complex = A.is_complex()
        return L, V, info

    @staticmethod
    def backward(ctx: Any, gL: Any, gV: Any, _: Any) -> Any:
        L, V = ctx.saved_tensors
        if gL is gV is None:
            return None
        core = _C.zeros_like(V) if gL is None else gL.diag_embed()
        if gV is not None:  # else eigenvalues may be equal
            W = V.mH @ gV
            turned = W.diagonal(dim1=-2, dim2=-1)
            _check_free(turned.imag)
            W = W - (V.mH @ V) * turned.real.unsqueeze(-2)
            core = core + _off_diagonal(W / _differences(L).conj())
        from pydevtensor.linalg.systems import solve

        result = solve(V.mH, core @ V.mH)
        return result if ctx.is_complex else result.real


def _finite(A: Tensor) -> None:
    lapack.square(A)
    if not A.isfinite().all():
        raise RuntimeError("the input has an element that is inf or nan; remove it")


@function(out=True, results=("eigenvalues", "eigenvectors"))
@casts(cpu="float32")
def eig(A: Tensor) -> tuple[Tensor, ...]:
    """Eigenvalues and eigenvectors (columns) of square matrices A, both complex.

    (eigenvalues, eigenvectors), in LAPACK's order; vectors have the length 1, and of
    complex matrices a direction that is free: RuntimeError for a gradient of it.

    >>> import pydevtensor as torch
    >>> torch.linalg.eig(torch.tensor([[1.0, 1.0], [0.0, 2.0]])).eigenvalues
    tensor([1.+0.j, 2.+0.j])
    """
    _finite(A)
    L, V, info = _Eig.apply(A)
    lapack.succeeded(info, _NO_END)
    return (L, V)


@function(out=True)
@casts(cpu="float32")
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices A, which are complex; see eig().

    >>> import pydevtensor as torch
    >>> torch.linalg.eigvals(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j])
    """
    _finite(A)
    if A.requires_grad and _C.is_grad_enabled():
        L, _, info = _Eig.apply(A)
    else:
        L, _, info = lapack.eig(A, vectors=False)
    lapack.succeeded(info, _NO_END)
    return L


# --- rank, pseudoinverse, exponential ------------------------------------------------


def _tolerance(A: Tensor, S: Tensor, atol: Any, rtol: Any) -> Any:
    """Up to what singular values count as 0."""
    if rtol is None:
        none = atol is not None and (isinstance(atol, Tensor) or atol > 0)
        rtol = 0.0 if none else finfo(A.dtype).eps * max(A.shape[-2:])
        if none and isinstance(atol, Tensor):
            default = finfo(A.dtype).eps * max(A.shape[-2:])
            rtol = _C.where(atol > 0, 0.0, default).to(S.dtype)
    greatest = S.amax(-1) if S.shape[-1] else S.sum(-1)
    limit = greatest * rtol
    if atol is not None:
        limit = limit.maximum(_C.as_tensor(atol, dtype=S.dtype, device=A.device))
    return limit.unsqueeze(-1)


@function(out=True)
@casts(cpu="float32")
def matrix_rank(
    A: Tensor,
    tol: Value | None = None,
    hermitian: bool = False,
    *,
    atol: Value | None = None,
    rtol: Value | None = None,
) -> Tensor:
    """How many singular values exceed max(atol, rtol * the greatest), int64.

    By default rtol is the type's eps times the greater size, or 0 where atol is given;
    tol is an older name of atol. hermitian: A is symmetric or Hermitian, and
    eigenvalues do.

    >>> import pydevtensor as torch
    >>> torch.linalg.matrix_rank(torch.ones(3, 3))
    tensor(1)
    """
    lapack.matrices(A)
    A = A.detach()
    S = eigvalsh(A).abs() if hermitian else svdvals(A)
    atol = tol if atol is None else atol
    if tol is not None and rtol is None:
        rtol = 0.0
    return (_tolerance(A, S, atol, rtol) < S).sum(-1)


class _Pinv(Function):
    """Golub and Pereyra, The differentiation of pseudo-inverses (1973)."""

    _node = "LinalgPinvBackward0"

    @staticmethod
    def forward(ctx: Any, A: Tensor, P: Tensor) -> Tensor:
        P = P.clone()
        ctx.save_for_backward(A, P)
        return P

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Any, ...]:
        A, P = ctx.saved_tensors
        gP, PG = G.mH @ P, P @ G.mH
        first = (gP - A @ (P @ gP)) @ P.mH
        second = P.mH @ (PG - (PG @ P) @ A)
        return first + second - P.mH @ G @ P.mH, None


def plain_pinv(A: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    """Without a derivative."""
    if hermitian:
        L, V, info = lapack.eigh(A, False)
        size = L.abs()
        U, S, Vh = V, L, V.mH
    else:
        U, S, Vh, info = lapack.svd(A, False)
        size = S
    lapack.succeeded(info, _NO_END)
    keep = size > _tolerance(A, size, atol, rtol)
    inverse = _C.where(keep, 1 / S, 0.0)
    return (Vh.mH * inverse.unsqueeze(-2)) @ U.mH


@function(out=True)
def pinv(
    A: Tensor,
    rcond: Value | None = None,
    hermitian: bool = False,
    *,
    atol: Value | None = None,
    rtol: Value | None = None,
) -> Tensor:
    """The pseudoinverse of A, a matrix or a batch of them (Moore and Penrose).

    Singular values up to max(atol, rtol * the greatest) count as 0; rcond is an older
    name of rtol. The derivative is that for a constant rank.

    hermitian: A is symmetric or Hermitian; its lower triangle is read, and eigenvalues
    count in place of singular values.

    >>> import pydevtensor as torch
    >>> torch.linalg.pinv(torch.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    lapack.matrices(A)
    rtol = rcond if rtol is None else rtol
    P = plain_pinv(A.detach(), atol, rtol, hermitian)
    return _Pinv.apply(A, P)


# Numerator of the Pade approximant of order 13; the denominator has alternate signs.
_PADE: tuple[int, ...] = (
    64764752532480000,
    32382376266240000,
    7771770303897600,
    1187353796428800,
)
_PADE += (129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920)
_PADE += (40840800, 960960, 16380, 182, 1)


@function()
def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of a square matrix A, or of each of a batch.

    By scaling, a Pade approximant of order 13 and squaring (Higham, The scaling and
    squaring method for the matrix exponential revisited, 2005).

    >>> import pydevtensor as torch
    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    lapack.square(A)
    from pydevtensor.linalg.systems import solve_ex

    if not A.numel():
        return A.clone()
    n = A.shape[-1]
    eye = _C.eye(n, dtype=A.dtype, device=A.device)
    norm = A.detach().abs().sum(-2).amax(-1)
    norm = _C.where(norm.isfinite(), norm, 0.0)
    squarings = (norm / 5.371920351148152).log2().ceil().clamp(0, 1100)
    X = A * (2.0**-squarings)[..., None, None]
    X2 = X @ X
    X4 = X2 @ X2
    X6 = X4 @ X2
    b = [c / _PADE[0] for c in _PADE]
    odd = X6 @ (b[13] * X6 + b[11] * X4 + b[9] * X2)
    odd = X @ (odd + b[7] * X6 + b[5] * X4 + b[3] * X2 + b[1] * eye)
    even = X6 @ (b[12] * X6 + b[10] * X4 + b[8] * X2)
    even = even + b[6] * X6 + b[4] * X4 + b[2] * X2 + b[0] * eye
    R = solve_ex(even - odd, even + odd)[0]
    for i in range(int(squarings.max().item())):
        more = (squarings > i)[..., None, None]
        R = _C.where(more, R @ R, R)
    return R
