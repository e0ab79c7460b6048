"""Calls a module's backward hooks with the gradients of one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor.autograd import Function

Tensor = _C.Tensor


class BackwardHookFunction(Function):
    """Passes Tensors through, and their gradients to ctx.arrived()."""

    @staticmethod
    def forward(ctx: Any, arrived: Callable, *tensors: Any) -> tuple:
        ctx.arrived = arrived
        ctx.likes = [(t.shape, t.dtype, t.device) for t in tensors]
        aliases = tuple(tensor.detach() for tensor in tensors)
        ctx.mark_non_differentiable(
            *[a for a, t in zip(aliases, tensors, strict=True) if not t.requires_grad]
        )
        return aliases

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        whole = [
            _C.zeros(shape, dtype=dtype, device=device) if grad is None else grad
            for grad, (shape, dtype, device) in zip(grads, ctx.likes, strict=True)
        ]
        return (None, *ctx.arrived(tuple(whole)))


class Watch:
    """One call of a module with backward hooks: collects the gradients of its inputs
    and outputs."""

    def __init__(self, module: Any, count: int) -> None:
        self.module = module
        self.count = count
        self.watched_inputs = False
        self.grad_outputs: tuple = ()

    @staticmethod
    def _through(values: tuple, arrived: Callable) -> tuple | None:
        """values with their Tensors watched; None if none requires a gradient."""
        places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        tensors = [values[i] for i in places]
        if not any(tensor.requires_grad for tensor in tensors):
            return None

        def spread(grads: tuple) -> tuple:
            whole = [None] * len(values)
            for i, grad in zip(places, grads, strict=True):
                whole[i] = grad
            changed = arrived(tuple(whole))
            return grads if changed is None else tuple(changed[i] for i in places)

        fresh = [*values]
        passed = BackwardHookFunction.apply(spread, *tensors)
        for i, tensor in zip(places, passed, strict=True):
            fresh[i] = tensor
        return tuple(fresh)

    def inputs(self, args: tuple) -> tuple:
        watched = self._through(args, self._inputs_arrived)
        self.watched_inputs = watched is not None
        return args if watched is None else watched

    def outputs(self, result: Any) -> Any:
        whole = result if isinstance(result, tuple) else (result,)
        watched = self._through(whole, self._outputs_arrived)
        if watched is None:
            return result
        if not isinstance(result, tuple):
            return watched[0]
        return watched if type(result) is tuple else type(result)(*watched)

    def _changed(self, what: str, hooks: Any, grads: tuple, *others: tuple) -> tuple:
        """What the hooks make of the gradients."""
        for hook in [*hooks.values()]:
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

    def _outputs_arrived(self, grads: tuple) -> tuple:
        grads = self._changed("grad_output", self.module._backward_pre_hooks, grads)
        self.grad_outputs = grads
        if not self.watched_inputs:
            for hook in [*self.module._backward_hooks.values()]:
                if hook(self.module, (None,) * self.count, grads) is not None:
                    raise RuntimeError(
                        f"{self.module._get_name()}: a backward hook returned "
                        "gradients of inputs that require none; return None"
                    )
        return grads

    def _inputs_arrived(self, grads: tuple) -> tuple:
        hooks = self.module._backward_hooks
        return self._changed("grad_input", hooks, grads, self.grad_outputs)
