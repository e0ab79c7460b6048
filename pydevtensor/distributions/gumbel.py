"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor, finfo
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import same_as
from pydevtensor.distributions.normal import Normal
from pydevtensor.distributions.transformed_distribution import Remade
from pydevtensor.distributions.transforms import AffineTransform, ExpTransform
from pydevtensor.distributions.uniform import Uniform
from pydevtensor.distributions.utils import broadcast_all

__all__ = ["Gumbel"]

EULER = 0.57721566490153286


class Gumbel(Remade):
    """The distribution of greatest values of many.

    loc    the most likely value, a number or a Tensor
    scale  the width, positive; the two broadcast

    >>> torch.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    arg_constraints = Normal.arg_constraints
    support: Any = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        base = Uniform(
            torch.full_like(self.loc, float(limits.tiny)),
            torch.full_like(self.loc, 1 - float(limits.eps)),
            validate_args=validate_args,
        )
        transforms = [
            ExpTransform().inv,
            AffineTransform(0, -torch.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    mode: Tensor = same_as("loc", "loc.")

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self.loc - self._checked(value)) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


_publish(__name__, described=True)
