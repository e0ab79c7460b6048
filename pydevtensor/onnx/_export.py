"""Runs a traced module once, and writes a node for each call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pydevtensor as torch
from pydevtensor import fx, nn
from pydevtensor.autograd import no_grad
from pydevtensor.onnx import _elementwise, _functional, _layers, _reductions, _shapes
from pydevtensor.onnx._records import FUNCTIONS, layer_record
from pydevtensor.onnx._writer import TYPES, Ref, Writer, helper, onnx, values
from pydevtensor.onnx.errors import UnsupportedOperatorError

# Importing them fills the tables of records.
RECORDS = _elementwise, _functional, _layers, _reductions, _shapes


def _has_ref(given: Any) -> bool:
    if isinstance(given, (tuple, list)):
        return any(map(_has_ref, given))
    if isinstance(given, dict):
        return any(map(_has_ref, given.values()))
    return isinstance(given, Ref)


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return layer_record(m) is not None


class _Run(fx.Interpreter):
    """Runs a graph on Refs."""

    def __init__(self, module: Any, writer: Writer) -> None:
        super().__init__(module)
        self.writer = writer

    def _written(self, name: str, function: Any, args: Any, kwargs: Any) -> Any:
        found = function(*values(args), **values(kwargs))
        if not _has_ref((args, kwargs)) or not _has_tensor(found):
            return found  # a constant, or a size
        if name not in FUNCTIONS:
            raise UnsupportedOperatorError(
                f"export(): {name}() has no operator of ONNX here; write it with others"
            )
        return self.writer.written(name, function, found, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._written(target.__name__, target, args, kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        method = getattr(type(values(args[0])), target)
        return self._written(target, method, args, kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        return self.writer.layer(self.fetch_attr(target), *args, **kwargs)


def _has_tensor(found: Any) -> bool:
    if isinstance(found, (tuple, list)) and not isinstance(found, torch.Size):
        return any(map(_has_tensor, found))
    return isinstance(found, torch.Tensor)


def _leaves(found: Any) -> list[Any]:
    if isinstance(found, (tuple, list)):
        return [leaf for each in found for leaf in _leaves(each)]
    return [] if found is None else [found]


def _info(name: str, value: Any, axes: Any) -> Any:
    named = axes if isinstance(axes, dict) else {d: f"{name}_{d}" for d in axes or ()}
    count = value.dim()
    open_ = {d % count: text for d, text in named.items()}
    sizes = [open_.get(d, size) for d, size in enumerate(value.shape)]
    return helper.make_tensor_value_info(name, TYPES[value.dtype], sizes)


def _runner(model: Any, writer: Writer) -> tuple[Callable[..., Any], list[str]]:
    """A function of Refs that writes the model; its parameters' names."""
    if layer_record(model) is not None:
        names = [*inspect.signature(model.forward).parameters]
        return functools.partial(writer.layer, model), names
    tracer = _Tracer()
    graph = tracer.trace(model)
    module = fx.GraphModule(tracer.root, graph)
    names = [str(n.target) for n in graph.nodes if n.op == "placeholder"]
    return _Run(module, writer).run, names


class _Inputs:
    """The inputs of a model: a Ref for each Tensor, also of those in tuples."""

    def __init__(self, names: list[str], dynamic: Any) -> None:
        self.names, self.dynamic = names, dynamic
        self.infos: list[Any] = []

    def refs(self, value: Any, word: str) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(self.refs(v, f"{word}_{i}") for i, v in enumerate(value))
        if not isinstance(value, torch.Tensor):
            return value
        count = len(self.infos)
        name = self.names[count] if count < len(self.names) else word
        self.infos.append(_info(name, value, self.dynamic.get(name)))
        return Ref(name, value)


def _outputs(w: Writer, found: list[Any], names: list[str], dynamic: Any) -> list[Any]:
    infos = []
    for i, each in enumerate(found):
        name = names[i] if i < len(names) else f"output_{i}"
        w.nodes.append(helper.make_node("Identity", [w.of(each)], [name]))
        axes = dynamic.get(name)
        if axes is None and dynamic and values(each).dim():
            axes = {0: w.name("size")}
        infos.append(_info(name, values(each), axes))
    return infos


@contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    was = isinstance(model, nn.Module) and model.training
    try:
        if was:
            model.eval()
        with no_grad():
            yield
    finally:
        if was:
            model.train()


def write(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: tuple[list[str], list[str]],
    version: int,
    dynamic: Any,
) -> Any:
    """The onnx.ModelProto of a module or a function."""
    writer, inputs = Writer(version), _Inputs(names[0], dynamic)
    given: list[Any] = []
    with _evaluating(model):
        run, words = _runner(model, writer)
        for i, word in enumerate(words):
            if i < len(args) or word in kwargs:
                value = args[i] if i < len(args) else kwargs[word]
                given.append(inputs.refs(value, word.removeprefix("*")))
        outputs = _outputs(writer, _leaves(run(*given)), names[1], dynamic)
    parts = writer.nodes, "main", inputs.infos, outputs, writer.constants
    written = helper.make_model(
        helper.make_graph(*parts),
        producer_name="pydevtensor",
        opset_imports=[helper.make_opsetid("", version)],
    )
    written.ir_version = min(written.ir_version, 10)
    onnx.checker.check_model(written)
    return written
