"""Numbers whose logarithm is normal."""

from __future__ import annotations

from typing import Any

from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import parameter
from pydevtensor.distributions.normal import Normal
from pydevtensor.distributions.transformed_distribution import TransformedDistribution
from pydevtensor.distributions.transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """Numbers whose logarithm is normal.

    loc    the logarithm's mean, a number or a Tensor
    scale  the logarithm's standard deviation, positive; the two broadcast

    >>> torch.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = Normal.arg_constraints
    support: Any = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    loc: Any = parameter("loc", "The logarithm's mean.")
    scale: Any = parameter("scale", "The logarithm's standard deviation.")

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        return self.scale.square().expm1() * (2 * self.loc + self.scale.square()).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


_publish(__name__, described=True)
