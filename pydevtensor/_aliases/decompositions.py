"""Factorizations and solvers under the names that PyTorch had before torch.linalg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C, linalg
from pydevtensor._autocast import casts
from pydevtensor._functions import function
from pydevtensor.autograd import Function
from pydevtensor.linalg import factors, lapack

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor, Tensors


@function(method=True, out=True)
@casts(cpu="float32")
def inverse(input: Tensor) -> Tensor:
    """The inverse of a square matrix, or of each of a batch.

    LinAlgError for a singular matrix.

    >>> torch.tensor([[2.0, 0.0], [0.0, 4.0]]).inverse()
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return linalg.inv(input)


@function(method=True)
def det(input: Tensor) -> Tensor:
    """The determinant of a square matrix, or of each of a batch.

    >>> torch.tensor([[2.0, 1.0], [1.0, 2.0]]).det()
    tensor(3.)
    """
    return linalg.det(input)


@function(method=True)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: -inf for 0, nan where it is negative.

    For complex matrices it is complex.

    >>> torch.eye(2).logdet()
    tensor(0.)
    """
    sign, logarithm = linalg.slogdet(input)
    if input.is_complex():
        return logarithm + sign.log()
    return _C.where(sign < 0, float("nan"), logarithm)


@function(method=True, out=True, results=("sign", "logabsdet"))
def slogdet(input: Tensor) -> tuple[Tensor, ...]:
    """The determinant's sign, and the logarithm of its magnitude.

    >>> torch.tensor([[0.0, 1.0], [1.0, 0.0]]).slogdet().sign
    tensor(-1.)
    """
    return tuple(linalg.slogdet(input))


@function(method=True, out=True)
@casts(cpu="float32")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The lower factor L of positive definite matrices L L^H, or the upper one.

    LinAlgError where a matrix is not positive definite.

    >>> torch.tensor([[4.0, 2.0], [2.0, 5.0]]).cholesky()
    tensor([[2., 0.],
            [1., 2.]])
    """
    return linalg.cholesky(input, upper=upper)


@function(method=True, out=True)
@casts(cpu="float32")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X of A X = input from A's Cholesky factor input2.

    input2: L of A = L L^H, or with upper=True U of A = U^H U.

    See also linalg.solve(), which needs no factor.

    >>> torch.ones(2, 1).cholesky_solve(2 * torch.eye(2))
    tensor([[0.2500],
            [0.2500]])
    """
    solve = linalg.solve_triangular
    lower = input2.mH if upper else input2
    return solve(lower.mH, solve(lower, input, upper=False), upper=True)


@function(method=True, out=True)
@casts(cpu="float32")
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A from its Cholesky factor.

    input: L of A = L L^H, or with upper=True U of A = U^H U. It is not checked.

    >>> torch.cholesky_inverse(2 * torch.eye(2))
    tensor([[0.2500, 0.0000],
            [0.0000, 0.2500]])
    """
    eye = _C.eye(input.shape[-1], dtype=input.dtype, device=input.device)
    return cholesky_solve(eye.expand(input.shape), input, upper)


@function(method=True, out=True, results=("Q", "R"))
@casts(cpu="float32")
def qr(input: Tensor, some: bool = True) -> tuple[Tensor, ...]:
    """input as Q, with orthonormal columns, times an upper triangular R.

    some=False: Q is square.

    >>> torch.ones(3, 2).qr().R.shape
    torch.Size([2, 2])
    """
    return tuple(linalg.qr(input, "reduced" if some else "complete"))


@function(method=True, out=True, results=("U", "S", "V"))
@casts(cpu="float32")
def svd(
    input: Tensor, some: bool = True, compute_uv: bool = True
) -> tuple[Tensor, ...]:
    """input as U diag(S) V^H, S descending.

    some=False: U and V are square. compute_uv=False: they are zeros.

    >>> torch.tensor([[0.0, 3.0], [4.0, 0.0]]).svd().S
    tensor([4., 3.])
    """
    if not compute_uv:
        (*batch, m, n), S = input.shape, linalg.svdvals(input)
        return input.new_zeros(*batch, m, m), S, input.new_zeros(*batch, n, n)
    U, S, Vh = linalg.svd(input, not some)
    return U, S, Vh.mH


