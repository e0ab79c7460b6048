"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _AroundLocation
from pydevtensor.distributions.chi2 import Chi2
from pydevtensor.distributions.utils import broadcast_all, standard_normal

__all__ = ["StudentT"]


class StudentT(_AroundLocation):
    """Student's t-distribution.

    df     degrees of freedom, positive, a number or a Tensor
    loc    the middle
    scale  the width, positive; all broadcast

    >>> torch.distributions.StudentT(4.0).variance
    tensor(2.)
    """

    arg_constraints: ClassVar[Any] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Any,
        loc: Any = 0.0,
        scale: Any = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return torch.where(self.df <= 1, math.nan, self.loc)

    @property
    def variance(self) -> Tensor:
        """The variance: inf for df from 1 to 2, NaN up to 1."""
        found = self.scale.square() * self.df / (self.df - 2)
        found = torch.where(self.df > 2, found, math.inf)
        return torch.where(self.df <= 1, math.nan, found)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        X = standard_normal(self._extended_shape(sample_shape), self.df)
        Z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (X * (Z / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self._checked(value) - self.loc) / self.scale
        Z = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + (0.5 * self.df).lgamma()
            - (0.5 * (self.df + 1)).lgamma()
        )
        return -0.5 * (self.df + 1) * (y.square() / self.df).log1p() - Z

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        beta = half.lgamma() + math.lgamma(0.5) - more.lgamma()
        spread = more * (more.digamma() - half.digamma())
        return self.scale.log() + spread + 0.5 * self.df.log() + beta


_publish(__name__, described=True)
