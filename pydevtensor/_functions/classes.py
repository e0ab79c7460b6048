"""Tensor.type: dtypes by the names of the classes that PyTorch had for them."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import method

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor

# Of the functions FloatTensor() etc. of csrc/python/interop/from_data.c.
_CLASSES = {
    name: make().dtype
    for name, make in vars(_C).items()
    if name.endswith("Tensor") and name != "Tensor"
}


@method()
def type(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of its type, or a conversion to the type given.

    >>> torch.tensor([1, 2]).type(torch.float32)
    tensor([1., 2.])
    """
    if dtype is None:
        (name,) = (name for name, kind in _CLASSES.items() if kind is input.dtype)
        return f"torch.{'cuda.' if input.is_cuda else ''}{name}"
    if isinstance(dtype, _C.dtype) or dtype in (float, int, bool):
        return input.to(dtype)
    name = dtype
    if isinstance(dtype, builtins.type):  # torch.FloatTensor itself
        name = f"torch.{dtype.__name__}"
    place, _, kind = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    if kind not in _CLASSES or place not in ("torch", "torch.cuda"):
        raise (ValueError if isinstance(name, str) else TypeError)(
            f"{dtype!r} names no type; give a dtype such as torch.float32, or "
            "a name such as 'torch.FloatTensor'"
        )
    if place == "torch":
        return input.to("cpu", _CLASSES[kind])
    return input.to(input.device if input.is_cuda else "cuda", _CLASSES[kind])
