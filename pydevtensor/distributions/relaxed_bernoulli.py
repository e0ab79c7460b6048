"""Numbers between 0 and 1 that are nearly 0 or 1."""

from __future__ import annotations

from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _AfterRelaxed, _OfSuccess, _Relaxed
from pydevtensor.distributions.transforms import SigmoidTransform
from pydevtensor.distributions.utils import clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(_Relaxed, _OfSuccess):
    """The logits of RelaxedBernoulli's numbers (Maddison and others, 2017).

    temperature  how far the numbers are from 0 and 1, positive, a Tensor
    probs        the probability of 1, a number or a Tensor

    >>> from pydevtensor.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(torch.tensor(0.5), 0.5).log_prob(torch.tensor(0.0))
    tensor(-2.0794)
    """

    support = constraints.real

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        probs = clamp_probs(self.probs.expand(self._extended_shape(sample_shape)))
        u = clamp_probs(torch.rand_like(probs))
        odds = u.log() - (-u).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        far = self.logits - self._checked(value) * self.temperature
        return torch.as_tensor(self.temperature).log() + far - 2 * far.exp().log1p()


class RelaxedBernoulli(_AfterRelaxed):
    """Numbers between 0 and 1 with gradients, nearer to them the lower the temperature.

    temperature  positive, a Tensor
    probs        the probability of 1, a number or a Tensor
    logits       in its place, the logarithm of the odds

    >>> torch.distributions.RelaxedBernoulli(torch.tensor(0.5), 0.5).probs
    tensor(0.5000)
    """

    arg_constraints: ClassVar[Any] = _OfSuccess.arg_constraints
    support: Any = constraints.unit_interval

    _relaxed = LogitRelaxedBernoulli
    _transform = SigmoidTransform


_publish(__name__, described=True)
