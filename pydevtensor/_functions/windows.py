"""Window functions for spectral analysis."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._functions.create import as_factory

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def _window(
    length, periodic, make, dtype=None, pin_memory=False, requires_grad=False, **where
):
    dtype = dtype or _C.get_default_dtype()
    if not dtype.is_floating_point:
        raise RuntimeError(f"dtype is {dtype}; give a floating type")
    if length < 2:
        made = _C.ones(length, dtype=dtype, **where)
    else:
        number = _C.arange(length, dtype=dtype, **where)
        made = make(number, length if periodic else length - 1)
    return as_factory(made, pin_memory, requires_grad)


def _cosines(constant, *factors):
    """constant - factors[0] * cos(t) + factors[1] * cos(2 * t) over a period of t."""

    def make(n, steps):
        terms = (
            (n * (2 * k * math.pi / steps)).cos() * (factor * (-1) ** k)
            for k, factor in reversed([*enumerate(factors, 1)])
        )
        return reduce(add, terms) + constant

    return make


@function(factory=True)
def hann_window(window_length: int, periodic: bool = True, **factory: Any) -> Tensor:
    """Hann window of window_length samples.

    With periodic, a symmetric window of window_length + 1 samples without the last.

    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(window_length, periodic, _cosines(0.5, 0.5), **factory)


@function(factory=True)
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    **factory: Any,
) -> Tensor:
    """Hamming window, alpha - beta * cos(...), of window_length samples.

    With periodic, a symmetric window of window_length + 1 samples without the last.

    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window(window_length, periodic, _cosines(alpha, beta), **factory)


@function(factory=True)
def blackman_window(
    window_length: int, periodic: bool = True, **factory: Any
) -> Tensor:
    """Blackman window of window_length samples.

    With periodic, a symmetric window of window_length + 1 samples without the last.

    >>> torch.blackman_window(4, dtype=torch.float64).round(decimals=2)
    tensor([0.0000, 0.3400, 1.0000, 0.3400], dtype=torch.float64)
    """
    return _window(window_length, periodic, _cosines(0.42, 0.5, 0.08), **factory)


@function(factory=True)
def bartlett_window(
    window_length: int, periodic: bool = True, **factory: Any
) -> Tensor:
    """Bartlett (triangular) window of window_length samples.

    With periodic, a symmetric window of window_length + 1 samples without the last.

    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """

    def make(n, steps):
        rising = n * (2 / steps)
        return _C.where(n * 2 <= steps, rising, 2 - rising)

    return _window(window_length, periodic, make, **factory)


@function(factory=True)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **factory: Any
) -> Tensor:
    """Kaiser window of window_length samples; a larger beta makes it narrower.

    With periodic, a symmetric window of window_length + 1 samples without the last.

    >>> torch.kaiser_window(4)
    tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01])
    """

    def make(n, steps):
        # Bessel's I0(x) is the mean of exp(x cos t) over t in [0, pi]. Equidistant t
        # give it to full precision once they are more than x.
        count = 40 + int(min(abs(beta), 1e6))
        half = (_C.arange(count, dtype=_C.float64, device=n.device) + 0.5) * math.pi
        cosines = (half / count).cos()
        x = (1 - (n.double() * (2 / steps) - 1) ** 2).clamp(min=0).sqrt() * abs(beta)
        above = (x.unsqueeze(1) * cosines - abs(beta)).exp().mean(1)
        below = (cosines * abs(beta) - abs(beta)).exp().mean()
        return (above / below).to(n.dtype)

    return _window(window_length, periodic, make, **factory)
