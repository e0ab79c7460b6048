"""The Poisson distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import same_as
from pydevtensor.distributions.exp_family import ExponentialFamily
from pydevtensor.distributions.utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """Counts of events that happen at random.

    rate  how many are expected, 0 or more, a number or a Tensor

    >>> torch.distributions.Poisson(2.0).log_prob(torch.tensor(0.0))
    tensor(-2.)
    """

    arg_constraints: ClassVar[Any] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean: Tensor = same_as("rate")

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    variance: Tensor = same_as("rate")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        rate, value = broadcast_all(self.rate, self._checked(value))
        return value.xlogy(rate) - rate - (value + 1).lgamma()


_publish(__name__, described=True)
