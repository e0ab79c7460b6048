"""LAPACK's routines on batches of matrices, without gradients, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor._C import Tensor
from pydevtensor._functions.checks import same_device, same_dtype
from pydevtensor._names import give

UPPER, TRANSPOSED, UNIT, VECTORS, FULL, ROTATIONS = 1, 2, 4, 8, 16, 32
_NOT_FINITE = -1000


class LinAlgError(RuntimeError):
    """A matrix has no result: it is singular, or an iteration does not converge."""


give("pydevtensor.linalg", LinAlgError)
LinAlgError.__name__ = "_LinAlgError"  # as PyTorch calls it


# --- checks -------------------------------------------------------------------------


def matrices(A: Tensor, what: str = "the input") -> None:
    """Raise unless A has matrices of a type that LAPACK takes."""
    if A.dim() < 2:
        raise RuntimeError(
            f"{what} has the shape {tuple(A.shape)}; give a matrix or a batch of them"
        )
    floats(A, what)


def floats(A: Tensor, what: str = "the input") -> None:
    if A.dtype not in (_C.float32, _C.float64) and not A.is_complex():
        small = A.is_floating_point()
        raise (NotImplementedError if small else RuntimeError)(
            f"{what} is of {A.dtype}; give float32, float64 or a complex type, for "
            "example by .float()"
        )


def square(A: Tensor, what: str = "the input") -> None:
    matrices(A, what)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{what} has matrices of the shape {tuple(A.shape[-2:])}; give square ones"
        )


def alike(A: Tensor, B: Tensor) -> None:
    same_dtype(A, B)
    same_device(A, B)


def check_factors(
    name: str, factors: Tensor, pivots: Tensor, B: Tensor, left: bool = True
) -> None:
    """Raise RuntimeError unless square factors, pivots and B are of one system.

    left: A X = B; else X A = B.
    """
    square(factors, name)
    matrices(B, "B")
    alike(factors, B)
    if pivots.shape != factors.shape[:-1]:
        raise RuntimeError(
            f"pivots have the shape {tuple(pivots.shape)}; give one for each row"
        )
    if B.shape[-2 if left else -1] != factors.shape[-1]:
        raise RuntimeError(
            f"the shapes {tuple(factors.shape)} and {tuple(B.shape)} do not fit "
            "together"
        )


def succeeded(info: Tensor, problem: str, error: type[Exception] = LinAlgError) -> None:
    """Raise LinAlgError unless info is 0 for every matrix. Waits for a GPU.

    problem may have a field for info's number.
    """
    if info.is_meta or not info.numel() or not info.any():
        return
    flat = info.reshape(-1).tolist()
    at = next(i for i, number in enumerate(flat) if number)
    if flat[at] == _NOT_FINITE:
        problem = "has an element that is inf or nan"
    where = "the matrix" if not info.dim() else f"matrix {at} of the batch"
    raise error(f"{where} " + problem.format(flat[at]))


def broadcast(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the same batch."""
    batch = _C.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    return A.expand(*batch, *A.shape[-2:]), B.expand(*batch, *B.shape[-2:])


# --- routines -----------------------------------------------------------------------


def _columns(x: Tensor, rows: int | None = None) -> Tensor:
    """A copy of x, transposed and row-major, which is x column by column."""
    *batch, m, n = x.shape
    copy = x.new_empty(*batch, n, m if rows is None else rows)
    if rows is None:
        return copy.copy_(x.mT)
    copy.zero_()
    copy[..., :m] = x.mT
    return copy


def _by_columns(x: Tensor) -> Tensor:
    """x column by column, to be read: a view of x if x has that layout."""
    return x.mT.contiguous()


def _infos(A: Tensor) -> Tensor:
    return A.new_zeros(A.shape[:-2], dtype=_C.int32)


def _reals(A: Tensor, count: int) -> Tensor:
    """Room for real numbers of each matrix."""
    return A.new_zeros(*A.shape[:-2], count, dtype=A.real.dtype)


def _run(name: str, operands: Sequence[Tensor], m: int, n: int, *args: Any) -> None:
    if m and n and operands[0].numel():
        _C._lapack(name, list(operands), m, n, *args)


def lu(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """L and U in one matrix, the pivots from 1, and where U has a 0."""
    m, n = A.shape[-2:]
    a, info = _columns(A), _infos(A)
    pivots = A.new_zeros(*A.shape[:-2], min(m, n), dtype=_C.int32)
    _run("getrf", [a, pivots, info], m, n)
    return a.mT, pivots, info


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, transposed: bool = False) -> Tensor:
    n, k = B.shape[-2:]
    b = _columns(B)
    if k:
        operands = [_by_columns(LU), pivots.contiguous(), b]
        _run("getrs", operands, n, n, k, TRANSPOSED if transposed else 0)
    return b.mT


def cholesky(A: Tensor) -> tuple[Tensor, Tensor]:
    """The lower factor, above which A stays, and the minor that is not positive."""
    n = A.shape[-1]
    a, info = _columns(A), _infos(A)
    _run("potrf", [a, info], n, n)
    return a.mT, info


