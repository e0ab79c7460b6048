"""Elementwise functions of the array API standard, where the library's own differ.

They take a Python number in place of one array, and an array without dimensions takes
part in type promotion as any other does (_operands.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor.array_api._operands import named, promoted, tensors

__all__ = ["add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or"]
__all__ += ["bitwise_right_shift", "bitwise_xor", "clip", "copysign", "divide", "equal"]
__all__ += ["floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal"]
__all__ += ["logaddexp", "logical_and", "logical_or", "logical_xor", "maximum"]
__all__ += ["minimum", "multiply", "nextafter", "not_equal", "pow", "remainder"]
__all__ += ["round", "sign", "subtract"]

# An array, or a Python number where the other one is an array.
_Operand = Any


def _of_two(
    name: str,
    function: Callable[..., Tensor],
    operands: Callable[[Any, Any], tuple[Any, Any]],
    *texts: str,
) -> Callable[[_Operand, _Operand], Tensor]:
    """A function of two operands, which are made to be those of the library's."""

    def call(x1: _Operand, x2: _Operand, /) -> Tensor:
        return function(*operands(x1, x2))

    made: Callable[[_Operand, _Operand], Tensor] = named(call, name, *texts)
    return made


def _comparison(
    name: str,
    function: Callable[..., Tensor],
    mirrored: Callable[..., Tensor],
    *texts: str,
) -> Callable[[_Operand, _Operand], Tensor]:
    """The same, where the library's takes a number as the second argument alone."""

    def compare(x1: Any, x2: Any) -> Tensor:
        return function(x1, x2) if isinstance(x1, Tensor) else mirrored(x2, x1)

    return _of_two(name, compare, promoted, *texts)


# Name, the library's function, what it needs of operands, or itself mirrored, docstring
# and example.
# fmt: off
add = _of_two("add", torch.add, promoted, "The sums of elements.",
              "xp.add(xp.asarray([1, 2]), 3)", "tensor([4, 5])")
atan2 = _of_two("atan2", torch.atan2, tensors,
                "The angles of the points (x2, x1), from -pi to pi.",
                "xp.atan2(xp.asarray([0.0, 1.0]), 1.0)", "tensor([0.0000, 0.7854])")
bitwise_and = _of_two("bitwise_and", torch.bitwise_and, promoted,
                      "The bits that both elements have.",
                      "xp.bitwise_and(xp.asarray([5, 6]), 3)", "tensor([1, 2])")
bitwise_left_shift = _of_two("bitwise_left_shift", torch.bitwise_left_shift, promoted,
                             "The bits of x1, shifted up by x2.",
                             "xp.bitwise_left_shift(xp.asarray([1, 2]), 3)",
                             "tensor([ 8, 16])")
bitwise_or = _of_two("bitwise_or", torch.bitwise_or, promoted,
                     "The bits that either element has.",
                     "xp.bitwise_or(xp.asarray([5, 6]), 3)", "tensor([7, 7])")
bitwise_right_shift = _of_two("bitwise_right_shift", torch.bitwise_right_shift,
                              promoted,
                              "The bits of x1, shifted down by x2; the sign stays.",
                              "xp.bitwise_right_shift(xp.asarray([8, -8]), 2)",
                              "tensor([ 2, -2])")
bitwise_xor = _of_two("bitwise_xor", torch.bitwise_xor, promoted,
                      "The bits that one of the elements has.",
                      "xp.bitwise_xor(xp.asarray([5, 6]), 3)", "tensor([6, 5])")
copysign = _of_two("copysign", torch.copysign, tensors,
                   "The magnitudes of x1 with the signs of x2.",
                   "xp.copysign(xp.asarray([1.0, -2.0]), -1.0)", "tensor([-1., -2.])")
divide = _of_two("divide", torch.true_divide, promoted,
                 "The quotients of elements, which are floats.",
                 "xp.divide(xp.asarray([1.0, 2.0]), 2)", "tensor([0.5000, 1.0000])")
equal = _comparison("equal", torch.eq, torch.eq,
                    "Whether elements are equal, a bool for each pair.",
                    "xp.equal(xp.asarray([1, 2]), 2)", "tensor([False,  True])")
floor_divide = _of_two("floor_divide", torch.floor_divide, promoted,
                       "The quotients, rounded down.",
                       "xp.floor_divide(xp.asarray([7, -7]), 2)", "tensor([ 3, -4])")
greater = _comparison("greater", torch.gt, torch.lt,
                      "Whether x1 is greater, element by element.",
                      "xp.greater(xp.asarray([1, 2]), 1)", "tensor([False,  True])")
greater_equal = _comparison("greater_equal", torch.ge, torch.le,
                            "Whether x1 is greater or equal, element by element.",
                            "xp.greater_equal(xp.asarray([0, 1]), 1)",
                            "tensor([False,  True])")
