"""The Weibull distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import positive
from pydevtensor.distributions.exponential import Exponential
from pydevtensor.distributions.gumbel import EULER
from pydevtensor.distributions.transformed_distribution import Remade
from pydevtensor.distributions.transforms import AffineTransform, PowerTransform
from pydevtensor.distributions.utils import broadcast_all

__all__ = ["Weibull"]


class Weibull(Remade):
    """The Weibull distribution, of times until something fails.

    scale          the width, positive, a number or a Tensor
    concentration  the shape, positive: below 1 failures become rarer with time, above
                   1 more frequent; the two broadcast

    >>> torch.distributions.Weibull(1.0, 2.0).mean
    tensor(0.8862)
    """

    arg_constraints: ClassVar[Any] = positive("scale", "concentration")
    support: Any = constraints.positive

    def __init__(
        self, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal: Tensor = self.concentration.reciprocal()
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        steps = [
            PowerTransform(self.concentration_reciprocal),
            AffineTransform(0, self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        return (1 + n * self.concentration_reciprocal).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        """The most likely value: NaN for a concentration below 1."""
        part = 1 - self.concentration_reciprocal
        return self.scale * part.pow(self.concentration_reciprocal)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return EULER * (1 - r) + (self.scale * r).log() + 1


_publish(__name__, described=True)
