"""The Kumaraswamy distribution."""

from __future__ import annotations

import math

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions._families import _OfPowers
from pydevtensor.distributions.gumbel import EULER
from pydevtensor.distributions.transformed_distribution import Remade
from pydevtensor.distributions.transforms import AffineTransform, PowerTransform
from pydevtensor.distributions.uniform import Uniform

__all__ = ["Kumaraswamy"]


class Kumaraswamy(_OfPowers, Remade):
    """The Kumaraswamy distribution, of numbers from 0 to 1, much like Beta.

    concentration1  its first shape, positive, a number or a Tensor
    concentration0  its second shape, positive; the two broadcast

    >>> torch.distributions.Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    def _begin(self, a: Tensor, b: Tensor, validate_args: bool | None) -> None:
        self.concentration1, self.concentration0 = a, b
        low, high = torch.zeros_like(b), torch.ones_like(b)
        steps = [
            PowerTransform(b.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(a.reciprocal()),
        ]
        base = Uniform(low, high, validate_args=validate_args)
        Remade.__init__(self, base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        b, power = self.concentration0, 1 + n / self.concentration1
        return b * (power.lgamma() + b.lgamma() - (power + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """The most likely value: NaN where a concentration is below 1."""
        a, b = self.concentration1, self.concentration0
        found = ((a - 1) / (a * b - 1)).pow(1 / a)
        return torch.where((a < 1) | (b < 1), math.nan, found)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        spread = (1 - 1 / a) * ((b + 1).digamma() + EULER)
        return 1 - 1 / b + spread - a.log() - b.log()


_publish(__name__, described=True)
