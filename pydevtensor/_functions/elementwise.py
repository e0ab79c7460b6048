"""Elementwise functions composed of others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function, method
from pydevtensor._functions.checks import at_least, floating, real, same_dtype

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor, Value


_BITS = {  # the integer dtype of the same size, and the bits of the fraction
    _C.float16: (_C.int16, 10),
    _C.bfloat16: (_C.int16, 7),
    _C.float32: (_C.int32, 23),
    _C.float64: (_C.int64, 52),
}


def _bits_as(x: Any, dtype: Any) -> Any:
    """The bits of x as elements of another dtype."""
    return x.contiguous().view(dtype)


def _powers_of_two(exponent, dtype):
    """2 ** exponent, where that is a normal number."""
    whole, fraction = _BITS[dtype]
    bias = (1 << (8 * dtype.itemsize - 2 - fraction)) - 1
    return _bits_as((exponent.to(whole) + bias) << fraction, dtype)


def _close(input, other, rtol, atol, equal_nan):
    if not (rtol >= 0 and atol >= 0):
        raise RuntimeError("a tolerance is negative; give 0 or more")
    same_dtype(input, other)
    close = input == other
    if equal_nan:
        close = close | (input.isnan() & other.isnan())
    # Adding 0.0 makes bools and integers floats, whose difference cannot overflow.
    gap = (input + 0.0 - (other + 0.0)).abs()
    return close | ((gap <= (other * rtol).abs() + atol) & gap.isfinite())


@function(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and elements.

    Returns a bool; synchronizes with the GPU. RuntimeError for two devices.

    >>> torch.tensor([1.0, 2.0]).equal(torch.tensor([1.0, 2.000001]))
    False
    """
    if input.shape != other.shape:
        return False
    if input.device != other.device:
        raise RuntimeError(
            f"input is on {input.device} and other on {other.device}; bring "
            f"them together, e.g. with other.to('{input.device}')"
        )
    return bool((input == other).all())


@function(method=True)
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Whether elements differ by at most atol + rtol * abs(other).

    NaN equals NaN only with equal_nan=True. Gives a bool tensor of the broadcast shape.
    Requires the same dtype for both.

    >>> torch.tensor([1.0, 2.0]).isclose(torch.tensor([1.0, 2.000001]))
    tensor([True, True])
    """
    return _close(input, other, rtol, atol, equal_nan)


@function(method=True, like="isclose")
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> bool:
    """Whether all elements are close, as isclose() defines it.

    Returns a bool; synchronizes with the GPU.

    rtol, atol and equal_nan are those of isclose().

    >>> torch.tensor([1.0, 2.0]).allclose(torch.tensor([1.0, 2.000001]))
    True
    """
    return bool(_close(input, other, rtol, atol, equal_nan).all())


@function(method=True, out=True, in_place="both")
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Replace NaN and infinities.

    nan replaces NaN (0), posinf and neginf the infinities (largest and smallest finite
    number of the dtype).

    >>> torch.tensor([1.0, float('nan'), float('inf'), -float('inf')]).nan_to_num()
    tensor([ 1.0000e+00,  0.0000e+00,  3.4028e+38, -3.4028e+38])
    """
    if input.is_complex():
        parts = nan_to_num(_C.view_as_real(input), nan, posinf, neginf)
        return _C.view_as_complex(parts)
    if not input.is_floating_point():
        return input.clone()
    largest = _C._float_limits(input.dtype)[0]
    high = largest if posinf is None else posinf
    low = -largest if neginf is None else neginf
    rest = _C.where(input.isposinf(), high, _C.where(input.isneginf(), low, input))
    made = _C.where(input.isnan(), nan or 0.0, rest)
    return _C._named(made, "NanToNumBackward0")


@function(method=True, out=True)
def float_power(input: Value, exponent: Value) -> Tensor:
    """input ** exponent, computed in float64, or in complex128 where one is complex.

    >>> torch.tensor([2.0], dtype=torch.float64).float_power(3)
    tensor([8.], dtype=torch.float64)
    """
    if not isinstance(input, _C.Tensor) and not isinstance(exponent, _C.Tensor):
        raise TypeError("input and exponent are numbers; give a Tensor")
    both = [v for v in (input, exponent) if isinstance(v, _C.Tensor)]
    numbers = any(isinstance(v, complex) for v in (input, exponent))
    if numbers or any(v.is_complex() for v in both):
        wide = [
            v.to(_C.complex128) if isinstance(v, _C.Tensor) else v
            for v in (input, exponent)
        ]
        return _C.pow(*wide)
    x, y = (
        value.double() if isinstance(value, _C.Tensor) else float(value)
        for value in (input, exponent)
    )
    return _C.pow(x, y)