@function(method=True)
@casts(cpu="float32")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse of a matrix, or of each of a batch.

    rcond: singular values up to rcond times the greatest count as 0.

    See also linalg.pinv().

    >>> torch.tensor([[2.0], [0.0]]).pinverse()
    tensor([[0.5000, 0.0000]])
    """
    return linalg.pinv(input, rcond=rcond)


@function(method=True)
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of a square matrix, or of each of a batch.

    >>> torch.zeros(2, 2).matrix_exp()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return linalg.matrix_exp(input)


@function(method=True, out=True, results=("solution", "cloned_coefficient"))
@casts(cpu="float32")
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, ...]:
    """X of A X = input, or A^T X = input with transpose, and a copy of A.

    upper          A's upper triangle is read, else its lower one
    unitriangular  A's diagonal is not read and counts as ones

    See also linalg.solve_triangular().

    >>> torch.ones(2, 1).triangular_solve(2 * torch.eye(2)).solution
    tensor([[0.5000],
            [0.5000]])
    """
    solve = linalg.solve_triangular
    B = A.mT if transpose else A
    upper = upper != transpose
    return solve(B, input, upper=upper, unitriangular=unitriangular), A.clone()


@function(method=True)
def lu(
    input: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    *,
    out: Tensors | None = None,
) -> Any:
    """L and U in one matrix and the pivots, with get_infos also where U has a 0.

    pivot: only True, which exchanges rows; RuntimeError for False. out: Tensors for the
    results, which it returns; TypeError for another number of them.

    See also lu_unpack(), which gives matrices, and linalg.lu().

    >>> torch.lu(torch.eye(2))[1]
    tensor([1, 2], dtype=torch.int32)
    """
    if out is None:
        return linalg.lu_factor_ex(input, pivot=pivot)[: 3 if get_infos else 2]
    count = 3 if get_infos else 2
    if len(out) != count:
        raise TypeError(
            f"out has {len(out)} Tensors; give {count}, one for each result"
        )
    spare = _C.empty(0, dtype=_C.int32, device=input.device)
    LU, pivots, info = (*out, spare)[:3]
    linalg.lu_factor_ex(input, pivot=pivot, out=(LU, pivots, info))
    return out


@function(method=True, out=True)
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X of A X = input from what lu() makes of A.

    LU_data, LU_pivots: the two results of lu().

    See also linalg.solve(), which needs no factor.

    >>> torch.ones(2, 1).lu_solve(*torch.lu(2 * torch.eye(2)))
    tensor([[0.5000],
            [0.5000]])
    """
    return linalg.lu_solve(LU_data, LU_pivots, input)


@function(out=True, results=("P", "L", "U"))
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> tuple[Tensor, ...]:
    """The matrices P, L and U of what lu() gives; those not wanted are empty.

    LU_data, LU_pivots  the two results of lu()
    unpack_data         give L and U
    unpack_pivots       give P

    >>> torch.lu_unpack(*torch.lu(torch.eye(2))).P
    tensor([[1., 0.],
            [0., 1.]])
    """
    P = L = U = LU_data.new_empty(0)
    if unpack_pivots:
        P = factors.rows_of(LU_pivots, LU_data.shape[-2], LU_data.dtype)
    if unpack_data:
        L, U = factors.halves(LU_data)
    return P, L, U


class _Reflectors(Function):
    @staticmethod
    def forward(ctx: Any, A: Any) -> Any:
        return lapack.reflectors(A)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(
            "geqrf() has no derivative, as in PyTorch; use linalg.qr()"
        )


@function(method=True, out=True, results=("a", "tau"))
def geqrf(input: Tensor) -> tuple[Tensor, ...]:
    """The QR factors of a matrix as LAPACK has them: (a, tau), for ormqr().

    a has R in its upper triangle, and below it the reflections whose product is Q; tau
    has the factor of each. It has no derivative: NotImplementedError.

    >>> torch.geqrf(torch.tensor([[3.0], [4.0]])).a
    tensor([[-5.0000],
            [ 0.5000]])
    """
    lapack.matrices(input)
    found: tuple[Tensor, ...] = _Reflectors.apply(input)
    return found


