"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor, finfo
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _OfSuccess
from pydevtensor.distributions.utils import broadcast_all
from pydevtensor.nn import functional as F

__all__ = ["Geometric"]


class Geometric(_OfSuccess):
    """How many trials fail before the first success.

    ValueError unless one of probs and logits is given.

    probs  the probability of success, above 0 up to 1, a number or a Tensor

    >>> torch.distributions.Geometric(0.5).log_prob(torch.tensor(1.0))
    tensor(-1.3863)
    """

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(f"Geometric: probs is {self.probs!r}; give more than 0")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return torch.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            drawn = self.probs.new_empty(self._extended_shape(sample_shape))
            u = drawn.uniform_(finfo(drawn.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        value, probs = broadcast_all(self._checked(value), self.probs)
        probs = torch.where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        cross = F.binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none"
        )
        return cross / self.probs


_publish(__name__, described=True)