@method()
def float_power_(input: Tensor, exponent: Value) -> Tensor:
    """In-place float_power(), for tensors of float64 and complex128.

    >>> x = torch.tensor([2.0], dtype=torch.float64)
    >>> x.float_power_(3) is x
    True
    """
    result = float_power(input, exponent)
    if input.dtype != result.dtype:
        raise RuntimeError(
            f"the Tensor is of {input.dtype}, and the result of {result.dtype}; "
            f"convert it with .to({result.dtype}) first"
        )
    return input.copy_(result)


@function(method=True)
def positive(input: Tensor) -> Tensor:
    """Return input itself. Raises RuntimeError for bool tensors.

    >>> torch.tensor([-1.0, 2.0]).positive()
    tensor([-1.,  2.])
    """
    if input.dtype == _C.bool:
        raise RuntimeError("not defined for bools; convert with .int()")
    return input


@function(method=True, out=True)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate of each element; a real Tensor itself.

    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return input.conj()


@function(method=True, out=True, in_place="both")
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input * 2 ** other.

    >>> torch.tensor([1.0, 3.0]).ldexp(torch.tensor([2, -1]))
    tensor([4.0000, 1.5000])
    """
    if not (other.is_floating_point() or other.is_complex()):
        wide = input.dtype == _C.float64
        other = other.to(_C.float64 if wide else _C.get_default_dtype())
        if input.is_floating_point():
            return (input * _C.pow(2.0, other)).to(input.dtype)
    return input * _C.pow(2.0, other)


@function(method=True, out=True, results=("mantissa", "exponent"))
def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
    """Split into mantissa and exponent: input = mantissa * 2 ** exponent.

    The magnitude of the mantissa is 0 or in [0.5, 1); the exponent is int32.

    >>> torch.frexp(torch.tensor([8.0, 0.3]))
    torch.return_types.frexp(
    mantissa=tensor([0.5000, 0.6000]),
    exponent=tensor([ 4, -1], dtype=torch.int32))
    """
    floating("input", input)
    whole, fraction = _BITS[input.dtype]
    mask = (1 << (8 * input.dtype.itemsize - 1 - fraction)) - 1
    x = input.detach()
    # Scales subnormal numbers to normal ones first.
    small = (_bits_as(x, whole) >> fraction & mask) == 0
    x = _C.where(small, x * float(1 << (fraction + 1)), x)
    kept = _bits_as(x, whole) >> fraction & mask
    exponent = kept.int() - (mask >> 1) + 1 - small.int() * (fraction + 1)
    exponent = _C.where((x == 0) | (kept == mask), 0, exponent)
    half = exponent.div(2, rounding_mode="floor")
    first = _powers_of_two(-half, input.dtype)
    second = _powers_of_two(half - exponent, input.dtype)
    return input * first * second, exponent


@function(method=True, out=True, in_place=True)
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """Next representable number after input towards other.

    For floating dtypes only. The gradient passes to input, or to other where they are
    equal.

    >>> torch.tensor([1.0, 0.0]).nextafter(torch.tensor(2.0)).double() > torch.tensor([1.0, 0.0])
    tensor([True, True])
    """  # noqa: E501
    dtype = _C.promote_types(input.dtype, other.dtype)
    if not dtype.is_floating_point:
        raise NotImplementedError(f"not defined for {dtype}; convert with .float()")
    result = _C.where(input != other, input, other)
    a, b = _C.broadcast_tensors(input.detach().to(dtype), other.detach().to(dtype))
    bits = _bits_as(a, _BITS[dtype][0])
    away = (b > a) == (a > 0)
    step = _bits_as(bits + _C.where(away, 1, -1).to(bits.dtype), dtype)
    smallest = _bits_as(_C.ones_like(bits), dtype)
    step = _C.where(a == 0, _C.where(b > 0, smallest, -smallest), step)
    step = _C.where(a.isnan() | b.isnan(), a + b, _C.where(a == b, b, step))
    result.detach().copy_(step)
    return _C._named(result, "NextafterBackward0")


@function(method=True, out=True, in_place=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension p.

    RuntimeError where p is not positive. Elements up to (p - 1) / 2 give what lgamma
    does for numbers up to 0.

    >>> torch.tensor([3.0]).mvlgamma(2)
    tensor([1.5502])
    """
    at_least(1, "p", p)
    real("input", input)
    x = input if input.is_floating_point() else input.to(_C.get_default_dtype())
    steps = _C.arange(p, dtype=x.dtype, device=x.device) / 2
    constant = p * (p - 1) / 4 * math.log(math.pi)
    return (x.unsqueeze(-1) - steps).lgamma().sum(-1) + constant


@method()
def __rdiv__(input: Tensor, other: Value) -> Tensor:
    """other / input, by the name that Python 2 had for it.

    >>> torch.tensor([1.0, 2.0]).__rdiv__(5)
    tensor([5.0000, 2.5000])
    """
    return _C.div(other, input)
