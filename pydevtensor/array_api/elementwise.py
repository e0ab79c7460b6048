"""Elementwise functions of the array API standard, where the library's own differ.

They take a Python number in place of one array, and an array without dimensions takes
part in type promotion as any other does (_operands.py).
"""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._functions.checks import named
from pydevtensor.array_api._operands import compared, promoted, tensors

__all__ = ["add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or"]
__all__ += ["bitwise_right_shift", "bitwise_xor", "clip", "copysign", "divide", "equal"]
__all__ += ["floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal"]
__all__ += ["logaddexp", "logical_and", "logical_or", "logical_xor", "maximum"]
__all__ += ["minimum", "multiply", "nextafter", "not_equal", "pow", "remainder", "sign"]
__all__ += ["subtract"]

# An array, or a Python number where the other one is an array.
_Operand = Any


@named
def add(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The sums of elements.

    >>> import pydevtensor.array_api as xp
    >>> xp.add(xp.asarray([1, 2]), 3)
    tensor([4, 5])
    """
    return torch.add(*promoted(x1, x2))


@named
def atan2(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The angles of the points (x2, x1), from -pi to pi.

    >>> import pydevtensor.array_api as xp
    >>> xp.atan2(xp.asarray([0.0, 1.0]), 1.0)
    tensor([0.0000, 0.7854])
    """
    return torch.atan2(*tensors(x1, x2))


@named
def bitwise_and(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The bits that both elements have.

    >>> import pydevtensor.array_api as xp
    >>> xp.bitwise_and(xp.asarray([5, 6]), 3)
    tensor([1, 2])
    """
    return torch.bitwise_and(*promoted(x1, x2))


@named
def bitwise_left_shift(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The bits of x1, x2 places up.

    >>> import pydevtensor.array_api as xp
    >>> xp.bitwise_left_shift(xp.asarray([1, 2]), 3)
    tensor([ 8, 16])
    """
    return torch.bitwise_left_shift(*promoted(x1, x2))


@named
def bitwise_or(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The bits that either element has.

    >>> import pydevtensor.array_api as xp
    >>> xp.bitwise_or(xp.asarray([5, 6]), 3)
    tensor([7, 7])
    """
    return torch.bitwise_or(*promoted(x1, x2))


@named
def bitwise_right_shift(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The bits of x1, x2 places down; the sign stays.

    >>> import pydevtensor.array_api as xp
    >>> xp.bitwise_right_shift(xp.asarray([8, -8]), 2)
    tensor([ 2, -2])
    """
    return torch.bitwise_right_shift(*promoted(x1, x2))


@named
def bitwise_xor(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The bits that one of the elements has.

    >>> import pydevtensor.array_api as xp
    >>> xp.bitwise_xor(xp.asarray([5, 6]), 3)
    tensor([6, 5])
    """
    return torch.bitwise_xor(*promoted(x1, x2))


@named
def copysign(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The magnitudes of x1 with the signs of x2.

    >>> import pydevtensor.array_api as xp
    >>> xp.copysign(xp.asarray([1.0, -2.0]), -1.0)
    tensor([-1., -2.])
    """
    return torch.copysign(*tensors(x1, x2))


@named
def divide(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The quotients of elements, which are floats.

    >>> import pydevtensor.array_api as xp
    >>> xp.divide(xp.asarray([1.0, 2.0]), 2)
    tensor([0.5000, 1.0000])
    """
    return torch.true_divide(*promoted(x1, x2))


@named
def equal(x1: _Operand, x2: _Operand, /) -> Tensor:
    """Whether elements are equal, a bool for each pair.

    >>> import pydevtensor.array_api as xp
    >>> xp.equal(xp.asarray([1, 2]), 2)
    tensor([False,  True])
    """
    return compared(torch.eq, torch.eq, x1, x2)


@named
def floor_divide(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The quotients, rounded down.

    >>> import pydevtensor.array_api as xp
    >>> xp.floor_divide(xp.asarray([7, -7]), 2)
    tensor([ 3, -4])
    """
    return torch.floor_divide(*promoted(x1, x2))


@named
def greater(x1: _Operand, x2: _Operand, /) -> Tensor:
    """Whether x1 is greater, element by element.

    >>> import pydevtensor.array_api as xp
    >>> xp.greater(xp.asarray([1, 2]), 1)
    tensor([False,  True])
    """
    return compared(torch.gt, torch.lt, x1, x2)


@named
def greater_equal(x1: _Operand, x2: _Operand, /) -> Tensor:
    """Whether x1 is greater or equal, element by element.

    >>> import pydevtensor.array_api as xp
    >>> xp.greater_equal(xp.asarray([0, 1]), 1)
    tensor([False,  True])
    """
    return compared(torch.ge, torch.le, x1, x2)


@named
def hypot(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The root of the sum of squares.

    >>> import pydevtensor.array_api as xp
    >>> xp.hypot(xp.asarray([3.0, 5.0]), xp.asarray([4.0, 12.0]))
    tensor([ 5., 13.])
    """
    return torch.hypot(*tensors(x1, x2))


@named
def less(x1: _Operand, x2: _Operand, /) -> Tensor:
    """Whether x1 is less, element by element.

    >>> import pydevtensor.array_api as xp
    >>> xp.less(xp.asarray([1, 2]), 2)
    tensor([ True, False])
    """
    return compared(torch.lt, torch.gt, x1, x2)


@named
def less_equal(x1: _Operand, x2: _Operand, /) -> Tensor:
    """Whether x1 is less or equal, element by element.

    >>> import pydevtensor.array_api as xp
    >>> xp.less_equal(xp.asarray([2, 3]), 2)
    tensor([ True, False])
    """
    return compared(torch.le, torch.ge, x1, x2)


@named
def logaddexp(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The logarithm of the sum of the exponentials.

    >>> import pydevtensor.array_api as xp
    >>> xp.logaddexp(xp.asarray([0.0]), 0.0)
    tensor([0.6931])
    """
    return torch.logaddexp(*tensors(x1, x2))


@named
def logical_and(x1: _Operand, x2: _Operand, /) -> Tensor:
    """Whether both elements are true.

    >>> import pydevtensor.array_api as xp
    >>> xp.logical_and(xp.asarray([True, False]), True)
    tensor([ True, False])
    """
    return torch.logical_and(*tensors(x1, x2))


@named
def logical_or(x1: _Operand, x2: _Operand, /) -> Tensor:
    """Whether either element is true.

    >>> import pydevtensor.array_api as xp
    >>> xp.logical_or(xp.asarray([True, False]), False)
    tensor([ True, False])
    """
    return torch.logical_or(*tensors(x1, x2))


@named
def logical_xor(x1: _Operand, x2: _Operand, /) -> Tensor:
    """Whether one of the elements is true.

    >>> import pydevtensor.array_api as xp
    >>> xp.logical_xor(xp.asarray([True, False]), True)
    tensor([False,  True])
    """
    return torch.logical_xor(*tensors(x1, x2))


@named
def maximum(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The greater of two elements; NaN where one is.

    >>> import pydevtensor.array_api as xp
    >>> xp.maximum(xp.asarray([1, 3]), 2)
    tensor([2, 3])
    """
    return torch.maximum(*tensors(x1, x2))


@named
def minimum(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The smaller of two elements; NaN where one is.

    >>> import pydevtensor.array_api as xp
    >>> xp.minimum(xp.asarray([1, 3]), 2)
    tensor([1, 2])
    """
    return torch.minimum(*tensors(x1, x2))


@named
def multiply(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The products of elements.

    >>> import pydevtensor.array_api as xp
    >>> xp.multiply(xp.asarray([1, 2]), 3)
    tensor([3, 6])
    """
    return torch.mul(*promoted(x1, x2))


@named
def nextafter(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The next number after x1 in the direction of x2.

    >>> import pydevtensor.array_api as xp
    >>> xp.nextafter(xp.asarray([0.0]), 1.0) > 0
    tensor([True])
    """
    return torch.nextafter(*tensors(x1, x2))


@named
def not_equal(x1: _Operand, x2: _Operand, /) -> Tensor:
    """Whether elements differ, a bool for each pair.

    >>> import pydevtensor.array_api as xp
    >>> xp.not_equal(xp.asarray([1, 2]), 2)
    tensor([ True, False])
    """
    return compared(torch.ne, torch.ne, x1, x2)


@named
def pow(x1: _Operand, x2: _Operand, /) -> Tensor:
    """x1 to the power of x2.

    >>> import pydevtensor.array_api as xp
    >>> xp.pow(xp.asarray([2, 3]), 2)
    tensor([4, 9])
    """
    return torch.pow(*promoted(x1, x2))


@named
def remainder(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The remainder of a division, with the sign of x2.

    >>> import pydevtensor.array_api as xp
    >>> xp.remainder(xp.asarray([7, -7]), 3)
    tensor([1, 2])
    """
    return torch.remainder(*promoted(x1, x2))


@named
def subtract(x1: _Operand, x2: _Operand, /) -> Tensor:
    """The differences of elements.

    >>> import pydevtensor.array_api as xp
    >>> xp.subtract(xp.asarray([1, 2]), 3)
    tensor([-2, -1])
    """
    return torch.sub(*promoted(x1, x2))


@named
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


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1 by the sign of each element; NaN where it is NaN.

    >>> import pydevtensor.array_api as xp
    >>> xp.sign(xp.asarray([-2.0, 0.0, xp.nan]))
    tensor([-1.,  0., nan])
    """
    signs = torch.sign(x)
    return torch.where(x.isnan(), x, signs) if x.is_floating_point() else signs
