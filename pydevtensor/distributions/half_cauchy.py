"""Magnitudes of Cauchy numbers."""

from __future__ import annotations

import math

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions._families import _OfMagnitudes
from pydevtensor.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(_OfMagnitudes):
    """Magnitudes of numbers of the Cauchy distribution around 0.

    scale  half the width at half the height before, positive, a number or a
           Tensor

    >>> torch.distributions.HalfCauchy(1.0).cdf(torch.tensor(1.0))
    tensor(0.5000)
    """

    _signed = Cauchy

    @property
    def mean(self) -> Tensor:
        """inf."""
        return torch.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        """inf."""
        return torch.full_like(self.scale, math.inf)


_publish(__name__, described=True)
