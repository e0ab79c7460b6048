"""Runs a traced module once, and writes a node for each call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pydevtensor import _C, fx, nn
from pydevtensor.autograd import no_grad
from pydevtensor.onnx.errors import UnsupportedOperatorError

try:
    onnx: Any = import_module("onnx")
    helper: Any = import_module("onnx.helper")
    numpy_helper: Any = import_module("onnx.numpy_helper")
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        "torch.onnx.export() needs the package onnx; install it: pip install onnx",
        name=_error.name,
    ) from _error

_NAMED = ["float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
TYPES: dict[Any, int] = {
    getattr(_C, name): getattr(onnx.TensorProto, name.upper()) for name in _NAMED
}
TYPES |= {_C.float32: onnx.TensorProto.FLOAT, _C.float64: onnx.TensorProto.DOUBLE}

# How a call is written, by its name, and a layer that stays one call, by its class.
FUNCTIONS: dict[str, Callable[..., Any]] = {}
LAYERS: dict[type, Callable[..., Any]] = {}


class Ref:
    """A value of the model: its name there, and what it was in this run."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    def dim(self) -> int:
        return int(self.value.dim())


class Writer:
    """The nodes and constants of a model."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[Any, str] = {}
        self._alive: list[Any] = []
        self._count = 0

    def name(self, word: str) -> str:
        self._count += 1
        return f"{word}_{self._count}"

    def of(self, value: Any, like: Any = None) -> str:
        """The name of a Ref; of a Tensor or a number, that of a constant."""
        if isinstance(value, Ref):
            return value.name
        if not isinstance(value, _C.Tensor):
            dtype = like.value.dtype if isinstance(like, Ref) else like
            value = _C.tensor(value, dtype=dtype)
        if id(value) not in self._known:
            self._alive.append(value)
            name = self._known[id(value)] = self.name("constant")
            array = value.detach().cpu()
            if array.dtype == _C.bfloat16:
                raise UnsupportedOperatorError(
                    "export(): a constant of bfloat16; convert the module to float32"
                )
            self.constants.append(numpy_helper.from_array(array.numpy(), name))
        return self._known[id(value)]

    def ints(self, values: Any) -> str:
        return self.of(_C.tensor(list(values), dtype=_C.int64))

    def put(self, op: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Write a node; the name of its output, or a list of them."""
        taken = [each if isinstance(each, str) else self.of(each) for each in inputs]
        names = [self.name(op) for _ in range(outputs)]
        given = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, taken, names, **given))
        return names[0] if outputs == 1 else names

    def cast(self, value: Any, dtype: Any) -> Any:
        """A Ref, converted; other values as they are."""
        if not isinstance(value, Ref) or value.value.dtype == dtype:
            return value
        return Ref(self.put("Cast", value, to=TYPES[dtype]), value.value.to(dtype))

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        """Write a call of a function of the package with Refs; a Ref of its result."""
        first = args[0][0] if isinstance(args[0], (list, tuple)) else args[0]
        kind = next(k for k in (nn.functional, _C.Tensor, _C) if hasattr(k, name))
        assert isinstance(first, Ref)
        found = getattr(kind, name)(*values(args), **values(named))
        return self.written(FUNCTIONS[name], found, args, named)

    def written(self, record: Any, found: Any, args: Any, named: Any) -> Any:
        """Refs for what a call gave, which the record writes."""
        made = record(self, found, *args, **named)
        if isinstance(found, (tuple, list)):
            return tuple(
                each if isinstance(each, Ref) or each is None else Ref(each, value)
                for each, value in zip(made, found, strict=False)
            )
        return made if isinstance(made, Ref) else Ref(made, found)


def values(given: Any) -> Any:
    """What Refs in arguments were in this run."""
    if isinstance(given, Ref):
        return given.value
    if isinstance(given, (tuple, list)):
        return type(given)(values(each) for each in given)
    if isinstance(given, slice):
        return slice(*(values(x) for x in (given.start, given.stop, given.step)))
    if isinstance(given, dict):
        return {key: values(each) for key, each in given.items()}
    return given


