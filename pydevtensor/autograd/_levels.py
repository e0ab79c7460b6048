"""Derivatives of functions and of dual numbers, which nest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C, _tree
from pydevtensor.autograd import enable_grad, grad

Tensor = _C.Tensor
spread: Callable[[Any], Any] = lambda x: x  # func's: x in all batches of vmap()


class Level:
    """One transformation at work: the Tensors that it differentiates for."""

    depth = 0

    def __init__(self, name: str, values: list[Any]) -> None:
        self.name = name
        self.outer = Level.depth > 0 or any(
            isinstance(v, Tensor) and v.requires_grad for v in values
        )
        self.inputs: list[Any] = []
        self._modes: list[enable_grad] = []

    def __enter__(self) -> Level:
        Level.depth += 1
        self._modes.append(enable_grad())
        self._modes[-1].__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._modes.pop().__exit__(*error)
        Level.depth -= 1

    def enter(self, value: Any) -> Any:
        """The argument with its Tensors watched."""

        def watched(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            if not x.is_floating_point():
                raise RuntimeError(
                    f"{self.name}(): an argument to differentiate for is of {x.dtype}; "
                    "give floating Tensors"
                )
            x = spread(x)
            fresh = x.view_as(x) if x.requires_grad else x.detach().requires_grad_()
            self.inputs.append(fresh)
            return fresh

        return _tree.map_leaves(watched, value)

    def leave(self, value: Any, outputs: list[Any]) -> Any:
        """A result: recorded for who is outside, and there alone."""
        if self.outer or self._uses_others(outputs):
            return value
        return _tree.map_leaves(
            lambda x: x.detach() if isinstance(x, Tensor) else x, value
        )

    def _uses_others(self, outputs: list[Any]) -> bool:
        """Whether results depend on leaves that the function captured."""
        own = {x.view_as(x).grad_fn.next_functions[0][0] for x in self.inputs}
        waiting, seen = [o.grad_fn for o in outputs if o.requires_grad], set()
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if type(node).__name__ == "AccumulateGrad" and node not in own:
                return True
            waiting += [following for following, _ in node.next_functions]
        return False

    def reaches(self, output: Any) -> bool:
        """Whether a result depends on an input."""
        if not output.requires_grad:
            return False
        seed = _C.zeros_like(output)
        found = grad(output, self.inputs, seed, True, True, allow_unused=True)
        return any(gradient is not None for gradient in found)

    def gradients(
        self, outputs: list[Any], seeds: list[Any], inputs: list[Any] | None = None
    ) -> list[Any]:
        """Zeros where a result does not depend on an input."""
        inputs = self.inputs if inputs is None else inputs
        pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
        if not pairs or not inputs:
            return [_C.zeros_like(x) for x in inputs]
        of, given = zip(*pairs, strict=True)
        found = grad(of, inputs, given, True, True, allow_unused=True)
        return [
            _C.zeros_like(x) if g is None else g
            for x, g in zip(inputs, found, strict=True)
        ]

    def push(self, outputs: list[Any]) -> Callable[[list[Any]], list[Any]]:
        """A function from directions of the inputs to derivatives of the outputs.

        A gradient is linear in the gradients that it begins with, its seeds; the
        derivative of it with respect to them is the other product, exactly.
        """
        seeds = [_C.zeros_like(o).requires_grad_() for o in outputs]
        back = self.gradients(outputs, seeds)
        return lambda directions: self.gradients(back, directions, seeds)
