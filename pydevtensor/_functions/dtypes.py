"""Facts about types: finfo, iinfo and typename."""

from __future__ import annotations

from typing import Any, ClassVar

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._names import give

_PYTHON_TYPES = {float: "float64", int: "int64", bool: "bool"}
_PARTS = {_C.complex32: "float16", _C.complex64: "float32", _C.complex128: "float64"}


def _dtype_of(function: str, value: Any) -> Any:
    if isinstance(value, type) and value in _PYTHON_TYPES:
        value = getattr(_C, _PYTHON_TYPES[value])
    if not isinstance(value, _C.dtype):
        raise TypeError(
            f"{function}(): type is {value!r} ({type(value).__name__}); give a dtype "
            "such as torch.float32"
        )
    return value


class _Limits:
    """Compared by what they say; not hashable, as PyTorch's."""

    _names: tuple[str, ...] = ()
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, dtype: Any) -> None:
        self.bits: Any = 8 * dtype.itemsize
        self.dtype: str = str(dtype).removeprefix("torch.")

    def __eq__(self, other: object) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        return self.dtype == other.dtype

    def __repr__(self) -> str:
        facts = [f"{name}={getattr(self, name):g}" for name in self._names]
        return f"{type(self).__name__}({', '.join(facts)}, dtype={self.dtype})"


# Types that no Tensor has: the greatest number, the step from 1.0, the least number.
_EIGHT = {
    _C.float8_e4m3fn: (448.0, 2.0**-3, 2.0**-6, 1.0),
    _C.float8_e4m3fnuz: (240.0, 2.0**-3, 2.0**-7, 1.0),
    _C.float8_e5m2: (57344.0, 2.0**-2, 2.0**-14, 1.0),
    _C.float8_e5m2fnuz: (57344.0, 2.0**-3, 2.0**-15, 1.0),
}


class finfo(_Limits):
    """The numeric limits of a floating dtype, the default dtype without an argument.

    bits             of an element
    max, min         the greatest and the least number, floats
    eps              the step from 1.0 to the next number
    tiny             the least positive number with all its digits
    smallest_normal  the same
    resolution       10 to the power of minus the decimal digits that survive
    dtype            the type's name, a str

    TypeError where type is not a floating dtype.

    >>> import pydevtensor as torch
    >>> torch.finfo(torch.float16).max
    65504.0
    """

    max: float
    eps: float
    tiny: float
    resolution: float

    _names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")

    def __init__(self, type: Any = None) -> None:
        dtype = _C.get_default_dtype() if type is None else _dtype_of("finfo", type)
        if dtype in _PARTS:  # the real and the imaginary part are numbers of this type
            dtype = getattr(_C, _PARTS[dtype])
        if not dtype.is_floating_point:
            raise TypeError(
                f"finfo(): {dtype} holds no fractions; use iinfo for integers"
            )
        super().__init__(dtype)
        limits: Any = _EIGHT.get(dtype) or _C._float_limits(dtype)
        self.max, self.eps, self.tiny, self.resolution = limits
        self.min: float = -self.max
        self.smallest_normal: float = self.tiny


class iinfo(_Limits):
    """The numeric limits of an integer dtype.

    bits      of an element
    max, min  the greatest and the least number, ints
    dtype     the type's name, a str

    TypeError where type is not an integer dtype.

    >>> import pydevtensor as torch
    >>> torch.iinfo(torch.int8).min
    -128
    """

    _names = ("min", "max")

    def __init__(self, type: Any) -> None:
        dtype = _dtype_of("iinfo", type)
        if dtype.is_floating_point or dtype.is_complex or dtype is _C.bool:
            raise TypeError(
                f"iinfo(): {dtype} is not an integer type; use finfo for floats"
            )
        super().__init__(dtype)
        self.min = -(2 ** (self.bits - 1)) if dtype.is_signed else 0
        self.max: Any = 2 ** (self.bits - dtype.is_signed) - 1


@function()
def typename(obj: Any) -> str:
    """Name of obj's type, qualified with its module unless built in.

    For a Tensor as type() gives it; for a class or function its own name.

    >>> import pydevtensor as torch
    >>> torch.typename(torch.ones(2)), torch.typename(3)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, _C.Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    before = "" if module in (None, "builtins", "__builtin__") else f"{module}."
    return before + str(named.__qualname__)


give("pydevtensor", finfo, iinfo)
