"""Magnitudes of Cauchy numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.cauchy import Cauchy
from pydevtensor.distributions.transformed_distribution import (
    TransformedDistribution,
    parameter,
)
from pydevtensor.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """Magnitudes of numbers of the Cauchy distribution around 0.

    scale          half the width at half the height before, positive, a number or a
                   Tensor
    validate_args  whether values out of range raise ValueError; None: the default

    >>> from pydevtensor.distributions import HalfCauchy
    >>> HalfCauchy(1.0).cdf(torch.tensor(1.0))
    tensor(0.5000)
    """

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support: Any = constraints.nonnegative

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    scale: Any = parameter("scale", "The half width before.")

    @property
    def mean(self) -> Tensor:
        """inf."""
        return torch.full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        """0."""
        return torch.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """inf."""
        return torch.full_like(self.scale, math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at value."""
        value = self._checked(value)
        found = self.base_dist.log_prob(value) + math.log(2)
        return torch.where(value >= 0, found, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


_publish(__name__)