@function(method=True, out=True)
def orgqr(input: Tensor, tau: Tensor) -> Tensor:
    """Alias of linalg.householder_product(): the columns of Q that geqrf() describes.

    >>> torch.orgqr(*torch.geqrf(torch.tensor([[3.0], [4.0]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    return linalg.householder_product(input, tau)


@function(method=True, out=True)
def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: bool = True,
    transpose: bool = False,
) -> Tensor:
    """The product of other with the square matrix Q that geqrf() describes.

    input      (..., m, k), whose columns have the reflections below the diagonal
    tau        (..., k), their factors
    other      (..., m, n), or (..., n, m) without left, of the same batch
    left       Q @ other, else other @ Q
    transpose  take Q.mH in place of Q

    RuntimeError for other shapes.

    >>> torch.ormqr(*torch.geqrf(torch.tensor([[3.0], [4.0]])), torch.eye(2))
    tensor([[-0.6000, -0.8000],
            [-0.8000,  0.6000]])
    """
    lapack.matrices(input)
    for each in (tau, other):
        lapack.alike(input, each)
    (m, k), batch = input.shape[-2:], input.shape[:-2]
    size = other.shape[-2 if left else -1] if other.dim() > 1 else None
    count = tau.shape[-1] if tau.dim() else k + 1
    if size != m or count > min(m, k) or {tau.shape[:-1], other.shape[:-2]} != {batch}:
        raise RuntimeError(
            f"input has the shape {tuple(input.shape)}, tau {tuple(tau.shape)} and "
            f"other {tuple(other.shape)}; give (..., m, k), (..., k) and other with m "
            f"{'rows' if left else 'columns'}"
        )
    if not tau.numel():
        return other.clone()
    V, W = factors.triangular_form(input, tau)
    if transpose:
        V, W = W.mH, V.mH
    return other - (V @ (W @ other) if left else (other @ V) @ W)


@function()
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of a matrix, or of each of a batch.

    dim: its two dimensions, by default the last ones. keepdim: they stay, with size 1.

    >>> torch.nuclear_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(7.)
    """
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        dim, keepdim = None, dim
    return linalg.matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)


@function()
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Singular value decomposition of about rank q: U (..., m, q), S (q) and V
    (..., n, q), so that A is about U diag(S) V^H.

    A matrix (..., m, n), less M if that is given. Its range is sampled by products with
    q random vectors of the default generator and improved by niter iterations (Halko,
    Martinsson and Tropp, 2009, algorithms 4.4 and 5.1). None: the default values.
    ValueError for an niter that is not from 0 to 1000; few improve anything.

    >>> U, S, V = torch.svd_lowrank(torch.ones(3, 2), q=1)
    >>> S
    tensor([2.4495])
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    lapack.matrices(A)
    if not 0 <= niter <= 1000:
        raise ValueError(f"niter is {niter}; give 0 to 1000")
    if M is not None:
        A = A - M
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A = A.mH
    basis = A @ _C.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    basis = linalg.qr(basis).Q
    for _ in range(niter):
        basis = linalg.qr(A @ linalg.qr(A.mH @ basis).Q).Q
    U, S, Vh = linalg.svd(basis.mH @ A, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


@function()
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components of about rank q: U, S and V of svd_lowrank().

    A (..., m, n) has a sample in each of its m rows. Columns of V are the principal
    directions, and S ** 2 / (m - 1) their variances. q: by default 6, or m or n if that
    is less. center: subtract the mean of each column. ValueError for a q above m or n,
    and for an niter that svd_lowrank() refuses.

    >>> x = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> torch.pca_lowrank(x, q=1)[1]
    tensor([2.])
    """
    lapack.matrices(A)
    most = min(A.shape[-2:])
    q = min(6, most) if q is None else q
    if not 0 <= q <= most:
        raise ValueError(f"q is {q}; give 0 to {most}, as A is {tuple(A.shape)}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
