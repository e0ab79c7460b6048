"""The window functions of torch.signal.windows."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

from pydevtensor import (
    Tensor,
    arange,
    float32,
    float64,
    full_like,
    get_default_dtype,
    ones,
    strided,
)
from pydevtensor import dtype as _dtype
from pydevtensor import special as _special
from pydevtensor._names import publish as _publish

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(
    name: str,
    M: int,
    make: Callable[[Tensor, int], Tensor],
    *,
    sym: bool = True,
    dtype: _dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """make(numbers of the samples, steps of a period), computed in float64."""
    M = operator.index(M)
    if M < 0:
        raise ValueError(f"{name}: M is {M}; give 0 or more samples")
    if layout not in (None, strided):
        raise ValueError(f"{name}: layout is {layout}; give torch.strided")
    dtype = dtype or get_default_dtype()
    if dtype not in (float32, float64):
        raise ValueError(f"{name}: dtype is {dtype}; give torch.float32 or float64")
    if M < 2:
        made = ones(M, dtype=dtype, device=device)
    else:
        steps = M - 1 if sym else M
        made = make(arange(M, dtype=float64, device=device), steps).to(dtype)
    return made.requires_grad_(requires_grad)


def _with_options(window: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Shows the keywords of _window() in the signature of what passes them."""
    own = [*inspect.signature(window).parameters.values()][:-1]
    options = [*inspect.signature(_window).parameters.values()][3:]
    signature = inspect.Signature([*own, *options], return_annotation="Tensor")
    vars(window)["__signature__"] = signature
    return window


def _positive(name: str, what: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"{name}: {what} is {value}; give one above 0")


@_with_options
def bartlett(M: int, **options: Any) -> Tensor:
    """The Bartlett window, a triangle: 1 - |2 n / (M - 1) - 1|.

    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window(
        "bartlett", M, lambda n, steps: 1 - (n * (2 / steps) - 1).abs(), **options
    )


@_with_options
def blackman(M: int, **options: Any) -> Tensor:
    """The Blackman window: general_cosine() of 0.42, 0.5 and 0.08.

    >>> torch.signal.windows.blackman(5).abs().round(decimals=2)
    tensor([0.0000, 0.3400, 1.0000, 0.3400, 0.0000])
    """
    return general_cosine(M, a=[0.42, 0.5, 0.08], **options)


@_with_options
def cosine(M: int, **options: Any) -> Tensor:
    """Half a period of a sine: sin(pi (n + 0.5) / M).

    >>> torch.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return _window(
        "cosine",
        M,
        lambda n, steps: ((n + 0.5) * (math.pi / (steps + 1))).sin(),
        **options,
    )


@_with_options
def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, **options: Any
) -> Tensor:
    """Exponentials that fall to both sides: exp(-|n - center| / tau).

    center: the sample of 1; the middle for None, as a symmetric window has it.
    tau: the samples in which it falls to 1 / e, above 0.

    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    _positive("exponential", "tau", tau)
    if center is not None and options.get("sym", True):
        raise ValueError(
            f"exponential: center is {center}, and a symmetric window has its own; "
            "give sym=False"
        )
    return _window(
        "exponential",
        M,
        lambda n, steps: (
            (n - (steps / 2 if center is None else center)).abs() / -tau
        ).exp(),
        **options,
    )


@_with_options
def gaussian(M: int, *, std: float = 1.0, **options: Any) -> Tensor:
    """The bell curve exp(-((n - middle) / std)^2 / 2).

    std: its standard deviation in samples, above 0.

    >>> torch.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    _positive("gaussian", "std", std)
    return _window(
        "gaussian",
        M,
        lambda n, steps: (((n - steps / 2) / std).square() / -2).exp(),
        **options,
    )


@_with_options
def general_cosine(M: int, *, a: Iterable[float], **options: Any) -> Tensor:
    """Cosines of one, two, ... periods: a[0] - a[1] cos(t) + a[2] cos(2 t) - ...

    a: their weights, one or more. TypeError for what is not iterable.

    >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    if not isinstance(a, Iterable):
        raise TypeError(f"general_cosine: a is {a!r}; give a list of numbers")
    weights = [*a]
    if not weights:
        raise ValueError("general_cosine: a is empty; give one number or more")

    def make(n: Tensor, steps: int) -> Tensor:
        turn = n * (2 * math.pi / steps)
        total = weights[0] * ones(n.shape, dtype=n.dtype, device=n.device)
        for k, weight in enumerate(weights[1:], 1):
            total = total + (weight * (-1) ** k) * (turn * k).cos()
        return total

    return _window("general_cosine", M, make, **options)


@_with_options
def general_hamming(M: int, *, alpha: float = 0.54, **options: Any) -> Tensor:
    """The generalized Hamming window: alpha - (1 - alpha) cos(t).

    >>> torch.signal.windows.general_hamming(3, alpha=0.5)
    tensor([0., 1., 0.])
    """
    return general_cosine(M, a=[alpha, 1 - alpha], **options)


@_with_options
def hamming(M: int, **options: Any) -> Tensor:
    """The Hamming window: general_hamming() with alpha = 0.54.

    >>> torch.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, **options)


@_with_options
def hann(M: int, **options: Any) -> Tensor:
    """The Hann window: general_hamming() with alpha = 0.5.

    >>> torch.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(M, alpha=0.5, **options)


@_with_options
def kaiser(M: int, *, beta: float = 12.0, **options: Any) -> Tensor:
    """The Kaiser window: I0(beta sqrt(1 - (2 n / (M - 1) - 1)^2)) / I0(beta).

    beta: 0 or more; a larger one makes it narrower.

    >>> torch.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """
    if beta < 0:
        raise ValueError(f"kaiser: beta is {beta}; give 0 or more")

    def make(n: Tensor, steps: int) -> Tensor:
        # i0e(x) is I0(x) e^-x, which does not overflow.
        x = beta * (1 - (n * (2 / steps) - 1).square()).clamp(min=0).sqrt()
        most = _special.i0e(full_like(x, beta))
        return _special.i0e(x) / most * (x - beta).exp()

    return _window("kaiser", M, make, **options)


@_with_options
def nuttall(M: int, **options: Any) -> Tensor:
    """The Nuttall window: general_cosine() of four weights (Nuttall, 1981).

    >>> torch.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], **options)


_publish(__name__)
