"""Checks of arguments that several functions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def dimension(function: str, dim: int, ndim: int, scalars: bool = True) -> int:
    """dim counted from 0. With scalars, a 0-dim tensor counts as 1-dim."""
    bound = max(ndim, scalars)
    if not bound:
        raise IndexError(
            f"{function}(): the Tensor has no dimensions; give one that has some"
        )
    if not -bound <= dim < bound:
        raise IndexError(
            f"{function}(): there is no dimension {dim}; give {-bound} to {bound - 1}"
        )
    return dim % bound


def int_dimension(function: str, dim: Any, ndim: int) -> int:
    """The same for a dim that may be of any type."""
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise TypeError(f"{function}(): a dimension is {dim!r}; give ints")
    return dimension(function, dim, ndim)


def vector(function: str, name: str, x: Tensor) -> None:
    if x.dim() != 1:
        raise RuntimeError(
            f"{function}(): {name} has the shape {tuple(x.shape)}; give a vector, a "
            "Tensor of one dimension"
        )


def floating(
    function: str, name: str, x: Tensor, error: type[Exception] = RuntimeError
) -> None:
    if not x.is_floating_point():
        raise error(f"{function}(): {name} is of {x.dtype}; convert it with .float()")


def same_dtype(function: str, a: Tensor, b: Tensor) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{function}(): the Tensors are of {a.dtype} and {b.dtype}; convert one of "
            "them with .to()"
        )


def bool_mask(function: str, x: Tensor) -> None:
    if x.dtype != _C.bool:
        raise RuntimeError(
            f"{function}(): mask is of {x.dtype}; give bools, such as x > 0"
        )
