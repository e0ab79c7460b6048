"""Numbers of categories."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Size, Tensor, finfo
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import Distribution
from pydevtensor.distributions.utils import (
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

__all__ = ["Categorical"]


class Categorical(Distribution):
    """Numbers of categories, 0 to k - 1.

    ValueError unless one of probs and logits is given. See also OneHotCategorical,
    whose values are vectors.

    probs   weights of the categories, a Tensor (..., k) that need not sum to 1
    logits  in their place, their logarithms up to a constant

    >>> torch.distributions.Categorical(torch.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Categorical: give either probs or logits")
        param = logits if probs is None else probs
        if param.dim() < 1:
            raise ValueError(
                "Categorical: the parameter is a number; give a vector, or a batch of "
                "them"
            )
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:  # so that e to their powers sums to 1
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = param.shape[-1]
        super().__init__(param.shape[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits)

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.shape

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """The numbers of categories."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return torch.full(self._batch_shape, math.nan, **self._like)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return torch.full(self._batch_shape, math.nan, **self._like)

    @property
    def _like(self) -> dict[Any, Any]:
        return {"dtype": self._param.dtype, "device": self._param.device}

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = torch.multinomial(rows, Size(sample_shape).numel(), True).T
            return drawn.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value).long().unsqueeze(-1)
        value, logits = torch.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All numbers of categories, along a new first dimension.

        expand  repeat them for each of the batch, else give its sizes as 1
        """
        values = self._values(torch.arange(self._num_events, device=self._param.device))
        return values.expand(-1, *self._batch_shape) if expand else values


_publish(__name__, described=True)
