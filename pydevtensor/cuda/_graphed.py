"""The results of make_graphed_callables: functions and modules as graphs.

A callable that is more than a function has two methods, as nn.Module does:
_graph_parameters() gives the tensors that it reads beside its arguments, and
_replay_with(function) lets its calls call the function, and returns it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor._tree import flatten
from pydevtensor.autograd import Function, grad
from pydevtensor.cuda.graphs import CUDAGraph, capture_stream, graph


class _Captured:
    """The two graphs of a callable, and the memory that they read and write."""

    def __init__(
        self,
        call: Any,
        leaves: list[Any],
        arguments: Callable[[list[Any]], Any],
        allow_unused: bool,
    ) -> None:
        self.call, self.leaves, self.arguments = call, leaves, arguments
        self.parameters: list[Any] = []
        if hasattr(type(call), "_graph_parameters"):
            self.parameters = call._graph_parameters()
        self.inputs = leaves + self.parameters
        self.wanted = [x for x in self.inputs if x.requires_grad]
        self.allow_unused = allow_unused
        self.forward, self.backward = CUDAGraph(), CUDAGraph()
        self.results: list[Any] = []
        self.given: list[Any] = []  # gradients of the results, or None
        self.gradients: list[Any] = []  # of the inputs, or None

    def run(self) -> tuple[list[Any], Callable[[list[Any]], Any]]:
        return flatten(self.call(*self.arguments(self.leaves)))

    def gradients_of(self, results: list[Any], given: list[Any]) -> Sequence[Any]:
        """The gradients of the inputs that require one."""
        outputs = [r for r in results if r.requires_grad]
        if not outputs or not self.wanted:
            return [None] * len(self.wanted)
        return grad(
            outputs,
            self.wanted,
            [g for g in given if g is not None],
            allow_unused=self.allow_unused,
        )

    def warm_up(self) -> None:
        results, _ = self.run()
        self.gradients_of(results, _like(results))

    def capture_forward(self, pool: Any) -> None:
        with graph(self.forward, pool=pool):
            self.results, self.back = self.run()

    def capture_backward(self, pool: Any) -> None:
        self.given = _like(self.results)
        with graph(self.backward, pool=pool):
            found = self.gradients_of(self.results, self.given)
        of = iter(found)
        self.gradients = [next(of) if x.requires_grad else None for x in self.inputs]

    def function(self) -> Callable[..., Any]:
        captured = self

        class Graphed(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                for mine, given in zip(captured.leaves, inputs, strict=False):
                    if mine.data_ptr() != given.data_ptr():
                        mine.copy_(given)
                captured.forward.replay()
                results = tuple(result.detach() for result in captured.results)
                ctx.mark_non_differentiable(
                    *[
                        mine
                        for mine, result in zip(results, captured.results, strict=True)
                        if not result.requires_grad
                    ]
                )
                return results

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> Any:
                for mine, given in zip(captured.given, gradients, strict=True):
                    if mine is not None and mine.data_ptr() != given.data_ptr():
                        mine.copy_(given)
                captured.backward.replay()
                # Copies: a parameter may keep its gradient beyond the next replay.
                return tuple(g if g is None else g.clone() for g in captured.gradients)

        def call(*arguments: Any) -> Any:
            leaves, _ = flatten(arguments)
            if len(leaves) != len(captured.leaves):
                raise TypeError(
                    f"a graphed callable got {len(leaves)} Tensors; give "
                    f"{len(captured.leaves)}, as it was captured with"
                )
            for mine, given in zip(captured.leaves, leaves, strict=True):
                if mine.shape != given.shape:
                    raise ValueError(
                        "a graphed callable got a Tensor of shape "
                        f"{list(given.shape)}; give one of shape {list(mine.shape)}, "
                        "as it was captured with"
                    )
            results = Graphed.apply(*leaves, *captured.parameters)
            return captured.back([*results])

        return call


def _like(results: list[Any]) -> list[Any]:
    return [_C.ones_like(r) if r.requires_grad else None for r in results]


def graphed(
    callables: Sequence[Any],
    samples: Sequence[tuple[list[Any], Callable[[list[Any]], Any]]],
    warmups: int,
    allow_unused: bool,
    pool: Any,
) -> list[Any]:
    """Each callable as a replay of its graphs."""
    captured = [
        _Captured(call, leaves, arguments, allow_unused)
        for call, (leaves, arguments) in zip(callables, samples, strict=True)
    ]
    _C._device_synchronize(None)
    with capture_stream(_C._device_index(None)):
        for each in captured:
            for _ in range(warmups):
                each.warm_up()
    _C._device_synchronize(None)
    for each in captured:
        each.capture_forward(pool)
    for each in reversed(captured):
        each.capture_backward(pool)
    return [
        each.call._replay_with(each.function())
        if hasattr(type(each.call), "_replay_with")
        else each.function()
        for each in captured
    ]