def _has_ref(given: Any) -> bool:
    if isinstance(given, (tuple, list)):
        return any(map(_has_ref, given))
    if isinstance(given, dict):
        return any(map(_has_ref, given.values()))
    return isinstance(given, Ref)


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return any(isinstance(m, kind) for kind in LAYERS)


class _Run(fx.Interpreter):
    """Runs a graph on Refs."""

    def __init__(self, module: Any, writer: Writer) -> None:
        super().__init__(module)
        self.writer = writer

    def _write(self, name: str, run: Any, args: Any, kwargs: Any) -> Any:
        found = run(*values(args), **values(kwargs))
        if not _has_ref((args, kwargs)) or not _has_tensor(found):
            return found  # a constant, or a size
        if name not in FUNCTIONS:
            raise UnsupportedOperatorError(
                f"export(): {name}() has no operator of ONNX here; write it with others"
            )
        return self.writer.written(FUNCTIONS[name], found, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._write(target.__name__, target, args, kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        def run(first: Any, *rest: Any, **named: Any) -> Any:
            return getattr(first, target)(*rest, **named)

        return self._write(target, run, args, kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        module: Any = self.fetch_attr(target)
        record = next(r for k, r in LAYERS.items() if isinstance(module, k))
        return record(self.writer, module, *args, **kwargs)


def _has_tensor(found: Any) -> bool:
    if isinstance(found, (tuple, list)) and not isinstance(found, _C.Size):
        return any(map(_has_tensor, found))
    return isinstance(found, _C.Tensor)


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


def write(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: tuple[list[str], list[str]],
    version: int,
    dynamic: Any,
) -> Any:
    """The onnx.ModelProto of a module or a function."""
    from pydevtensor.onnx import _layers, _records

    assert _records and _layers  # which fill the tables
    was = isinstance(model, nn.Module) and model.training
    if was:
        model.eval()
    try:
        with no_grad():
            return _write(model, args, kwargs, names, version, dynamic or {})
    finally:
        if was:
            model.train()


def _runner(model: Any, writer: Writer) -> tuple[Callable[..., Any], list[str]]:
    """A function of Refs that writes the model; its parameters' names."""
    for kind, record in LAYERS.items():
        if isinstance(model, kind):
            layer: Any = model
            names = [*inspect.signature(layer.forward).parameters]
            return functools.partial(record, writer, model), names
    tracer = _Tracer()
    graph = tracer.trace(model)
    module = fx.GraphModule(tracer.root, graph)
    names = [str(n.target) for n in graph.nodes if n.op == "placeholder"]
    return _Run(module, writer).run, names


def _write(
    model: Any, args: Any, kwargs: Any, names: Any, version: int, dynamic: Any
) -> Any:
    writer = Writer()
    run, words = _runner(model, writer)
    given: list[Any] = []
    inputs: list[Any] = []

    def ref(value: Any, word: str) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(ref(v, f"{word}_{i}") for i, v in enumerate(value))
        if not isinstance(value, _C.Tensor):
            return value
        name = names[0][len(inputs)] if len(inputs) < len(names[0]) else word
        inputs.append(_info(name, value, dynamic.get(name)))
        return Ref(name, value)

    for i, word in enumerate(words):
        if i < len(args) or word in kwargs:
            value = args[i] if i < len(args) else kwargs[word]
            given.append(ref(value, word.removeprefix("*")))
    found = _leaves(run(*given))
    outputs = []
    for i, each in enumerate(found):
        value = values(each)
        name = names[1][i] if i < len(names[1]) else f"output_{i}"
        writer.nodes.append(helper.make_node("Identity", [writer.of(each)], [name]))
        axes = dynamic.get(name)
        if axes is None and dynamic and value.dim():
            axes = {0: writer.name("size")}
        outputs.append(_info(name, value, axes))
    made = helper.make_graph(writer.nodes, "main", inputs, outputs, writer.constants)
    imports = [helper.make_opsetid("", version)]
    written = helper.make_model(
        made, producer_name="pydevtensor", opset_imports=imports
    )
    written.ir_version = min(written.ir_version, 10)
    onnx.checker.check_model(written)
    return written


def pair(value: Any, count: int) -> list[int]:
    """A number for each of the dimensions."""
    return [value] * count if isinstance(value, int) else list(value)
