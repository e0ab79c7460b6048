"""The Pareto distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import positive, same_as
from pydevtensor.distributions.exponential import Exponential
from pydevtensor.distributions.transformed_distribution import Remade
from pydevtensor.distributions.transforms import AffineTransform, ExpTransform
from pydevtensor.distributions.utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(Remade):
    """The Pareto distribution, of numbers from scale on with a heavy tail.

    scale  the least value, positive, a number or a Tensor
    alpha  how fast the tail falls, positive; the two broadcast

    >>> torch.distributions.Pareto(1.0, 2.0).mean
    tensor(2.)
    """

    arg_constraints: ClassVar[Any] = positive("alpha", "scale")

    def __init__(
        self, scale: Any, alpha: Any, validate_args: bool | None = None
    ) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        steps = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """The support: from scale on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """The mean: inf for an alpha up to 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode: Tensor = same_as("scale", "scale.")

    @property
    def variance(self) -> Tensor:
        """The variance: inf for an alpha up to 2."""
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()


_publish(__name__, described=True)
