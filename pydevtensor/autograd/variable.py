"""torch.autograd.variable: the older name of tensors that have gradients."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish

__all__ = ["Variable"]


class _TensorName(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _C.Tensor)


class Variable(metaclass=_TensorName):
    """The name that tensors with gradients had in old programs.

    Gives an alias of the tensor, which requires a gradient if asked to; every Tensor is
    an instance. Raises TypeError for other data.

    >>> x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    >>> x
    tensor([1., 1.], requires_grad=True)
    >>> isinstance(x, torch.autograd.Variable)
    True
    """

    def __new__(  # type: ignore[misc]
        cls, data: Any = None, requires_grad: bool = False
    ) -> _C.Tensor:
        return detached("Variable", data, TypeError).requires_grad_(requires_grad)


def detached(owner: str, data: Any, error: type[Exception]) -> _C.Tensor:
    """The data of a class of Tensors, detached; an empty Tensor for None."""
    if data is None:
        return _C.empty(0)
    if not isinstance(data, _C.Tensor):
        raise error(
            f"{owner}(): a {type(data).__name__} was given; give a Tensor, as from "
            "torch.tensor()"
        )
    return data.detach()


_publish(__name__)
