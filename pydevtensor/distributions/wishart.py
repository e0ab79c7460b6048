"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Size, Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.chi2 import Chi2
from pydevtensor.distributions.distribution import parameter
from pydevtensor.distributions.exp_family import ExponentialFamily
from pydevtensor.distributions.multivariate_normal import (
    MATRICES,
    MultivariateNormal,
    chosen_matrix,
)
from pydevtensor.distributions.utils import lazy_property

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Covariances of samples of normal vectors, times the samples' size.

    AssertionError unless one of the three matrices is given. Batches broadcast.

    df                 degrees of freedom, more than k - 1, a number or a Tensor
    covariance_matrix  of the vectors, a Tensor (..., k, k)
    precision_matrix   in its place, its inverse
    scale_tril         in its place, its lower Cholesky factor

    >>> torch.distributions.Wishart(torch.tensor(3.0), torch.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    arg_constraints: ClassVar[Any] = {
        **MATRICES,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = chosen_matrix(
            self, AssertionError, covariance_matrix, precision_matrix, scale_tril
        )
        df = torch.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
        k = matrix.shape[-1]
        if not (df > k - 1).all():
            raise ValueError(f"Wishart: df is {df!r}; give more than {k - 1}")
        self.df: Tensor = df.expand(batch)
        zero = matrix.new_zeros((*batch, k))
        self._normal = MultivariateNormal(
            zero, **{name: matrix}, validate_args=validate_args
        )
        setattr(self, name, getattr(self._normal, name))
        count = torch.arange(k, dtype=df.dtype, device=df.device)
        self._chi2 = Chi2(self.df.unsqueeze(-1) - count)
        event = matrix.shape[-2:]
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Wishart:
        L = self.scale_tril.expand(Size(batch_shape) + self.event_shape)
        return type(self)(self.df.expand(batch_shape), scale_tril=L)

    covariance_matrix: Tensor = parameter(
        "covariance_matrix", "The covariance of the vectors.", "_normal", lazy_property
    )
    precision_matrix: Tensor = parameter(
        "precision_matrix", "Its inverse.", "_normal", lazy_property
    )
    scale_tril: Tensor = parameter(
        "scale_tril", "Its lower Cholesky factor.", "_normal", lazy_property
    )

    @property
    def _degrees(self) -> Tensor:
        return self.df.view(*self._batch_shape, 1, 1)

    @property
    def mean(self) -> Tensor:
        return self._degrees * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """The most likely value: NaN for a df up to k + 1."""
        factor = self._degrees - self.event_shape[-1] - 1
        return torch.where(factor > 0, factor, math.nan) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        V = self.covariance_matrix
        d = V.diagonal(dim1=-2, dim2=-1)
        return self._degrees * (V.square() + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Random matrices, by Bartlett's decomposition; PyTorch 2.13 discards the first
        ones that it draws, so that its numbers for a seed differ.

        sample_shape  how many, sizes
        """
        k = self.event_shape[-1]
        noise = self._chi2.rsample(sample_shape).sqrt().diag_embed()
        i, j = torch.tril_indices(k, k, offset=-1, device=noise.device)
        shape = (*sample_shape, *self._batch_shape, k * (k - 1) // 2)
        noise[..., i, j] = torch.randn(shape, dtype=noise.dtype, device=noise.device)
        factor = self.scale_tril @ noise
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        value, n, k = self._checked(value), self.df, self.event_shape[-1]
        trace = (self.precision_matrix * value).sum((-2, -1))
        norm = n * (k * math.log(2) / 2 + self._normal._logdet())
        norm = norm + torch.mvlgamma(n / 2, k)
        return (n - k - 1) / 2 * torch.linalg.slogdet(value)[1] - trace / 2 - norm

    def entropy(self) -> Tensor:
        n, k = self.df, self.event_shape[-1]
        halves = n.unsqueeze(-1) / 2 - torch.arange(k, device=n.device) / 2
        log = (k + 1) * (k * math.log(2) / 2 + self._normal._logdet())
        log = log + torch.mvlgamma(n / 2, k) + n * k / 2
        return log - (n - k - 1) / 2 * halves.digamma().sum(-1)


_publish(__name__, described=True)
