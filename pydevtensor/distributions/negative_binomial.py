"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _OfSuccess
from pydevtensor.distributions.distribution import Distribution
from pydevtensor.distributions.gamma import Gamma
from pydevtensor.distributions.utils import lazy_property
from pydevtensor.nn import functional as F

__all__ = ["NegativeBinomial"]


class NegativeBinomial(_OfSuccess):
    """How many trials succeed before total_count ones have failed.

    ValueError unless one of probs and logits is given.

    total_count  how many failures end it, 0 or more, a number or a Tensor
    probs        the probability of success, below 1; broadcasts with total_count

    >>> torch.distributions.NegativeBinomial(3.0, 0.5).mean
    tensor(3.)
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.total_count, param = self._set_given(probs, logits, total_count)
        self.total_count = self.total_count.type_as(param)
        Distribution.__init__(self, param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return torch.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value, n = self._checked(value), self.total_count
        chance = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        return chance + torch.where(n + value == 0, 0.0, ways)


_publish(__name__, described=True)
