"""Exponential families."""

from __future__ import annotations

from typing import Any

from pydevtensor import Tensor, autograd
from pydevtensor._names import publish as _publish
from pydevtensor.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base of a program's own distributions of an exponential family.

    Their density is exp(t(x) . n - F(n) + k(x)). A subclass has the natural parameters
    n as `_natural_params`, a tuple of Tensors, the function F of them as
    `_log_normalizer`, and the mean of k(x) as `_mean_carrier_measure`; from these comes
    entropy(), and the divergence of two of one class.

    >>> class Exponential(torch.distributions.ExponentialFamily):
    ...     def __init__(self, rate):
    ...         self.rate = rate
    ...         super().__init__(rate.shape)
    ...     @property
    ...     def _natural_params(self):
    ...         return (-self.rate,)
    ...     _mean_carrier_measure = 0
    ...     def _log_normalizer(self, n):
    ...         return -(-n).log()
    >>> Exponential(torch.tensor([1.0, 2.0])).entropy().detach()
    tensor([1.0000, 0.3069])
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise self._lacks("natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise self._lacks("_log_normalizer()")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise self._lacks("mean of a carrier measure")

    def _normalizer(self) -> tuple[Tensor, list[Tensor], Any]:
        """F(n), n, and the derivatives of F there."""
        params = [n.detach().requires_grad_() for n in self._natural_params]
        with autograd.enable_grad():
            value = self._log_normalizer(*params)
        slopes = autograd.grad(value.sum(), params, create_graph=True)
        return value, params, slopes

    def entropy(self) -> Tensor:
        """The entropy, in nats, by the derivatives of the normalizer."""
        value, params, slopes = self._normalizer()
        found = value - self._mean_carrier_measure
        for n, slope in zip(params, slopes, strict=True):
            found = found - self._over_event(n * slope)
        return found

    def _over_event(self, x: Tensor) -> Tensor:
        return x.reshape(*self.batch_shape, -1).sum(-1)


_publish(__name__, described=True)
