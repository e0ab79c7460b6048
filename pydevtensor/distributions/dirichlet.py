"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from pydevtensor import _C
from pydevtensor._C import Tensor
from pydevtensor._functions.dtypes import finfo
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import Distribution
from pydevtensor.distributions.gamma import standard_gamma

__all__ = ["Dirichlet"]


class Dirichlet(Distribution):
    """Vectors of positive numbers that sum to 1.

    concentration  positive numbers, a Tensor (..., k); a number alone is a ValueError
    validate_args  whether values out of range raise ValueError; None: the default

    >>> from pydevtensor.distributions import Dirichlet
    >>> Dirichlet(torch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, concentration: Tensor, validate_args: bool | None = None
    ) -> None:
        if concentration.dim() < 1:
            raise ValueError("Dirichlet: concentration is a number; give a vector")
        self.concentration = concentration
        super().__init__(
            concentration.shape[:-1], concentration.shape[-1:], validate_args
        )

    @property
    def mean(self) -> Tensor:
        """The mean."""
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """The most likely vector."""
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, True)
        corner = (self.concentration < 1).all(-1, keepdim=True)
        best = self.concentration.argmax(-1, keepdim=True)
        one = _C.zeros_like(mode).scatter(-1, best, 1.0)
        return _C.where(corner, one, mode)

    @property
    def variance(self) -> Tensor:
        """The variance."""
        a, total = self.concentration, self.concentration.sum(-1, True)
        return a * (total - a) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        a = self.concentration.expand(self._extended_shape(sample_shape))
        drawn = standard_gamma(a.double())
        value = (drawn / drawn.sum(-1, True)).to(a.dtype)
        limits = finfo(a.dtype)
        return value.clamp(min=limits.tiny, max=1 - limits.eps / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at value."""
        a = self.concentration
        return (
            (a - 1).xlogy(self._checked(value)).sum(-1)
            + a.sum(-1).lgamma()
            - a.lgamma().sum(-1)
        )

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (
            a.lgamma().sum(-1)
            - total.lgamma()
            - (k - total) * total.digamma()
            - ((a - 1) * a.digamma()).sum(-1)
        )


_publish(__name__)
