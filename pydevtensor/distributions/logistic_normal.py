"""Vectors of parts of 1, by sticks that are broken."""

from __future__ import annotations

from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import parameter
from pydevtensor.distributions.independent import Independent
from pydevtensor.distributions.normal import Normal
from pydevtensor.distributions.transformed_distribution import TransformedDistribution
from pydevtensor.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Vectors of parts that sum to 1, one element longer than loc.

    loc    means of normal numbers, a Tensor (..., k)
    scale  their standard deviations, positive; the two broadcast

    >>> torch.distributions.LogisticNormal(torch.zeros(2), torch.ones(2)).event_shape
    torch.Size([3])
    """

    arg_constraints = Normal.arg_constraints
    support: Any = constraints.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))  # type: ignore[assignment]
        steps = StickBreakingTransform()
        super().__init__(base, steps, validate_args=validate_args)

    @property
    def _normal(self) -> Any:
        base: Any = self.base_dist
        return base.base_dist if isinstance(base, Independent) else base

    loc: Any = parameter("loc", "The means of the normal numbers.", "_normal")
    scale: Any = parameter(
        "scale", "The standard deviations of the normal numbers.", "_normal"
    )


_publish(__name__, described=True)
