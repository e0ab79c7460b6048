"""The transforms that change each element by itself."""

from __future__ import annotations

import math
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor, finfo
from pydevtensor.distributions import constraints
from pydevtensor.distributions.transforms import Transform, _sum_last
from pydevtensor.nn import functional as F


class _Increasing(Transform):
    domain: Any = constraints.real
    bijective = True
    sign: Any = 1


class ExpTransform(_Increasing):
    """y = e to the power of x.

    >>> from pydevtensor.distributions.transforms import *
    >>> ExpTransform()(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy/dx|, which is x itself.

        x  where
        y  of no effect
        """
        return x


class PowerTransform(_Increasing):
    """y = x to a power, for positive x.

    exponent  the power, a number or a Tensor

    >>> from pydevtensor.distributions.transforms import *
    >>> PowerTransform(2.0)(torch.tensor([1.0, 3.0]))
    tensor([1., 9.])
    """

    domain = constraints.positive
    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent: Tensor = torch.as_tensor(exponent)

    @property
    def sign(self) -> Any:
        """The exponent's."""
        return self.exponent.sign()

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |exponent y / x|."""
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + e to the power of -x).

    >>> from pydevtensor.distributions.transforms import *
    >>> SigmoidTransform()(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        limits = finfo(x.dtype)
        return x.sigmoid().clamp(min=limits.tiny, max=1.0 - limits.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """-softplus(-x) - softplus(x).

        x  where
        y  of no effect
        """
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Increasing):
    """y = log(1 + e to the power of x).

    >>> from pydevtensor.distributions.transforms import *
    >>> SoftplusTransform()(torch.tensor([0.0, 1.0]))
    tensor([0.6931, 1.3133])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """-softplus(-x).

        x  where
        y  of no effect
        """
        return -F.softplus(-x)


class TanhTransform(_Increasing):
    """y = tanh(x).

    >>> from pydevtensor.distributions.transforms import *
    >>> TanhTransform()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    codomain: Any = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log(1 - y y), exact for large x."""
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|, which has no one inverse.

    >>> from pydevtensor.distributions.transforms import *
    >>> AbsTransform()(torch.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale x.

    loc        added offset, a number or a Tensor
    scale      what x is multiplied by, not 0, a number or a Tensor
    event_dim  how many dimensions one value has

    >>> from pydevtensor.distributions.transforms import *
    >>> AffineTransform(1.0, 2.0)(torch.tensor([0.0, 1.0]))
    tensor([1., 3.])
    """

    loc: Any
    scale: Any

    bijective = True

    def __init__(
        self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        """How many dimensions one value has."""
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The real numbers, or tensors of event_dim dimensions of them."""
        count = self.event_dim
        return (
            constraints.independent(constraints.real, count)
            if count
            else constraints.real
        )

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The domain."""
        return self.domain

    @property
    def sign(self) -> Any:
        """scale's."""
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log|scale|, summed over the dimensions of one value.

        x  where; the result has its batch shape
        y  of no effect
        """
        if isinstance(self.scale, Tensor):
            size = self.scale.abs().log()
        else:
            size = torch.full_like(x, math.log(abs(self.scale)))
        found = _sum_last(
            size.expand(torch.broadcast_shapes(size.shape, x.shape)), self.event_dim
        )
        return found.expand(x.shape[: x.dim() - self.event_dim])

    def forward_shape(self, shape: Any) -> Any:
        parts = [getattr(v, "shape", ()) for v in (self.loc, self.scale)]
        return torch.broadcast_shapes(shape, *parts)

    inverse_shape = forward_shape
