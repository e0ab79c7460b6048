"""The binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _OfSuccess
from pydevtensor.distributions.distribution import Distribution, same_as

__all__ = ["Binomial"]


class Binomial(_OfSuccess):
    """Counts of successes in trials.

    ValueError unless one of probs and logits is given. See also Bernoulli, for one
    trial.

    total_count  how many trials, 0 or more, an int or a Tensor of them
    probs        the probability of success, 0 to 1, a number or a Tensor

    >>> torch.distributions.Binomial(10, torch.tensor(0.5)).mean
    tensor(5.)
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        count, param = self._set_given(probs, logits, total_count)
        self.total_count: Tensor = count.type_as(param)
        Distribution.__init__(self, param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """Whole numbers up to total_count."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    param_shape: Any = same_as("_batch_shape", "The shape of the parameter.")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return torch.binomial(
                self.total_count.expand(shape), self.probs.expand(shape)
            )

    def log_prob(self, value: Tensor) -> Tensor:
        k, n = self._checked(value), self.total_count
        ways = (n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()
        # log(1 + e^logits), which does not overflow
        softplus = self.logits.clamp(min=0) + (-self.logits.abs()).exp().log1p()
        return ways + k * self.logits - n * softplus

    def entropy(self) -> Tensor:
        if not (self.total_count == self.total_count.max()).all():
            raise NotImplementedError(
                "Binomial: entropy() takes one total_count for all"
            )
        found = self.log_prob(self.enumerate_support(False))
        return -(found.exp() * found).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All counts, along a new first dimension.

        NotImplementedError for several total_counts.

        expand  repeat them for each of the batch, else give its sizes as 1
        """
        most = int(self.total_count.max())
        if not (self.total_count.min() == most):
            raise NotImplementedError(
                "Binomial: the total_counts differ; give one for all"
            )
        values = torch.arange(
            1 + most, dtype=self.total_count.dtype, device=self.probs.device
        )
        values = self._values(values)
        return values.expand(-1, *self._batch_shape) if expand else values


_publish(__name__, described=True)
