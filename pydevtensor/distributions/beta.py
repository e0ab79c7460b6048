"""The beta distribution."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions._families import _OfPowers
from pydevtensor.distributions.dirichlet import Dirichlet
from pydevtensor.distributions.distribution import Distribution
from pydevtensor.distributions.exp_family import ExponentialFamily

__all__ = ["Beta"]


class Beta(_OfPowers, ExponentialFamily):
    """Numbers x from 0 to 1, such as shares.

    The density goes like x^(concentration1 - 1) * (1 - x)^(concentration0 - 1).

    concentration1  the power of x, plus 1, positive, a number or a Tensor
    concentration0  the power of 1 - x, plus 1, likewise; the two broadcast

    >>> torch.distributions.Beta(1.0, 3.0).mean
    tensor(0.2500)
    """

    has_rsample = True

    def _begin(self, a: Tensor, b: Tensor, validate_args: bool | None) -> None:
        both = torch.stack((a, b), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        shape = self._dirichlet.batch_shape
        Distribution.__init__(self, shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """The power of x, plus 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The power of 1 - x, plus 1."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self._dirichlet.mean[..., 0]

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        return self._dirichlet.variance[..., 0]

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        return self._dirichlet.log_prob(torch.stack([value, 1 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


_publish(__name__, described=True)
