"""Transforms made of others, and those onto matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor, finfo
from pydevtensor.distributions import constraints
from pydevtensor.distributions._elementwise import _Increasing
from pydevtensor.distributions.transforms import (
    LowerCholeskyTransform,
    Transform,
    _sum_last,
)
from pydevtensor.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from pydevtensor.nn import functional as F


class PositiveDefiniteTransform(Transform):
    """Matrices to positive definite ones: a lower triangle times its transpose.

    >>> from pydevtensor.distributions.transforms import *
    >>> PositiveDefiniteTransform()(torch.ones(2, 2))
    tensor([[7.3891, 2.7183],
            [2.7183, 8.3891]])
    """

    domain: Any = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of n (n - 1) / 2 numbers to factors of correlation matrices of size n.

    The factors are lower triangular, with a positive diagonal and rows of length 1.
    Each number, by tanh, takes a part of what is left of its row.

    >>> from pydevtensor.distributions.transforms import *
    >>> CorrCholeskyTransform()(torch.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        parts = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), -1)
        left = (1 - parts.square()).sqrt().cumprod(-1)
        one = torch.eye(parts.shape[-1], dtype=x.dtype, device=x.device)
        return (parts + one) * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - y.square().cumsum(-1))[..., :-1], [1, 0], value=1)
        parts = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()
        return (parts.log1p() - (-parts).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the volume's factor.

        x  where, (..., n (n - 1) / 2)
        y  the function's value there, (..., n, n)
        """
        left = 1 - y.square().cumsum(-1)
        first = tril_matrix_to_vec(left, -2).log().sum(-1) / 2
        slope = F.softplus(2 * x) - x - math.log(2)
        return first - 2 * slope.sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the matrices.

        shape  the shape of x, sizes; ValueError where no n fits
        """
        size = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError(f"the shape is {tuple(shape)}; end it with n (n - 1) / 2")
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the vectors.

        shape  the shape of y, sizes; ValueError where they are not square
        """
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"the shape is {tuple(shape)}; give square matrices")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class _Several(Transform):
    """Functions, each for a part of x along a dimension."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.dim = dim
        self.transforms: list[Transform] = [
            t.with_cache(cache_size) if cache_size else t for t in tseq
        ]

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, values: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._split(x), strict=True)
        return self._join([t(part) for t, part in pairs])

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._split(y), strict=True)
        return self._join([t.inv(part) for t, part in pairs])

    def _jacobians(self, x: Tensor, y: Tensor) -> list[Tensor]:
        parts = zip(self.transforms, self._split(x), self._split(y), strict=True)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in parts]

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all are."""
        return all(t.bijective for t in self.transforms)


class StackTransform(_Several):
    """A function for each position along a dimension.

    tseq        the functions, a list of Transforms
    dim         the dimension, as long as the list

    >>> from pydevtensor.distributions.transforms import *
    >>> StackTransform([ExpTransform(), AffineTransform(0, 2)])(torch.ones(2))
    tensor([2.7183, 2.0000])
    """

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        return x.unbind(self.dim)

    def _join(self, values: list[Tensor]) -> Tensor:
        return torch.stack(values, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The values of all functions, along the dimension, at x, whose image is y."""
        return self._join(self._jacobians(x, y))

    @constraints.dependent_property
    def domain(self) -> Any:
        """The sets of the positions of x, as one."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The sets of the positions of y, as one."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CatTransform(_Several):
    """A function for each part of several positions along a dimension.

    tseq        the functions, a list of Transforms
    dim         the dimension, which the parts make up
    lengths     how many positions each has, 1 by default; together all of the dimension

    >>> from pydevtensor.distributions.transforms import *
    >>> CatTransform([ExpTransform(), AffineTransform(0, 2)], lengths=[1, 2])(
    ...     torch.tensor([0.0, 3.0, 4.0])
    ... )
    tensor([1., 6., 8.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths: list[int] = list(lengths or [1] * len(self.transforms))
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"lengths has {len(self.lengths)} and tseq {len(self.transforms)}; "
                "give as many"
            )

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        return x.split(self.lengths, self.dim)

    def _join(self, values: list[Tensor]) -> Tensor:
        return torch.cat(values, self.dim)

    def _event_dim(self) -> int:
        return max(t.codomain.event_dim for t in self.transforms)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The values of all functions, along the dimension; or their sum, if one value
        has that dimension: at x, where the value is y.
        """
        found = self._jacobians(x, y)
        event = self._event_dim()
        pairs = zip(found, self.transforms, strict=True)
        found = [_sum_last(each, event - t.domain.event_dim) for each, t in pairs]
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        if dim + event < 0:
            return torch.cat(found, dim + event)
        return sum(found[1:], found[0])

    @constraints.dependent_property
    def domain(self) -> Any:
        """The set of x."""
        sets = [t.domain for t in self.transforms]
        return constraints.cat(sets, self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The set of y."""
        sets = [t.codomain for t in self.transforms]
        return constraints.cat(sets, self.dim, self.lengths)


class CumulativeDistributionTransform(_Increasing):
    """y = the cumulative distribution function of a distribution, at x.

    distribution  has cdf(), icdf() and log_prob()

    >>> from pydevtensor.distributions import Normal
    >>> from pydevtensor.distributions.transforms import *
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(torch.tensor(0.0))
    tensor(0.5000)
    """

    codomain = constraints.unit_interval

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """The distribution's support."""
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the density at x; y has no effect."""
        return self.distribution.log_prob(x)
