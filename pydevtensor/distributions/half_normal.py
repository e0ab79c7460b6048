"""Magnitudes of normal numbers."""

from __future__ import annotations

import math

from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions._families import _OfMagnitudes
from pydevtensor.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(_OfMagnitudes):
    """Magnitudes of normal numbers of mean 0.

    scale  their standard deviation, positive, a number or a Tensor

    >>> torch.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _signed = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)


_publish(__name__, described=True)
