"""The Dirichlet distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor, finfo
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import Function
from pydevtensor.distributions import constraints
from pydevtensor.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


# Double exponential quadrature (Takahasi and Mori, 1974) from 0 to infinity: nodes in
# units of where the integrand falls, and their weights.
_STEP = 0.1
_NODES = [
    (math.exp(math.pi / 2 * math.sinh(u)), _STEP * math.pi / 2 * math.cosh(u))
    for u in (_STEP * k for k in range(-32, 33))
]


def _share_gradient(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """How x, a number of Beta(a, b), moves with a, divided by 1 - x: implicit
    differentiation of the cumulative distribution (Figurnov et al., Implicit
    reparameterization gradients, 2018).

    That is the integral of density(t) / density(x) * (mean of log t - log t) over the t
    below x, or over those above with the other sign: on the side of x that is away from
    the mean a / (a + b), where t or 1 - t is y * e^-s.
    """
    x, a, b = x.double(), a.double(), b.double()
    below = x * (a + b) < a
    y = torch.where(below, x, 1 - x)
    near, far = torch.where(below, a, b), torch.where(below, b, a) - 1
    # The density falls at first like exp(-slope * s - bend * s^2 / 2).
    slope = (near - far * y / (1 - y)).abs()
    bend = (far * y).abs() / (1 - y).square()
    unit = 2 / (slope + (slope.square() + 2 * bend).sqrt())
    mean, log_y, log_rest = a.digamma() - (a + b).digamma(), y.log(), (-y).log1p()
    total = torch.zeros_like(y)
    for place, weight in _NODES:
        s = unit * place
        rest = (-y * (-s).exp()).log1p()
        density = (far * (rest - log_rest) - near * s).exp()
        away = torch.where(below, mean - log_y + s, rest - mean)
        total += place * weight * density * away
    return total * unit * y / (1 - x)


class _Dirichlet(Function):
    _node = "_DirichletBackward"

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        drawn = torch._standard_gamma(a.double())
        limits = finfo(a.dtype)
        value = (drawn / drawn.sum(-1, True)).to(a.dtype)
        value = value.clamp(min=limits.tiny, max=1 - limits.eps / 2)
        ctx.save_for_backward(a, value)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        a, x = (saved.detach() for saved in ctx.saved_tensors)
        moved = _share_gradient(x, a, a.sum(-1, True) - a).to(x.dtype)
        # The others shrink as much as one grows, in proportion.
        return moved * (gradient - (x * gradient).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Vectors of positive numbers that sum to 1.

    concentration  positive numbers, a Tensor (..., k); a number alone is a ValueError

    >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
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
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """The most likely vector."""
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, True)
        corner = (self.concentration < 1).all(-1, keepdim=True)
        best = self.concentration.argmax(-1, keepdim=True)
        one = torch.zeros_like(mode).scatter(-1, best, 1.0)
        return torch.where(corner, one, mode)

    @property
    def variance(self) -> Tensor:
        a, total = self.concentration, self.concentration.sum(-1, True)
        return a * (total - a) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return _Dirichlet.apply(
            self.concentration.expand(self._extended_shape(sample_shape))
        )

    def log_prob(self, value: Tensor) -> Tensor:
        a = self.concentration
        return (
            (a - 1).xlogy(self._checked(value)).sum(-1)
            + a.sum(-1).lgamma()
            - a.lgamma().sum(-1)
        )

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (
            a.lgamma().sum(-1)
            - total.lgamma()
            - (k - total) * total.digamma()
            - ((a - 1) * a.digamma()).sum(-1)
        )


_publish(__name__, described=True)
