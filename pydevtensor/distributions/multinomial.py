"""Counts of categories."""

from __future__ import annotations

import math
from typing import Any

import pydevtensor as torch
from pydevtensor import Size, Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _OfCategories
from pydevtensor.distributions.binomial import Binomial

__all__ = ["Multinomial"]


class Multinomial(_OfCategories):
    """Counts of the categories in several draws, a vector.

    ValueError unless one of probs and logits is given.

    total_count  how many draws, one int, else NotImplementedError

    >>> torch.distributions.Multinomial(10, torch.tensor([0.0, 1.0])).sample()
    tensor([ 0., 10.])
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"Multinomial: total_count is {total_count!r}; give one int for all"
            )
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Vectors of counts."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count,)) + shape)
        drawn = drawn.movedim(0, -1)  # the draws, last
        counts = drawn.new_zeros(self._extended_shape(shape))
        counts.scatter_add_(-1, drawn, torch.ones_like(drawn))
        return counts.to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = torch.broadcast_tensors(self.logits, self._checked(value))
        logits = torch.where((value == 0) & (logits == -math.inf), 0.0, logits)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = torch.tensor(self.total_count)
        counts = Binomial(self.total_count, self.probs).enumerate_support(False)[1:]
        weights = Binomial(self.total_count, self.probs).log_prob(counts).exp()
        rest = (weights * (counts + 1).lgamma()).sum([0, -1])
        return (
            self.total_count * self._categorical.entropy() - (n + 1.0).lgamma() + rest
        )


_publish(__name__, described=True)
