"""Tensor.type: dtypes by the names of the classes that PyTorch had for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C, _classes
from pydevtensor._functions import method

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor

_CLASSES = {
    kind.__name__: kind.dtype
    for kind in vars(_classes).values()
    if isinstance(kind, _classes.TensorType)
}
# PyTorch has these names, and no class of them.
_CLASSES["ComplexFloatTensor"] = _C.complex64
_CLASSES["ComplexDoubleTensor"] = _C.complex128


@method()
def type(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of its type, or a conversion to the type given.

    Raises ValueError for a name of no type.

    dtype         a dtype, or a class such as torch.FloatTensor or its name, which also
                  says whether the result is on the CPU or a GPU; None: give the name of
                  this Tensor's class
    non_blocking  has no effect

    See also to().

    >>> torch.tensor([1, 2]).type(torch.float32)
    tensor([1., 2.])
    """
    if dtype is None:
        (name,) = (name for name, kind in _CLASSES.items() if kind is input.dtype)
        return f"torch.{'cuda.' if input.is_cuda else ''}{name}"
    if isinstance(dtype, _C.dtype) or dtype in (float, int, bool):
        return input.to(dtype)
    name = dtype
    if isinstance(dtype, _classes.TensorType):
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
