"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions._families import _OfLocation

__all__ = ["Cauchy"]


class Cauchy(_OfLocation):
    """The Cauchy distribution, which has neither mean nor variance.

    loc    the middle, a number or a Tensor
    scale  half the width at half the height, positive; the two broadcast

    >>> torch.distributions.Cauchy(0.0, 1.0).cdf(torch.tensor(1.0))
    tensor(0.7500)
    """

    @property
    def mean(self) -> Tensor:
        return torch.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return torch.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self.loc.new_empty(self._extended_shape(sample_shape))
        return self.loc + drawn.cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - z.square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._checked(value) - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


_publish(__name__, described=True)
