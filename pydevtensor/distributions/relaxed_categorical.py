"""Vectors that are nearly one-hot."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _AfterRelaxed, _OfCategories, _Relaxed
from pydevtensor.distributions.transforms import ExpTransform
from pydevtensor.distributions.utils import clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(_Relaxed, _OfCategories):
    """The logarithms of RelaxedOneHotCategorical's vectors (Maddison and others, 2017).

    temperature  how far the vectors are from one-hot ones, positive, a Tensor
    probs        probabilities of the categories, a Tensor (..., k)
    logits       in its place, their logarithms

    >>> from pydevtensor.distributions.relaxed_categorical import ExpRelaxedCategorical
    >>> ExpRelaxedCategorical(torch.tensor(0.5), torch.ones(2)).event_shape
    torch.Size([2])
    """

    support = constraints.real_vector

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        like = self.logits.expand(self._extended_shape(sample_shape))
        gumbel = -(-clamp_probs(torch.rand_like(like)).log()).log()
        return ((self.logits + gumbel) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self.event_shape[0]
        value = self._checked(value)
        cold = torch.as_tensor(self.temperature).log()
        scores = (self.logits - value * self.temperature).log_softmax(-1).sum(-1)
        return scores + math.lgamma(k) + (k - 1) * cold


class RelaxedOneHotCategorical(_AfterRelaxed):
    """Vectors that sum to 1, with gradients, the nearer to one-hot the colder.

    temperature  positive, a Tensor
    probs        probabilities of the categories, a Tensor (..., k)
    logits       in its place, their logarithms

    >>> from pydevtensor.distributions import RelaxedOneHotCategorical
    >>> RelaxedOneHotCategorical(torch.tensor(0.5), torch.ones(2)).probs
    tensor([0.5000, 0.5000])
    """

    arg_constraints: ClassVar[Any] = _OfCategories.arg_constraints
    support: Any = constraints.simplex

    _relaxed = ExpRelaxedCategorical
    _transform = ExpTransform


_publish(__name__, described=True)
