"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _OfIndicators, _OfSuccess
from pydevtensor.distributions.distribution import same_as
from pydevtensor.distributions.exp_family import ExponentialFamily
from pydevtensor.distributions.utils import broadcast_all
from pydevtensor.nn import functional as F

__all__ = ["Bernoulli"]


class Bernoulli(_OfIndicators, _OfSuccess, ExponentialFamily):
    """1 with a probability, else 0.

    ValueError unless one of probs and logits is given.

    probs  the probability, 0 to 1, a number or a Tensor

    >>> torch.distributions.Bernoulli(0.25).log_prob(torch.tensor(1.0))
    tensor(-1.3863)
    """

    support = constraints.boolean

    @property
    def mode(self) -> Tensor:
        """The more likely value, NaN where both are."""
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return torch.where(self.probs == 0.5, float("nan"), mode)

    param_shape: Any = same_as("_batch_shape", "The shape of the parameter.")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return torch.bernoulli(
                self.probs.expand(self._extended_shape(sample_shape))
            )

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, self._checked(value))
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none"
        )

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0 and 1, along a new first dimension.

        expand  repeat them for each of the batch, else give its sizes as 1
        """
        values = self._values(
            torch.arange(2, dtype=self.probs.dtype, device=self.probs.device)
        )
        return values.expand(-1, *self._batch_shape) if expand else values


_publish(__name__, described=True)
