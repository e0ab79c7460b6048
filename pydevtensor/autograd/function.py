"""torch.autograd.function: Function, and a decorator for its backward()."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import Function, FunctionCtx, no_grad

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class InplaceFunction(Function):
    """A Function, under the name that older programs derive from.

    >>> class Same(torch.autograd.function.InplaceFunction):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x.clone()
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         return gradient
    >>> Same.apply(torch.ones(1, requires_grad=True)).requires_grad
    True
    """


class _Once(Function):
    """Passes gradients on, and raises where they are differentiated themselves."""

    @staticmethod
    def forward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        return tuple(g if g is None else g.detach() for g in gradients)

    @staticmethod
    def backward(ctx: Any, *unused: Any) -> tuple[Any, ...]:
        raise RuntimeError(
            "backward() is marked with @once_differentiable, so its results have no "
            "derivative; leave the mark out if all in backward() can be differentiated"
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates fn, backward() of a Function that cannot be differentiated again.

    It runs without recording; a second derivative through it is a RuntimeError.

    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @torch.autograd.function.once_differentiable
    ...     def backward(ctx, gradient):
    ...         return gradient * 2
    >>> x = torch.ones(1, requires_grad=True)
    >>> torch.autograd.grad(Double.apply(x), x)
    (tensor([2.]),)
    """

    @functools.wraps(fn)
    def backward(ctx: Any, *args: Any) -> Any:
        with no_grad():
            found = fn(ctx, *args)
        differentiable = _C.is_grad_enabled() and any(
            isinstance(a, _C.Tensor) and a.requires_grad for a in args
        )
        if not differentiable:
            return found
        results = found if isinstance(found, tuple) else (found,)
        # An input that requires a gradient, so that the call is recorded.
        last = next(a for a in args if isinstance(a, _C.Tensor) and a.requires_grad)
        made = _Once.apply(*results, last)[:-1]
        return made if isinstance(found, tuple) else made[0]

    return backward


_publish(__name__, home_of=("Function", "FunctionCtx"))
