"""Normally distributed vectors with few common causes."""

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

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(_AroundLocation):
    """Normally distributed vectors of the covariance cov_factor @ cov_factor.mT plus a
    diagonal one, in time that grows with the square of the rank alone.

    loc         the mean, a Tensor (..., k)
    cov_factor  a Tensor (..., k, rank)
    cov_diag    a Tensor (..., k), positive; batches broadcast

    >>> from pydevtensor.distributions import LowRankMultivariateNormal
    >>> LowRankMultivariateNormal(*torch.ones(2, 3), torch.ones(3)).variance
    Traceback (most recent call last):
    ValueError: LowRankMultivariateNormal: cov_factor has the shape (3,); give matrices
    >>> k = torch.zeros(2), torch.ones(2, 1), torch.ones(2)
    >>> LowRankMultivariateNormal(*k).variance
    tensor([2., 2.])
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError(
                "LowRankMultivariateNormal: loc is a number; give a vector"
            )
        k = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "LowRankMultivariateNormal: cov_factor has the shape "
                f"{tuple(cov_factor.shape)}; give matrices"
            )
        if cov_factor.shape[-2:-1] != k or cov_diag.shape[-1:] != k:
            raise ValueError(
                "LowRankMultivariateNormal: cov_factor has the shape "
                f"{tuple(cov_factor.shape)} and cov_diag {tuple(cov_diag.shape)}, for "
                f"vectors of {k[0]}; give a row and a number for each element"
            )
        shapes = loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        batch = torch.broadcast_shapes(*shapes)
        self.loc = loc.expand(*batch, *k)
        self.cov_factor: Tensor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        self.cov_diag: Tensor = cov_diag.expand(*batch, *k)
        super().__init__(batch, k, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        self._capacitance_tril  # noqa: B018 - which is expanded too
        return super().expand(batch_shape, _instance)

    @lazy_property
    def _capacitance_tril(self) -> Tensor:
        """The Cholesky factor of I + W.mT D^-1 W, of rank rows."""
        W = self.cov_factor
        inner = W.mT @ (W / self.cov_diag.unsqueeze(-1))
        return linalg.cholesky(inner + torch.eye(W.shape[-1]).to(W))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        A = linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - A.mT @ A

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return linalg.cholesky(self.covariance_matrix)

    mean: Tensor = same_as("loc")

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        return self.cov_factor.square().sum(-1) + self.cov_diag

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rank = self.cov_factor.shape[-1]
        common = standard_normal((*shape[:-1], rank), self.loc)
        own = standard_normal(shape, self.loc)
        moved = (self.cov_factor @ common.unsqueeze(-1)).squeeze(-1)
        return self.loc + moved + self.cov_diag.sqrt() * own

    def _logdet(self) -> Tensor:
        """The log determinant of the covariance, by the determinant lemma."""
        half = self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 2 * half + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at value, by Woodbury's identity."""
        far = self._checked(value) - self.loc
        scaled = (far / self.cov_diag).unsqueeze(-1)
        inner = self.cov_factor.mT @ scaled
        L = self._capacitance_tril
        taken = linalg.solve_triangular(L, inner, upper=False).square().sum((-2, -1))
        total = (far.square() / self.cov_diag).sum(-1) - taken
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self._logdet() + total)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        found = 0.5 * (n * (1 + math.log(2 * math.pi)) + self._logdet())
        return found.expand(self._batch_shape)


_publish(__name__, described=True)
