"""Functions of Python that are called for each element of a CPU tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import method

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def _call_for_each(call, input, *others):
    """Write call(element of input, those of the others) into each element of input."""
    if not callable(call):
        raise TypeError(f"callable is {call!r}; give a function")
    for tensor in (input, *others):
        if tensor.device.type != "cpu":
            raise TypeError(
                f"a Tensor is on {tensor.device}; the function is called on the CPU, "
                "so bring it there with .cpu()"
            )
        if tensor.dtype != input.dtype:
            raise TypeError(
                f"the Tensors are of {input.dtype} and {tensor.dtype}; convert one"
            )
    if input.requires_grad:
        raise RuntimeError(
            "the Tensor requires a gradient, and the function has no derivative; give "
            "x.detach()"
        )
    lists = [tensor.expand(input.shape).flatten().tolist() for tensor in others]
    found = list(map(call, input.flatten().tolist(), *lists))
    if not input.is_floating_point() and input.dtype != _C.bool:
        found = list(map(int, found))
    made = _C.tensor(found, dtype=input.dtype, device="cpu")
    return input.copy_(made.reshape(input.shape))


@method()
def apply_(input: Tensor, callable: Any) -> Tensor:
    """Replace each element by the result of a Python function. Slow.

    TypeError on a GPU, RuntimeError where a gradient is required.

    callable  a function of one number; its result is converted to the Tensor's type

    >>> torch.tensor([1.0, 2.0]).apply_(lambda element: element * 10)
    tensor([10., 20.])
    """
    return _call_for_each(callable, input)


@method()
def map_(input: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Replace each element by a function of it and of an element of tensor. Slow.

    tensor broadcasts to input's shape and has its type. TypeError on a GPU.

    callable  a function of two numbers; its result is converted to the Tensor's type

    >>> torch.tensor([1.0, 2.0]).map_(torch.tensor([3.0, 4.0]), lambda a, b: a * b)
    tensor([3., 8.])
    """
    return _call_for_each(callable, input, tensor)


@method()
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Any) -> Tensor:
    """Replace each element by a function of it and of elements of x and y. Slow.

    x, y      Tensors that broadcast to input's shape and have its type
    callable  a function of three numbers; its result is converted to the Tensor's type

    >>> x = torch.tensor([1.0, 2.0])
    >>> x.map2_(x, x, lambda a, b, c: a + b + c)
    tensor([3., 6.])
    """
    return _call_for_each(callable, input, x, y)
