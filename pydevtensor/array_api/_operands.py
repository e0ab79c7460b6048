"""The checks that the standard demands of operands.

In PyTorch a Tensor without dimensions does not decide the type of a result; in the
standard it does. And functions of two arrays take a Python number in place of one.
"""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor


def named(call: Any, name: str, says: str, example: str, shown: str) -> Any:
    """The function, under a name and with a docstring."""
    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"{says}\n\n>>> import pydevtensor.array_api as xp\n>>> {example}\n{shown}\n"
    )
    return call


def promoted(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Both, of their common type where PyTorch would not choose that one.

    Python numbers stay: PyTorch's rules for them are the standard's.
    """
    if (
        isinstance(x1, Tensor)
        and isinstance(x2, Tensor)
        and x1.dtype != x2.dtype
        and (x1.ndim == 0) != (x2.ndim == 0)
    ):
        common = torch.promote_types(x1.dtype, x2.dtype)
        return x1.to(common), x2.to(common)
    return x1, x2


def tensors(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """promoted(), with a Tensor without dimensions in place of a Python number."""
    if not isinstance(x1, Tensor):
        if not isinstance(x2, Tensor):
            raise TypeError(
                f"x1 is a {type(x1).__name__} and x2 a {type(x2).__name__}; one of "
                "them has to be a Tensor"
            )
        x1 = _like(x1, x2)
    elif not isinstance(x2, Tensor):
        x2 = _like(x2, x1)
    return promoted(x1, x2)


def alike(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Both of their common type, for products, which take one type."""
    if x1.dtype == x2.dtype:
        return x1, x2
    common = torch.promote_types(x1.dtype, x2.dtype)
    return x1.to(common), x2.to(common)


def spread(x: Tensor, axis: Any, keepdims: bool) -> tuple[Tensor, Any, bool]:
    """The arguments of a reduction: axis=() reduces nothing.

    PyTorch reduces everything then, so x gets a last dimension of size 1 to reduce.
    """
    if axis == ():
        return x.unsqueeze(-1), -1, False
    return x, axis, keepdims


def dimension(x: Tensor, axis: int) -> int:
    """axis counted from 0."""
    x.size(axis)  # raises if x has no such dimension
    return axis % x.ndim


def _like(number: Any, x: Tensor) -> Tensor:
    dtype = torch.result_type(x, number)
    return torch.full((), number, dtype=dtype, device=x.device)
