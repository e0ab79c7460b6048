"""Types under the array API standard's names: limits, kinds, promotion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor, dtype

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_STANDARD = ["bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64"]
_STANDARD += ["complex64", "complex128"]


@dataclass(frozen=True, slots=True)
class _FloatLimits:
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtype


@dataclass(frozen=True, slots=True)
class _IntLimits:
    bits: int
    max: int
    min: int
    dtype: dtype


def kind_of(type: dtype) -> str:
    """The kind that isdtype() and the namespace's info name."""
    if type == torch.bool:
        return "bool"
    if type.is_floating_point:
        return "real floating"
    if type.is_complex:
        return "complex floating"
    return "signed integer" if type.is_signed else "unsigned integer"


_KINDS = {
    "bool": {"bool"},
    "signed integer": {"signed integer"},
    "unsigned integer": {"unsigned integer"},
    "integral": {"signed integer", "unsigned integer"},
    "real floating": {"real floating"},
    "complex floating": {"complex floating"},
    "numeric": {
        "signed integer",
        "unsigned integer",
        "real floating",
        "complex floating",
    },
}


# Promotion leads from a real to a complex type of its precision.
_ANALOG = {"real floating", "complex floating"}


def kinds(kind: str) -> set[str]:
    """The dtype kinds that a name stands for; ValueError if the standard lacks it."""
    if kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}; give one of {', '.join(_KINDS)}")
    return _KINDS[kind]


def by_kind(kind: str | None = None) -> dict[str, dtype]:
    """The standard's types that the library has, by name: all, or those of a kind."""
    every: dict[str, dtype] = {name: getattr(torch, name) for name in _STANDARD}
    if kind is None:
        return every
    wanted = kinds(kind)
    return {name: type for name, type in every.items() if kind_of(type) in wanted}


def astype(
    x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None
) -> Tensor:
    """The elements of x as another type, and on another device if one is given.

    With copy=False x itself, where nothing changes.

    >>> import pydevtensor.array_api as xp
    >>> xp.astype(xp.asarray([1.5, 2.5]), xp.int32)
    tensor([1, 2], dtype=torch.int32)
    """
    return x.to(x.device if device is None else device, dtype, copy=copy)


def can_cast(from_: dtype | Tensor, to: dtype, /) -> bool:
    """Whether promotion leads from one type, or an array's, to the other.

    False between bools, integers and floats, also where PyTorch would convert.

    >>> import pydevtensor.array_api as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    source = _type(from_)
    target = _type(to)
    both = {kind_of(source), kind_of(target)}
    of_one_kind = len(both) == 1 or both in (_KINDS["integral"], _ANALOG)
    return of_one_kind and torch.promote_types(source, target) == target


def finfo(type: dtype | Tensor, /) -> _FloatLimits:
    """The limits of a floating type, or of an array's: Python floats, and the type.

    A complex type has the limits of its parts.

    TypeError where it is not a floating type.

    >>> import pydevtensor.array_api as xp
    >>> xp.finfo(xp.float32).bits, xp.finfo(xp.float64).eps
    (32, 2.220446049250313e-16)
    """
    of = _type(type)
    part = of.to_real() if of.is_complex else of
    info: Any = torch.finfo(part)
    return _FloatLimits(
        info.bits, info.eps, info.max, info.min, info.smallest_normal, part
    )


def iinfo(type: dtype | Tensor, /) -> _IntLimits:
    """The limits of an integer type, or of an array's: Python ints, and the type.

    TypeError where it is not an integer type.

    >>> import pydevtensor.array_api as xp
    >>> xp.iinfo(xp.int8).min
    -128
    """
    of = _type(type)
    info = torch.iinfo(of)
    return _IntLimits(info.bits, info.max, info.min, of)


def isdtype(dtype: dtype, kind: Any) -> bool:
    """Whether a type is of a kind, is another type, or is any of a tuple of them.

    kind is "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating" or "numeric". ValueError for another word.

    >>> import pydevtensor.array_api as xp
    >>> xp.isdtype(xp.int8, "integral"), xp.isdtype(xp.int8, (xp.bool, xp.float32))
    (True, False)
    """
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype is a {type(dtype).__name__}; give one such as float32")
    given = kind if isinstance(kind, tuple) else (kind,)
    for each in given:
        if not isinstance(each, (str, torch.dtype)):
            raise TypeError(
                f"kind holds a {type(each).__name__}; give a dtype, a str or a tuple "
                "of them"
            )
    return any(
        kind_of(dtype) in kinds(each) if isinstance(each, str) else dtype == each
        for each in given
    )


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """The type to which arrays, types and Python numbers promote.

    An array counts by its type alone, whether it has dimensions or not. ValueError
    where neither an array nor a type is given.

    >>> import pydevtensor.array_api as xp
    >>> xp.result_type(xp.asarray([1], dtype=xp.int8), xp.asarray(1), 2)
    torch.int64
    """
    numbers: list[Any] = []
    found: Any = None
    for each in arrays_and_dtypes:
        if isinstance(each, (Tensor, torch.dtype)):
            own = _type(each)
            found = own if found is None else torch.promote_types(found, own)
        else:
            numbers.append(each)
    if found is None:
        raise ValueError("no array and no dtype is given; give at least one")
    for number in numbers:
        found = torch.result_type(torch.empty((), dtype=found, device="cpu"), number)
    return found


def _type(given: Any) -> dtype:
    """A type, or that of an array."""
    found = given.dtype if isinstance(given, Tensor) else given
    if not isinstance(found, torch.dtype):
        raise TypeError(
            f"{found!r} is not a dtype; give one such as float32, or a Tensor"
        )
    return found
