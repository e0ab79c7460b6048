"""Parametrizations of weights: by norm and direction, spectral, orthogonal."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.nn import functional as F
from pydevtensor.nn.modules.module import Module, need_module
from pydevtensor.nn.utils._weights import (
    WHOLE,
    check_steps,
    norm_except,
    normalized,
    outputs_dim,
    rows,
    to_unit,
)
from pydevtensor.nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(module: Module, name: str) -> Any:
    weight = getattr(module, name, None)
    if not isinstance(weight, _C.Tensor):
        raise ValueError(f"{module._get_name()} has no parameter or buffer '{name}'")
    return weight


# --- by norm and direction


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = WHOLE if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return normalized(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, ...]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the norms and the direction of a weight apart from each other.

    Salimans and Kingma, Weight normalization (2016). The norms are those of the slices
    along dim, or that of all with dim=None: module.parametrizations.weight.original0;
    the direction is original1. Loads states of nn.utils.weight_norm() too. Returns the
    module.

    module  the layer
    name    the parameter's name
    dim     the dimension of the slices; None: one norm of all

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> [*layer.state_dict()]
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state: Any, prefix: str, *rest: Any) -> None:
        """Give the Tensors of a state of the hook the names that they have here."""
        former = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state for key in former):
            for i, key in enumerate(former):
                path = f"{prefix}parametrizations.{name}.original{i}"
                state[path] = state.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# --- spectral


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.dim()
        if not -ndim <= dim < ndim:
            raise IndexError(
                f"spectral_norm(): dim is {dim}, and the weight has {ndim} dimensions; "
                f"give one from {-ndim} to {ndim - 1}"
            )
        check_steps(n_power_iterations)
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = rows(weight, self.dim)
            u, v = (matrix.new_empty(size).normal_(0, 1) for size in matrix.shape)
            self.register_buffer("_u", to_unit(u, eps))
            self.register_buffer("_v", to_unit(v, eps))
            self._power_method(matrix, 15)

    @no_grad()
    def _power_method(self, matrix: Any, steps: int) -> None:
        """Improve the singular vectors, in place: replicas share the buffers."""
        for _ in range(steps):
            to_unit(matrix.mv(self._v), self.eps, out=self._u)
            to_unit(matrix.t().mv(self._u), self.eps, out=self._v)

    def forward(self, weight: Any) -> Any:
        if weight.dim() == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = rows(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # The graph keeps copies: the next call writes to the buffers.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its greatest singular value; a vector by its norm.

    Miyato and others, Spectral normalization for generative adversarial networks
    (2018). The value is estimated by steps of a power iteration, each time that the
    weight is read in training. A weight of more dimensions is taken as a matrix whose
    rows go along dim. Returns the module.

    module              the layer
    name                the parameter's name; ValueError for one that it does not have
    n_power_iterations  steps of each reading, 1 or more, else ValueError
    eps                 least norm of a singular vector, against division by 0
    dim                 the one that counts the outputs: 1 of a transposed convolution,
                        else 0

    >>> _ = torch.manual_seed(0)
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))
    >>> round(torch.linalg.matrix_norm(layer.weight, 2).item(), 3)
    1.0
    """
    need_module("spectral_norm", module)
    weight = _tensor_of(module, name)
    dim = outputs_dim(module) if dim is None else dim
    normalization = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, normalization)


# --- orthogonal

_MAPS = "matrix_exp", "cayley", "householder"


def _is_orthogonal(Q: Any) -> bool:
    from pydevtensor._functions.dtypes import finfo

    size = Q.shape[-1]
    one = _C.eye(size, dtype=Q.dtype, device=Q.device)
    bound = 10 * Q.shape[-2] * finfo(Q.dtype).eps
    return _C.allclose(Q.mT @ Q, one, atol=bound)


