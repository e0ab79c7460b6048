"""Functions that have one answer here, for programs that ask PyTorch.

is_available = answer(__name__, "is_available", False)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import TypeVar, cast

_Value = TypeVar("_Value")


def answer(module: str, name: str, value: _Value) -> Callable[[], _Value]:
    """The function name() of a module, which returns the value.

    Its docstring has the value, the reason from the module's first line, an example.
    """
    body = cast("FunctionType", lambda: value)
    names = vars(sys.modules[module])  # as a def there has them, for doctest
    # python -OO leaves no docstrings.
    title, _, reason = (names["__doc__"] or "").partition("\n")[0].partition(": ")
    made = FunctionType(body.__code__, names, name, None, body.__closure__)
    made.__qualname__ = name
    made.__annotations__ = {"return": None if value is None else type(value)}
    shown = "" if value is None else f"{value!r}\n"
    made.__doc__ = f"{value!r}: {reason}\n\n>>> {title}.{name}()\n{shown}"
    return made
