"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _AroundLocation
from pydevtensor.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(_AroundLocation):
    """The generalized Pareto distribution, of what exceeds a threshold.

    loc            the threshold, the least value, a number or a Tensor
    scale          the width, positive
    concentration  the shape: positive for a heavy tail, 0 for an exponential one,
                   negative for an end; all broadcast

    >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
    tensor(2.)
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        scale: Any,
        concentration: Any,
        validate_args: bool | None = None,
    ) -> None:
        parts = broadcast_all(loc, scale, concentration)
        self.loc, self.scale, self.concentration = parts
        # The formulas divide by the shape, and have another form near 0.
        self._flat: Tensor = self.concentration.abs() < 1e-8
        self._shape: Tensor = torch.where(self._flat, 1.0, self.concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """The support: from loc on, up to an end if the concentration is negative."""
        end = self.loc - self.scale / self._shape
        end = torch.where(self.concentration < 0, end, math.inf)
        return constraints.interval(self.loc, end)

    @property
    def mean(self) -> Tensor:
        """The mean: nan for a concentration from 1 on."""
        c = self.concentration
        return torch.where(c < 1, self.loc + self.scale / (1 - c), math.nan)

    @property
    def variance(self) -> Tensor:
        """The variance: nan for a concentration from 0.5 on."""
        c = self.concentration
        found = (self.scale / (1 - c)).square() / (1 - 2 * c)
        return torch.where(c < 0.5, found, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(
            torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        )

    def _log_survival(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return torch.where(self._flat, -z, -(self._shape * z).log1p() / self._shape)

    def log_prob(self, value: Tensor) -> Tensor:
        power = torch.where(self._flat, 1.0, 1 + self._shape)
        return power * self._log_survival(value) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return -self._log_survival(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        log = (-value).log1p()
        z = torch.where(self._flat, -log, (-self._shape * log).expm1() / self._shape)
        return self.loc + self.scale * z

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


_publish(__name__, described=True)
