"""The normal distribution and those made of it."""

from __future__ import annotations

import math
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions._families import _OfLocation
from pydevtensor.distributions.distribution import same_as
from pydevtensor.distributions.exp_family import ExponentialFamily
from pydevtensor.distributions.utils import standard_normal

__all__ = ["Normal"]


class Normal(_OfLocation, ExponentialFamily):
    """The normal distribution.

    loc    the mean, a number or a Tensor
    scale  the standard deviation, positive; the two broadcast

    >>> torch.distributions.Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    stddev: Tensor = same_as("scale", "scale.")

    @property
    def variance(self) -> Tensor:
        """The square of scale."""
        return self.scale.square()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Random values, PyTorch's numbers for a seed.

        sample_shape  how many, sizes: the result has sample_shape + batch_shape
        """
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return torch.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """loc + scale * standard normal numbers.

        sample_shape  how many, sizes: the result has sample_shape + batch_shape
        """
        shape = self._extended_shape(sample_shape)
        return self.loc + standard_normal(shape, self.loc) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._checked(value) - self.loc
        variance = self.scale.square()
        constant = math.log(math.sqrt(2 * math.pi))
        return -z.square() / (2 * variance) - self.scale.log() - constant

    def cdf(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return 0.5 * (1 + (z / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


_publish(__name__, described=True)
