"""The uniform distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import Distribution
from pydevtensor.distributions.utils import broadcast_all

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Numbers from low up to but without high, all alike.

    low   the least value, a number or a Tensor
    high  the value after the greatest, more than low; the two broadcast

    >>> torch.distributions.Uniform(0.0, 4.0).log_prob(torch.tensor(1.0))
    tensor(-1.3863)
    """

    arg_constraints: ClassVar[Any] = {
        "low": constraints.dependent(is_discrete=False, event_dim=0),
        "high": constraints.dependent(is_discrete=False, event_dim=0),
    }
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not (self.low < self.high).all():
            raise ValueError(
                f"Uniform: low is {self.low!r} and high {self.high!r}; give low < high"
            )

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """The interval."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return float("nan") * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = torch.rand(
            self._extended_shape(sample_shape),
            dtype=self.low.dtype,
            device=self.low.device,
        )
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        part = (self._checked(value) - self.low) / (self.high - self.low)
        return part.clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


_publish(__name__, described=True)
