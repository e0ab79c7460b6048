"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor, special
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions._families import _AroundLocation
from pydevtensor.distributions.distribution import same_as
from pydevtensor.distributions.utils import broadcast_all

__all__ = ["VonMises"]


class VonMises(_AroundLocation):
    """The von Mises distribution, of angles from -pi to pi.

    loc            the most likely angle, in radians, a number or a Tensor
    concentration  how near to it the angles are, positive; the two broadcast

    >>> torch.distributions.VonMises(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real

    def __init__(
        self, loc: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean: Tensor = same_as("loc", "The mean direction: loc.")

    @property
    def variance(self) -> Tensor:
        """The variance on the circle, from 0 to 1."""
        k = self.concentration
        return 1 - special.i1e(k) / special.i0e(k)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Random angles, by rejection (Best and Fisher, Efficient simulation of the von
        Mises distribution, 1979) in float64.

        sample_shape  how many, sizes
        """
        with no_grad():
            shape = self._extended_shape(sample_shape)
            k = self.concentration.double().expand(shape)
            tau = 1 + (1 + 4 * k.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = torch.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))
            found = torch.zeros_like(r)
            waiting = torch.ones_like(r, dtype=torch.bool)
            while waiting.any():
                drawn = torch.rand((3, *shape), dtype=r.dtype, device=r.device)
                turn, chance, side = drawn
                z = (math.pi * turn).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                right = (c * (2 - c) > chance) | ((c / chance).log() + 1 - c >= 0)
                angle = (side - 0.5).sign() * f.acos()
                found = torch.where(right, angle, found)
                waiting &= ~right
            turned = (found + math.pi + self.loc.double()) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self.concentration
        near = k * ((self._checked(value) - self.loc).cos() - 1)
        return near - math.log(2 * math.pi) - special.i0e(k).log()


_publish(__name__, described=True)
