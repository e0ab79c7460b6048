"""The gamma distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor, finfo
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import Function
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import positive
from pydevtensor.distributions.exp_family import ExponentialFamily
from pydevtensor.distributions.utils import broadcast_all

__all__ = ["Gamma"]


def _shape_gradient(shape: Tensor, x: Tensor) -> Tensor:
    """How a gamma number x of the shape moves with it: implicit differentiation of the
    cumulative distribution (Figurnov et al., Implicit reparameterization gradients,
    2018), by differences of the smaller tail, in float64."""
    a, z = shape.double(), x.double()
    h = 1e-3 * a.clamp(max=1.0) + 1e-4 * (a - 1).clamp(min=0).sqrt()

    def slope(part: Any) -> Tensor:
        near = part(a + h, z) - part(a - h, z)
        far = part(a + 2 * h, z) - part(a - 2 * h, z)
        return (8 * near - far) / (12 * h)

    moved = torch.where(z < a, slope(torch.igamma), -slope(torch.igammac))
    density = ((a - 1) * z.log() - z - a.lgamma()).exp()
    # Where x is small its part is x^a / gamma(a + 1).
    small = x.double() * (-(z.log() - (a + 1).digamma()) / a)
    return torch.where(z < 1e-8 * a, small, -moved / density).to(x.dtype)


class _StandardGamma(Function):
    _node = "StandardGammaBackward0"

    @staticmethod
    def forward(ctx: Any, shape: Tensor) -> Tensor:
        result = torch._standard_gamma(shape)
        ctx.save_for_backward(shape, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        shape, result = ctx.saved_tensors
        return gradient * _shape_gradient(shape.detach(), result.detach())


def standard_gamma(shape: Tensor) -> Tensor:
    return _StandardGamma.apply(shape)


class Gamma(ExponentialFamily):
    """The gamma distribution, of the time that several events take.

    concentration  how many events, or its shape: positive, a number or a Tensor
    rate           how many events a unit has, positive; the two broadcast

    >>> torch.distributions.Gamma(2.0, 4.0).mean
    tensor(0.5000)
    """

    arg_constraints: ClassVar[Any] = positive("concentration", "rate")
    support = constraints.nonnegative
    has_rsample = True

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(
            shape
        )
        return value.clamp(min=finfo(value.dtype).tiny)  # which has a logarithm

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(torch.as_tensor(value, dtype=self.rate.dtype))
        return (
            self.concentration.xlogy(self.rate)
            + (self.concentration - 1).xlogy(value)
            - self.rate * value
            - self.concentration.lgamma()
        )

    def cdf(self, value: Tensor) -> Tensor:
        shape, z = broadcast_all(self.concentration, self.rate * self._checked(value))
        return torch.igamma(shape, z)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()


_publish(__name__, described=True)
