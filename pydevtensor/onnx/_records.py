"""The tables of records: functions that write a call as operators of ONNX.

The record of a function gets the writer, the result and the call's arguments: one by
one or, with by_name=True, as attributes of an object. The record of a layer gets the
writer, the module, and the arguments of forward() as attributes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from pydevtensor.onnx.errors import UnsupportedOperatorError

FUNCTIONS: dict[str, Callable[..., Any]] = {}
BY_NAME: set[str] = set()  # the functions whose records get arguments by name
LAYERS: dict[type, Callable[..., Any]] = {}  # layers that are written as a whole


_NAMES_OF_NUMPY = {"axis": "dim", "keepdims": "keepdim"}


class Arguments:
    """A call's arguments by name, with the defaults of the function that is called.

    A method's own tensor is `input`; None where the function has no such parameter.
    """

    def __init__(self, function: Any, args: Any, named: Any) -> None:
        given = {_NAMES_OF_NUMPY.get(name, name): v for name, v in named.items()}
        bound = inspect.signature(function).bind(*args, **given)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, "input" if name == "self" else name, value)

    def __getattr__(self, name: str) -> Any:
        return None


def record(*names: str, by_name: bool = False) -> Callable[[Any], Any]:
    """Makes a function the record of calls of these names."""
    if by_name:
        BY_NAME.update(names)
    return _into(FUNCTIONS, names)


def layer(*kinds: type) -> Callable[[Any], Any]:
    """Makes a function the record of modules of these classes."""
    return _into(LAYERS, kinds)


def _into(table: dict[Any, Any], keys: Iterable[Any]) -> Callable[[Any], Any]:
    def add(body: Any) -> Any:
        table.update(dict.fromkeys(keys, body))
        return body

    return add


def layer_record(module: Any) -> Any:
    """The record of a module's class or of one of its bases, or None."""
    return next((r for kind, r in LAYERS.items() if isinstance(module, kind)), None)


def refused(what: str) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(f"export(): {what}")
