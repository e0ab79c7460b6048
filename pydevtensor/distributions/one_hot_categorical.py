"""Categories as vectors with a single 1."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _OfCategories, _OfIndicators
from pydevtensor.nn import functional as F

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(_OfIndicators, _OfCategories):
    """Categories as vectors with a single 1, and else 0.

    ValueError unless one of probs and logits is given.

    >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    support = constraints.one_hot

    @property
    def mode(self) -> Tensor:
        """The most likely vector."""
        best = self.probs.argmax(-1)
        return F.one_hot(best, self._event_shape[-1]).to(self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample(sample_shape)
        return F.one_hot(drawn, self._event_shape[-1]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical.log_prob(self._checked(value).argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All vectors, along a new first dimension.

        expand  repeat them for each of the batch, else give its sizes as 1
        """
        n = self._event_shape[-1]
        values = torch.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose samples pass gradients to the probabilities.

    Bengio et al., Estimating or propagating gradients through stochastic neurons for
    conditional computation (2013).

    >>> p = torch.ones(2, requires_grad=True)
    >>> torch.distributions.OneHotCategoricalStraightThrough(p).rsample().requires_grad
    True
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """A sample, with the gradient of the probabilities.

        sample_shape  how many, sizes: the result has sample_shape + batch_shape +
                      event_shape
        """
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


_publish(__name__, described=True)
