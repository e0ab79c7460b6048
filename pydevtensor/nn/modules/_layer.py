"""Base of layers with parameters."""

from __future__ import annotations

import itertools
from typing import Any

from pydevtensor import _C, _records
from pydevtensor.nn import init
from pydevtensor.nn.modules._function_layer import forward, schema_of
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parameter import Parameter


def explain(module: Module, error: Exception, **inputs: Any) -> None:
    """Raise the core's error again in the module's terms, if that is of use."""
    home = next(itertools.chain(module.parameters(False), module.buffers(False)), None)
    for name, value in inputs.items():
        if not isinstance(value, _C.Tensor):
            raise TypeError(
                f"{module}: the {name} has to be a Tensor, not {type(value).__name__}; "
                "wrap it in torch.tensor(...)"
            ) from None
        if home is not None and value.device != home.device:
            raise RuntimeError(
                f"{module}: the parameters are on {home.device} and the {name}, of "
                f"shape {[*value.shape]}, on {value.device}; bring them together, e.g. "
                f"with {name}.to('{home.device}')"
            ) from None
    if type(error) in (RuntimeError, ValueError, IndexError):
        raise type(error)(f"{module}: {error}") from None


def need_ints(module: Module, names: tuple[str, ...], given: dict[str, Any]) -> None:
    """Raise TypeError for a size that is not an int, by the name of the argument."""
    for name in names:
        if not hasattr(size := given[name], "__index__"):
            raise TypeError(
                f"{type(module).__name__}(): {name} is {size!r:.60} "
                f"({type(size).__name__}); give an int"
            )


class Parametrized(Module, _records.Record):
    """Base of layers with parameters. _make() creates one of its options.

    calls   the function that forward() calls with the attributes of its parameters'
            names; where it fails, the error is explained in the layer's terms
    inputs  what forward() takes, as a list

    Options that several families have:

    bias           whether there is a bias
    batch_first    take (N, L, features) in place of (L, N, features)
    device, dtype  of the parameters
    """

    _schema = (
        "layer(bias: bool = True, eps: float = 1e-5, dropout: float = 0.0, "
        "batch_first: bool = False, device: Any = None, dtype: Any = None)"
    )
    _ints: tuple[str, ...] = ()  # the options that have to be ints
    _spent = ("bias", "device", "dtype")  # those without an attribute

    def __init_subclass__(
        cls, calls: Any = None, inputs: str = "input", **record: Any
    ) -> None:
        super().__init_subclass__(**record)
        if calls is not None:
            where = _records.caller()
            made = _records.Made(
                cls, "forward", _forward, calls.__name__, inputs, where
            )
            cls.forward = made  # type: ignore

    def _make(self, **options: Any) -> None:
        Module.__init__(self)
        need_ints(self, self._ints, options)
        for name, value in options.items():
            if name not in self._spent:
                setattr(self, name, value)

    def _add(self, shapes: dict[str, Any], device: Any, dtype: Any) -> None:
        """Register parameters of these shapes, or None."""
        for name, shape in shapes.items():
            value = None
            if shape is not None:
                value = Parameter(_C.empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, value)


_EXPLAINED = """
 try: {{}}
 except Exception as error: explain(self, error, {}); raise"""


def _forward(owner: type, name: str, inputs: str, where: _records.Where) -> Any:
    from pydevtensor import _signatures

    text = _signatures.Caller(schema_of(name), inputs)
    needed = ", ".join(f"{p.name}={p.name}" for p in text.inputs if not p.default)
    body = _EXPLAINED.format(needed)
    return forward(owner, where, name, text, body, explain=explain)


class Layer(Parametrized):
    """Base of layers with a weight and a bias, which may be None."""

    _repr = ""  # what extra_repr() shows, a list of `name`, or `name=` with the name

    def _make(  # type: ignore[override]
        self, *, device: Any, dtype: Any, bias: bool = True, **options: Any
    ) -> None:
        super()._make(**options)
        shapes = self._shapes()
        if not bias:
            shapes["bias"] = None
        self._add(shapes, device, dtype)
        self.reset_parameters()

    def extra_repr(self) -> str:
        shown = []
        for name in self._repr.split():
            value = getattr(self, name.rstrip("="))
            value = value is not None if name == "bias=" else value
            shown.append(f"{name}{value}" if name[-1] == "=" else f"{value}")
        return ", ".join(shown)

    def _shapes(self) -> dict[str, Any]:
        """The shapes of weight and bias, or None."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Set weight to ones and bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)