def _make_orthogonal(A: Any) -> Any:
    """Q of A = Q R, where R's diagonal is positive."""
    from pydevtensor.linalg import qr

    Q, R = qr(A)
    return Q * R.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A map from matrices to orthogonal ones, the wide ones by their transposes.

    Lezcano-Casado, Trivializations for gradient-based optimization on manifolds (2019):
    with a base, the map gives what base is multiplied by.
    """

    base: Any

    def __init__(self, shape: Any, orthogonal_map: str, use_base: bool) -> None:
        super().__init__()
        self.shape = shape
        self.orthogonal_map = orthogonal_map
        self.has_base = use_base
        if use_base:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.shape[-2] < X.shape[-1]
        tall = X.mT if wide else X
        if self.orthogonal_map == "householder":
            Q = self._reflected(tall)
        else:
            Q = self._turned(tall)
        if self.has_base:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _turned(self, X: Any) -> Any:
        """The columns of the rotation that the skew-symmetric X - X.mT stands for."""
        from pydevtensor import linalg

        n, k = X.shape[-2:]
        X = X.tril()
        if n != k:
            X = _C.cat([X, X.new_zeros(*X.shape[:-1], n - k)], -1)
        A = X - X.mT
        if self.orthogonal_map == "matrix_exp":
            return linalg.matrix_exp(A)[..., :k]
        one = _C.eye(n, dtype=A.dtype, device=A.device)
        return linalg.solve(one - A / 2, one + A / 2)[..., :k]

    def _reflected(self, X: Any) -> Any:
        """A product of reflections by the columns of X below its diagonal, with the
        signs of the diagonal."""
        from pydevtensor.linalg import householder_product

        A = X.tril(-1)
        tau = 2 / (1 + (A * A).sum(-2))
        signs = X.diagonal(dim1=-2, dim2=-1).int()
        return householder_product(A, tau) * signs.unsqueeze(-2)

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        if Q.shape != self.shape:
            raise ValueError(
                f"orthogonal(): a value of shape {[*Q.shape]} was assigned to a weight "
                f"of shape {[*self.shape]}; give that shape"
            )
        n, k = Q.shape[-2:]
        tall = Q.mT if n < k else Q
        if self.has_base:
            return self._set_base(tall, Q)
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                f"orthogonal(): {self.orthogonal_map!r} with use_trivialization=False "
                "has no inverse; use 'householder', or use_trivialization=True"
            )
        from pydevtensor.linalg.lapack import reflectors

        A, tau = reflectors(tall)
        diagonal = A.diagonal(dim1=-2, dim2=-1)
        # Where LAPACK needs no reflection tau is 0, and forward() makes it 2.
        diagonal.copy_(_C.where(tau == 0, -diagonal.sgn(), diagonal.sgn()))
        return A.mT if n < k else A

    def _set_base(self, tall: Any, Q: Any) -> Any:
        n, k = tall.shape[-2:]
        if n != k:
            more = _C.randn(*tall.shape[:-1], n - k, dtype=Q.dtype, device=Q.device)
            self.base = _make_orthogonal(_C.cat([tall, more], -1))
        else:
            self.base = tall.clone() if _is_orthogonal(tall) else _make_orthogonal(tall)
        # The maps give the first columns of the identity for it.
        start = _C.zeros_like(Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1)
        return start


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix, or a batch of them, orthogonal.

    Its columns are orthonormal, or its rows where there are fewer of them. The
    unconstrained parameter is mapped to it. A value that is not orthogonal is made so
    by a QR factorization. ValueError for a vector and for another map. Returns the
    module.

    module              the layer
    name                the parameter's name; ValueError for one that it does not have
    orthogonal_map      "matrix_exp" or "cayley" of a skew-symmetric matrix, or
                        "householder", a product of reflections, which is the default
                        for matrices that are not square; "matrix_exp" is for those that
                        are
    use_trivialization  store an orthogonal matrix beside, from which the map starts
                        (Lezcano-Casado, 2019)

    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 2))
    >>> torch.allclose(layer.weight @ layer.weight.T, torch.eye(2), atol=1e-5)
    True
    """
    weight = _tensor_of(module, name)
    if weight.dim() < 2:
        raise ValueError(
            f"orthogonal(): '{name}' has {weight.dim()} dimensions; a matrix or a "
            "batch of matrices can be orthogonal"
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f"orthogonal(): orthogonal_map is {orthogonal_map!r}; give one of "
            f"{', '.join(_MAPS)}"
        )
    parametrization = _Orthogonal(weight.shape, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)


_publish(__name__)
