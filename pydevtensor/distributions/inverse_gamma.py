"""Reciprocals of gamma numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import parameter, positive
from pydevtensor.distributions.gamma import Gamma
from pydevtensor.distributions.transformed_distribution import TransformedDistribution
from pydevtensor.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """Reciprocals of gamma numbers.

    concentration  the shape, positive, a number or a Tensor
    rate           the rate of the gamma numbers, positive; the two broadcast

    >>> torch.distributions.InverseGamma(3.0, 2.0).mean
    tensor(1.)
    """

    arg_constraints: ClassVar[Any] = positive("concentration", "rate")
    support: Any = constraints.positive

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool | None = None
    ) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        power = PowerTransform(base.rate.new_tensor(-1))
        super().__init__(base, power, validate_args=validate_args)

    concentration: Any = parameter("concentration", "The shape.")
    rate: Any = parameter("rate", "The rate of the gamma numbers.")

    @property
    def mean(self) -> Tensor:
        """The mean: inf for a concentration up to 1."""
        found = self.rate / (self.concentration - 1)
        return torch.where(self.concentration > 1, found, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """The variance: inf for a concentration up to 2."""
        a = self.concentration
        found = (self.rate / (a - 1)).square() / (a - 2)
        return torch.where(a > 2, found, math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


_publish(__name__, described=True)
