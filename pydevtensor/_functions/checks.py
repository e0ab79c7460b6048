"""Checks of arguments that several functions share.

The bodies of public functions raise errors that do not name the function, so that these
checks can be anybody's. The extension names an error after the function.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydevtensor import _C

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def dimension(x: Tensor, dim: int) -> int:
    """dim counted from 0."""
    x.size(dim)  # raises if x has no such dimension
    return dim % x.dim()


def at_least(least: int, name: str, value: int) -> None:
    if value < least:
        raise RuntimeError(f"{name} is {value}; give {least} or more")


def sizes(shape: Any) -> list[int]:
    """The sizes of a shape, which may be an int."""
    found = [shape] if isinstance(shape, int) else list(shape)
    for size in found:
        if not isinstance(size, int):
            raise TypeError(f"a shape is {shape!r}; give ints or tuples of ints")
        if size < 0:
            raise ValueError(f"{shape!r} has a negative size; give 0 or more")
    return found


def vector(name: str, x: Tensor) -> None:
    if x.dim() != 1:
        raise RuntimeError(
            f"{name} has {x.dim()} dimensions; give a vector, for example by flatten()"
        )


def floating(name: str, x: Tensor, error: type[Exception] = RuntimeError) -> None:
    if not x.is_floating_point():
        raise error(f"{name} is of {x.dtype}; convert it with .float()")


def real(name: str, x: Tensor) -> None:
    if x.is_complex():
        raise NotImplementedError(
            f"{name} is of {x.dtype}; give a real Tensor, such as .real or .abs()"
        )


def same_dtype(first: Tensor, *others: Tensor) -> None:
    _same("dtype", "of", "convert one of them with .to()", first, others)


def same_device(first: Tensor, *others: Tensor) -> None:
    _same("device", "on", "bring them to one device with .to()", first, others)


def _same(
    name: str, word: str, way: str, first: Tensor, others: tuple[Tensor, ...]
) -> None:
    wanted = getattr(first, name)
    for other in others:
        if (given := getattr(other, name)) != wanted:
            raise RuntimeError(f"the Tensors are {word} {wanted} and {given}; {way}")


def bool_mask(mask: Tensor) -> None:
    if mask.dtype != _C.bool:
        raise RuntimeError(f"mask is of {mask.dtype}; give bools, such as x > 0")


def at_most_dims(most: int, tensors: Iterable[Any]) -> None:
    """Raise RuntimeError for a Tensor of more dimensions."""
    for place, each in enumerate(tensors):
        if each.dim() > most:
            raise RuntimeError(
                f"Tensor {place} has the shape {tuple(each.shape)}; give at most "
                f"{most} dimension{'s' * (most > 1)}"
            )
