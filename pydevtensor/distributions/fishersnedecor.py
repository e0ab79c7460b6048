"""The distribution of Fisher and Snedecor, F."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor, finfo
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import Distribution, positive
from pydevtensor.distributions.gamma import Gamma
from pydevtensor.distributions.utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """Ratios of two mean squares of normal numbers, F.

    df1  degrees of freedom above, positive, a number or a Tensor
    df2  degrees of freedom below, positive; the two broadcast

    >>> torch.distributions.FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints: ClassVar[Any] = positive("df1", "df2")
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._above, self._below = (
            Gamma(x * 0.5, x * 0.5) for x in (self.df1, self.df2)
        )
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The mean: NaN for a df2 up to 2."""
        return torch.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        """The most likely value: NaN for a df1 up to 2."""
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return torch.where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Tensor:
        """The variance: NaN for a df2 up to 4."""
        m, n = self.df1, self.df2
        found = 2 * (n / (n - 2)).square() * (m + n - 2) / (m * (n - 4))
        return torch.where(n > 4, found, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        above = self._above.rsample(sample_shape)
        below = self._below.rsample(sample_shape)
        tiny = finfo(self.df2.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        m, n, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        constant = (m + n).lgamma() - m.lgamma() - n.lgamma() + m * ratio.log()
        return constant + (m - 1) * value.log() - (m + n) * (ratio * value).log1p()


_publish(__name__, described=True)
