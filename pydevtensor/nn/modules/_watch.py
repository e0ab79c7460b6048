"""Calls a module's backward hooks with the gradients of one call."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor.autograd import Function

Tensor = _C.Tensor


class BackwardHookFunction(Function):
    """Passes Tensors through, and their gradients to ctx.arrived()."""

    @staticmethod
    def forward(
        ctx: Any, arrived: Callable[..., Any], *tensors: Any
    ) -> tuple[Any, ...]:
        ctx.arrived = arrived
        ctx.set_materialize_grads(False)
        aliases = tuple(tensor.detach() for tensor in tensors)
        ctx.mark_non_differentiable(
            *[a for a, t in zip(aliases, tensors, strict=True) if not t.requires_grad]
        )
        return aliases

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return (None, *ctx.arrived(grads))


class Watch:
    """One call of a module with backward hooks: collects the gradients of its inputs
    and outputs."""

    def __init__(
        self, module: Any, count: int, pre_hooks: list[Any], hooks: list[Any]
    ) -> None:
        self.module = module
        self.count = count
        self.pre_hooks = pre_hooks
        self.hooks = hooks
        self.watched_inputs = False
        self.zeros: list[tuple[Any, ...]] = []  # for inputs whose gradient is missing
        self.grad_outputs: tuple[Any, ...] | None = None

    @staticmethod
    def _through(
        values: tuple[Any, ...], arrived: Callable[..., Any]
    ) -> tuple[Any, ...] | None:
        """values with their Tensors watched; None if none requires a gradient."""
        places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        tensors = [values[i] for i in places]
        if not any(tensor.requires_grad for tensor in tensors):
            return None

        count = len(values)  # and not values, which the node would keep alive

        def spread(grads: tuple[Any, ...]) -> tuple[Any, ...]:
            whole = [None] * count
            for i, grad in zip(places, grads, strict=True):
                whole[i] = grad
            changed = arrived(tuple(whole))
            return grads if changed is None else tuple(changed[i] for i in places)

        fresh = [*values]
        passed = BackwardHookFunction.apply(spread, *tensors)
        for i, tensor in zip(places, passed, strict=True):
            fresh[i] = tensor
        return tuple(fresh)

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        watched = self._through(args, self._inputs_arrived)
        self.watched_inputs = watched is not None
        self.zeros = [
            (a.shape, a.dtype, a.device) if isinstance(a, Tensor) else () for a in args
        ]
        return args if watched is None else watched

    def outputs(self, result: Any) -> Any:
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                f"{self.module._get_name()} has backward hooks, and returned "
                f"{type(result).__name__}; they run for a Tensor or a tuple of Tensors",
                stacklevel=6,
            )
        whole = result if isinstance(result, tuple) else (result,)
        watched = self._through(whole, self._outputs_arrived)
        if watched is None:
            return result
        if not isinstance(result, tuple):
            return watched[0]
        return watched if type(result) is tuple else type(result)(*watched)

    def _changed(
        self,
        what: str,
        hooks: list[Any],
        grads: tuple[Any, ...],
        *others: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        """The gradients after the hooks."""
        for hook in hooks:
            made = hook(self.module, grads, *others)
            if made is None:
                continue
            made = made if isinstance(made, tuple) else (made,)
            if len(made) != len(grads):
                raise RuntimeError(
                    f"{self.module._get_name()}: a backward hook returned {len(made)} "
                    f"values for {what}, which has {len(grads)}; return as many, or "
                    "None"
                )
            grads = made
        return grads

    def _outputs_arrived(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        grads = self._changed("grad_output", self.pre_hooks, grads)
        if self.watched_inputs:
            self.grad_outputs = grads
            return grads
        for hook in self.hooks:
            made = hook(self.module, (None,) * self.count, grads)
            changes = made if isinstance(made, tuple) else (made,)
            if any(change is not None for change in changes):
                raise RuntimeError(
                    f"{self.module._get_name()}: a backward hook returned gradients of "
                    "inputs that require none; return None"
                )
        return grads

    def _inputs_arrived(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        known, self.grad_outputs = self.grad_outputs, None
        if known is None:  # the gradients have come by another way than the outputs
            return grads
        whole = tuple(
            _C.zeros(like[0], dtype=like[1], device=like[2])
            if grad is None and like
            else grad
            for grad, like in zip(grads, self.zeros, strict=True)
        )
        return self._changed("grad_input", self.hooks, whole, known)
