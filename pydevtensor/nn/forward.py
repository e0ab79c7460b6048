"""Modules whose forward() is one call of a function with their attributes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

from pydevtensor import _C
from pydevtensor._constructor import add_method, constructor
from pydevtensor.nn.module import Module

_Class = TypeVar("_Class", bound=type)


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


@dataclass_transform()
def calls(function: Callable, options: str = "") -> Callable[[_Class], _Class]:
    """Decorator: forward() of a base is a call of function with the inputs and options.

    options: the names of attributes. Without them, the class gets a @constructor, whose
    parameters they are; instead of those that a loss replaces by reduction it is None.
    """

    def decorate(cls: _Class) -> _Class:
        made: Any = cls if options else constructor(cls)
        kinds = made.forward.__annotations__
        inputs = [name for name in kinds if name != "return"]
        values = [
            "None" if name in ("size_average", "reduce") else f"self.{name}"
            for name in options.split() or made._fields
        ]
        given = ", ".join([*inputs, *values])
        named = ", ".join(f"{name}={name}" for name in inputs)
        body = (
            f"try: return function({given})\n"
            f"        except Exception as error: explain(self, error, {named}); raise"
        )
        add_method(cls, "forward", kinds, body, function=function, explain=explain)
        return cls

    return decorate


class InputModule(Module):
    """Base of modules with one input, whose forward() is defined by a decorator."""

    def forward(self, input: Any) -> Any:
        raise NotImplementedError


class OptionModule(InputModule):
    """Base of modules whose attributes are the parameters of their constructor."""

    _fields: dict[str, str]

    def _construct(self, **options: Any) -> None:
        Module.__init__(self)
        vars(self).update(options)

    def extra_repr(self) -> str:
        values = ((name, getattr(self, name)) for name in self._fields)
        shown = (f"{n}={v!r}" for n, v in values if v or n != "inplace")
        return ", ".join(shown)
