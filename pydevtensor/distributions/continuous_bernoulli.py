"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _OfSuccess
from pydevtensor.distributions.exp_family import ExponentialFamily
from pydevtensor.distributions.utils import clamp_probs
from pydevtensor.nn import functional as F

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(_OfSuccess, ExponentialFamily):
    """Numbers from 0 to 1 whose density is proportional to p^x (1 - p)^(1 - x).

    For the likelihood of pixels (Loaiza-Ganem and Cunningham, The continuous Bernoulli,
    2019). ValueError unless one of probs and logits is given.

    probs  p, from 0 to 1, a number or a Tensor
    lims   between these two p's, series take the place of formulas that would lose
           digits

    >>> torch.distributions.ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        if probs is not None and not validate_args:
            probs = clamp_probs(torch.as_tensor(probs))
        super().__init__(probs, logits, validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)
        self._lims = lims

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Whether p is away from one half; p there, and how far it is from one half."""
        p = self.probs
        away = (p <= self._lims[0]) | (p > self._lims[1])
        return away, torch.where(away, p, self._lims[0]), p - 0.5

    def _log_norm(self) -> Tensor:
        """The logarithm of the factor by which the density's integral is 1."""
        away, p, far = self._parts()
        odds = ((-p).log1p() - p.log()).abs().log()
        low, high = p.clamp(max=0.5), p.clamp(min=0.5)
        exact = odds - torch.where(p <= 0.5, (-2 * low).log1p(), (2 * high - 1).log())
        x = far.square()
        return torch.where(away, exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        away, p, far = self._parts()
        exact = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        near = 0.5 + (1 / 3 + 16 / 45 * far.square()) * far
        return torch.where(away, exact, near)

    @property
    def variance(self) -> Tensor:
        away, p, far = self._parts()
        odds = (-p).log1p() - p.log()
        exact = p * (p - 1) / (1 - 2 * p).square() + 1 / odds.square()
        x = far.square()
        return torch.where(away, exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        p = self.probs
        return self.icdf(torch.rand(shape, dtype=p.dtype, device=p.device))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = torch.broadcast_tensors(self.logits, self._checked(value))
        cross = F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._log_norm() - cross

    def cdf(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        away, p, _ = self._parts()
        exact = (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1)
        return torch.where(away, exact, value).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        away, p, _ = self._parts()
        low = (-p).log1p()
        exact = ((-p + value * (2 * p - 1)).log1p() - low) / (p.log() - low)
        return torch.where(away, exact, value)

    def entropy(self) -> Tensor:
        low, high = (-self.probs).log1p(), self.probs.log()
        return self.mean * (low - high) - self._log_norm() - low


_publish(__name__, described=True)