def triangular(A: Tensor, B: Tensor, flags: int) -> Tensor:
    n, k = B.shape[-2:]
    b = _columns(B)
    if k:
        _run("trsm", [_by_columns(A), b], n, n, k, flags)
    return b.mT


def reflectors(A: Tensor) -> tuple[Tensor, Tensor]:
    """R with the reflections of A = Q R below its diagonal, and their factors."""
    m, n = A.shape[-2:]
    a, tau = _columns(A), A.new_zeros(*A.shape[:-2], min(m, n))
    _run("geqrf", [a, tau], m, n)
    return a.mT, tau


def qr(A: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """Q and R; Q has no elements for the mode "r"."""
    m, n = A.shape[-2:]
    least = min(m, n)
    R, tau = reflectors(A)
    a = R.mT
    width = m if mode == "complete" else least
    R = R.triu()[..., :width, :]
    if mode == "complete" and m > n:
        R = _C.cat([R, R.new_zeros(*R.shape[:-2], m - R.shape[-2], n)], -2)
    if mode == "r":
        return A.new_empty(0), R.contiguous()
    q = A.new_zeros(*A.shape[:-2], width, m)
    q[..., :least, :] = a[..., :least, :]
    if not least:
        q = _C.eye(m, dtype=A.dtype, device=A.device)[:width].expand(q.shape).clone()
    _run("orgqr", [q, tau], m, width, least)
    return q.mT, R.contiguous()


def svd(
    A: Tensor, full: bool, vectors: bool = True, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """U, S, Vh and info.

    On GPUs by Jacobi's method but for the driver gesvd; with None gesvd comes after it
    where it does not end.
    """
    if A.is_cuda and A.shape[-2] < A.shape[-1]:  # cuSOLVER's matrices are not wide
        V, S, Uh, info = svd(A.mH, full, vectors, driver)
        return Uh.mH, S, V.mH, info
    (*batch, m, n), least = A.shape, min(A.shape[-2:])
    rows, columns = (m, n) if full else (least, least)
    u = A.new_zeros(*batch, rows if vectors else 0, m)
    vh = A.new_zeros(*batch, n, columns if vectors else 0)
    if vectors and not least:
        u, vh = (_eyes(x) for x in (u, vh))
    S, info = _reals(A, least), _infos(A)
    rotates = A.is_cuda and driver != "gesvd"
    flags = VECTORS * vectors | FULL * full | ROTATIONS * rotates
    _run("gesdd", [_columns(A), u, S, vh, info], m, n, 0, flags)
    if rotates and driver is None and (info > 0).any():
        return svd(A, full, vectors, "gesvd")
    return u.mT, S, vh.conj() if rotates else vh.mT, info


def _eyes(x: Tensor) -> Tensor:
    eye = _C.eye(*x.shape[-2:], dtype=x.dtype, device=x.device)
    return eye.expand(x.shape).clone()


def eigh(A: Tensor, upper: bool, vectors: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues, eigenvectors (without vectors: rubbish) and info."""
    n = A.shape[-1]
    a, L, info = _columns(A), _reals(A, n), _infos(A)
    _run("syevd", [a, L, info], n, n, 0, VECTORS * vectors | UPPER * upper)
    return L, a.mT, info


def eig(A: Tensor, vectors: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues and eigenvectors, both complex, and info."""
    n = A.shape[-1]
    L, im = (
        A.new_zeros(A.shape[:-1]),
        A.new_zeros(0 if A.is_complex() else A.shape[:-1]),
    )
    v, info = A.new_zeros(*A.shape[:-1], n if vectors else 0), _infos(A)
    _run("geev", [_columns(A), L, im, v, info], n, n, 0, VECTORS * vectors)
    if A.is_complex():
        return L, v.mT, info
    V = _in_pairs(v.mT, im.unsqueeze(-2)) if vectors else v
    return _C.complex(L, im), V, info


def _in_pairs(V: Tensor, imag: Tensor) -> Tensor:
    """Eigenvectors of LAPACK's columns: those of two conjugate eigenvalues are the real
    and the imaginary part of the first one's."""
    real = _C.where(imag < 0, V.roll(1, -1), V)
    turned = _C.where(imag > 0, V.roll(-1, -1), _C.where(imag < 0, -V, 0.0))
    return _C.complex(real, turned.to(V.dtype))


def least_squares(
    A: Tensor, B: Tensor, rcond: float, driver: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The solution with what is below it, the rank, singular values and info."""
    (m, n), k = A.shape[-2:], B.shape[-1]
    b = _columns(B, max(m, n))
    S, rank, info = _reals(A, min(m, n)), _infos(A), _infos(A)
    turned = A.is_cuda and m < n  # cuSOLVER's matrices are not wide
    a, flags = _columns(A.mH if turned else A), TRANSPOSED * turned
    if k:
        sizes = (n, m) if turned else (m, n)
        _run(driver, [a, b, S, rank, info], *sizes, k, flags, rcond)
    return b.mT, rank, S, info