hypot = _of_two("hypot", torch.hypot, tensors, "The root of the sum of squares.",
                "xp.hypot(xp.asarray([3.0, 5.0]), xp.asarray([4.0, 12.0]))",
                "tensor([ 5., 13.])")
less = _comparison("less", torch.lt, torch.gt,
                   "Whether x1 is less, element by element.",
                   "xp.less(xp.asarray([1, 2]), 2)", "tensor([ True, False])")
less_equal = _comparison("less_equal", torch.le, torch.ge,
                         "Whether x1 is less or equal, element by element.",
                         "xp.less_equal(xp.asarray([2, 3]), 2)",
                         "tensor([ True, False])")
logaddexp = _of_two("logaddexp", torch.logaddexp, tensors,
                    "The logarithm of the sum of the exponentials.",
                    "xp.logaddexp(xp.asarray([0.0]), 0.0)", "tensor([0.6931])")
logical_and = _of_two("logical_and", torch.logical_and, tensors,
                      "Whether both elements are true.",
                      "xp.logical_and(xp.asarray([True, False]), True)",
                      "tensor([ True, False])")
logical_or = _of_two("logical_or", torch.logical_or, tensors,
                     "Whether either element is true.",
                     "xp.logical_or(xp.asarray([True, False]), False)",
                     "tensor([ True, False])")
logical_xor = _of_two("logical_xor", torch.logical_xor, tensors,
                      "Whether one of the elements is true.",
                      "xp.logical_xor(xp.asarray([True, False]), True)",
                      "tensor([False,  True])")
maximum = _of_two("maximum", torch.maximum, tensors,
                  "The greater of two elements; NaN where one is.",
                  "xp.maximum(xp.asarray([1, 3]), 2)", "tensor([2, 3])")
minimum = _of_two("minimum", torch.minimum, tensors,
                  "The smaller of two elements; NaN where one is.",
                  "xp.minimum(xp.asarray([1, 3]), 2)", "tensor([1, 2])")
multiply = _of_two("multiply", torch.mul, promoted, "The products of elements.",
                   "xp.multiply(xp.asarray([1, 2]), 3)", "tensor([3, 6])")
nextafter = _of_two("nextafter", torch.nextafter, tensors,
                    "The next number after x1 in the direction of x2.",
                    "xp.nextafter(xp.asarray([0.0]), 1.0) > 0", "tensor([True])")
not_equal = _comparison("not_equal", torch.ne, torch.ne,
                        "Whether elements differ, a bool for each pair.",
                        "xp.not_equal(xp.asarray([1, 2]), 2)", "tensor([ True, False])")
pow = _of_two("pow", torch.pow, promoted, "x1 to the power of x2.",
              "xp.pow(xp.asarray([2, 3]), 2)", "tensor([4, 9])")
remainder = _of_two("remainder", torch.remainder, promoted,
                    "The remainder of a division, with the sign of x2.",
                    "xp.remainder(xp.asarray([7, -7]), 3)", "tensor([1, 2])")
subtract = _of_two("subtract", torch.sub, promoted, "The differences of elements.",
                   "xp.subtract(xp.asarray([1, 2]), 3)", "tensor([-2, -1])")
# fmt: on


def clip(
    x: Tensor, /, min: _Operand | None = None, max: _Operand | None = None
) -> Tensor:
    """Elements of x that are below min or above max replaced by it; NaN stays.

    min and max are arrays that broadcast with x, or numbers, in the range of x's type,
    which the result has. Without both a copy.

    >>> import pydevtensor.array_api as xp
    >>> xp.clip(xp.asarray([-1, 5, 9]), 0, 7)
    tensor([0, 5, 7])
    """
    if min is None and max is None:
        return x.clone()
    if isinstance(min, Tensor):
        min = min.to(x.dtype)
    if isinstance(max, Tensor):
        max = max.to(x.dtype)
    both = min is not None and max is not None
    if both and isinstance(min, Tensor) != isinstance(max, Tensor):
        return clip(clip(x, min), None, max)
    return torch.clamp(x, min, max).to(x.dtype)


def round(x: Tensor, /) -> Tensor:
    """The nearest whole numbers, of two the even one; of complex ones both parts.

    >>> import pydevtensor.array_api as xp
    >>> xp.round(xp.asarray([0.5, 1.5, -1.2]))
    tensor([ 0.,  2., -1.])
    """
    if x.is_complex():
        return torch.view_as_complex(torch.round(torch.view_as_real(x)))
    return torch.round(x)


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 by the sign of each element, x / abs(x) of complex ones; NaN of NaN.

    >>> import pydevtensor.array_api as xp
    >>> xp.sign(xp.asarray([-2.0, 0.0, xp.nan]))
    tensor([-1.,  0., nan])
    """
    signs = torch.sgn(x)
    return torch.where(x.isnan(), x, signs) if x.is_floating_point() else signs
