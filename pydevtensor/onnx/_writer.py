"""The nodes and constants of a model, while it is written."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.onnx._records import BY_NAME, FUNCTIONS, Arguments, layer_record
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
    getattr(torch, name): getattr(onnx.TensorProto, name.upper()) for name in _NAMED
}
TYPES |= {torch.float32: onnx.TensorProto.FLOAT, torch.float64: onnx.TensorProto.DOUBLE}


class Ref:
    """A value of the model: its name there, and the result in this run."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    def dim(self) -> int:
        return int(self.value.dim())


class Writer:
    """The nodes and constants of a model."""

    def __init__(self, version: int) -> None:
        self.version = version  # of the set of operators
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
        if not isinstance(value, torch.Tensor):
            dtype = like.value.dtype if isinstance(like, Ref) else like
            value = torch.tensor(value, dtype=dtype)
        if id(value) not in self._known:
            self._alive.append(value)
            name = self._known[id(value)] = self.name("constant")
            array = value.detach().cpu()
            if array.dtype == torch.bfloat16:
                raise UnsupportedOperatorError(
                    "export(): a constant of bfloat16; convert the module to float32"
                )
            self.constants.append(numpy_helper.from_array(array.numpy(), name))
        return self._known[id(value)]

    def ints(self, values: Any) -> str:
        return self.of(torch.tensor(list(values), dtype=torch.int64))

    def put(self, op: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Write a node; the name of its output, or a list of them."""
        taken = [each if isinstance(each, str) else self.of(each) for each in inputs]
        names = [self.name(op) for _ in range(outputs)]
        given = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, taken, names, **given))
        return names[0] if outputs == 1 else names

    def reduce(self, op: str, x: Any, axes: Any, keepdims: bool) -> str:
        """Write a reduction over axes; None: all."""
        if axes is None or (op != "ReduceSum" and self.version < 18):
            return str(self.put(op, x, axes=axes, keepdims=int(keepdims)))
        return str(self.put(op, x, self.ints(axes), keepdims=int(keepdims)))

    def cast(self, value: Any, dtype: Any) -> Any:
        """A Ref, converted; other values as they are."""
        if not isinstance(value, Ref) or value.value.dtype == dtype:
            return value
        return Ref(self.put("Cast", value, to=TYPES[dtype]), value.value.to(dtype))

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        """Write a call of a function of the package with Refs; a Ref of its result."""
        kind = next(k for k in (nn.functional, torch.Tensor, torch) if hasattr(k, name))
        function = getattr(kind, name)
        found = function(*values(args), **values(named))
        return self.written(name, function, found, args, named)

    def written(
        self, name: str, function: Any, found: Any, args: Any, named: Any
    ) -> Any:
        """Refs for what a call gave, which the record of its name writes."""
        if name in BY_NAME:
            args, named = (Arguments(function, args, named),), {}
        made = FUNCTIONS[name](self, found, *args, **named)
        if isinstance(found, (tuple, list)):
            refs = [
                each if isinstance(each, Ref) or each is None else Ref(each, value)
                for each, value in zip(made, found, strict=False)
            ]
            # Results with names, such as max()'s, keep them.
            return type(found)(refs) if len(refs) == len(found) else tuple(refs)
        return made if isinstance(made, Ref) else Ref(made, found)

    def layer(self, module: Any, *args: Any, **named: Any) -> Any:
        """Write a call of a module that has a record, and return its result."""
        given = Arguments(module.forward, args, named)
        return layer_record(module)(self, module, given)


def values(given: Any) -> Any:
    """The arguments with the results of this run in place of Refs."""
    if isinstance(given, Ref):
        return given.value
    if isinstance(given, (tuple, list)):
        return type(given)(values(each) for each in given)
    if isinstance(given, slice):
        return slice(*(values(x) for x in (given.start, given.stop, given.step)))
    if isinstance(given, dict):
        return {key: values(each) for key, each in given.items()}
    return given
