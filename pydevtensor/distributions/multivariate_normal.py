"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor, linalg
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _AroundLocation
from pydevtensor.distributions.distribution import Distribution, same_as
from pydevtensor.distributions.utils import lazy_property, standard_normal

__all__ = ["MultivariateNormal"]


MATRICES = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def chosen_matrix(
    owner: Distribution, error: type[Exception], *given: Tensor | None
) -> tuple[str, Tensor]:
    """The name and the value of the one matrix that is given; `error` for other counts.

    given: for each of MATRICES a Tensor or None
    """
    found = {n: m for n, m in zip(MATRICES, given, strict=True) if m is not None}
    kind = type(owner).__name__
    if len(found) != 1:
        raise error(
            f"{kind}: give one of covariance_matrix, precision_matrix and scale_tril, "
            f"not {[*found]}"
        )
    ((name, matrix),) = found.items()
    if matrix.dim() < 2:
        raise ValueError(
            f"{kind}: {name} has the shape {tuple(matrix.shape)}; give matrices"
        )
    return name, matrix


class MultivariateNormal(_AroundLocation):
    """Normally distributed vectors.

    ValueError unless one of the three matrices is given. Batches broadcast.

    loc                the mean, a Tensor (..., k)
    covariance_matrix  a Tensor (..., k, k), symmetric and positive definite
    precision_matrix   in its place, its inverse
    scale_tril         in its place, its lower Cholesky factor, which saves the most
                       time

    >>> from pydevtensor.distributions import MultivariateNormal
    >>> MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        **MATRICES,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("MultivariateNormal: loc is a number; give a vector")
        name, matrix = chosen_matrix(
            self, ValueError, covariance_matrix, precision_matrix, scale_tril
        )
        batch = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, loc.shape[-1])
        setattr(self, name, matrix.expand(*batch, *matrix.shape[-2:]))
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = linalg.cholesky(covariance_matrix)
        else:  # the factor of the inverse, by rows and columns reversed
            factor = linalg.cholesky(matrix.flip((-2, -1)))
            inverse = factor.flip((-2, -1)).mT
            eye = torch.eye(loc.shape[-1], dtype=loc.dtype, device=loc.device)
            self._unbroadcasted_scale_tril = linalg.solve_triangular(
                inverse, eye, upper=False
            )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        factor = self.__dict__.pop("_unbroadcasted_scale_tril")
        try:
            new = super().expand(batch_shape, _instance)
        finally:
            self._unbroadcasted_scale_tril = factor
        new._unbroadcasted_scale_tril = factor  # type: ignore[attr-defined]
        return new

    def _expanded(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._expanded(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        L = self._unbroadcasted_scale_tril
        return self._expanded(L @ L.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._expanded(torch.cholesky_inverse(self._unbroadcasted_scale_tril))

    mean: Tensor = same_as("loc")

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        found = self._unbroadcasted_scale_tril.square().sum(-1)
        return found.expand(self._batch_shape + self._event_shape)

    def _logdet(self) -> Tensor:
        """The log determinant of the factor."""
        L = self._unbroadcasted_scale_tril
        return L.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = standard_normal(self._extended_shape(sample_shape), self.loc)
        L = self._unbroadcasted_scale_tril
        return self.loc + (L @ eps.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc).unsqueeze(-1)
        L = self._unbroadcasted_scale_tril
        M = linalg.solve_triangular(L, z, upper=False).squeeze(-1).square().sum(-1)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + M) - self._logdet()

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        found = 0.5 * n * (1 + math.log(2 * math.pi)) + self._logdet()
        return found.expand(self._batch_shape)


_publish(__name__, described=True)
