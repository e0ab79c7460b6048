"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

from pydevtensor import Tensor, finfo
from pydevtensor._names import publish as _publish
from pydevtensor.distributions._families import _OfLocation

__all__ = ["Laplace"]


class Laplace(_OfLocation):
    """The Laplace distribution, of two exponential sides.

    loc    the middle, a number or a Tensor
    scale  the mean distance from it, positive; the two broadcast

    >>> torch.distributions.Laplace(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.6931)
    """

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self.loc.new_empty(self._extended_shape(sample_shape))
        u = drawn.uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        far = (self._checked(value) - self.loc).abs()
        return -(2 * self.scale).log() - far / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        z = self._checked(value) - self.loc
        return 0.5 - 0.5 * z.sign() * (-z.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        z = value - 0.5
        return self.loc - self.scale * z.sign() * (-2 * z.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


_publish(__name__, described=True)
