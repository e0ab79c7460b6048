"""Methods made from names, as a dataclass makes its constructor.

    @constructor
    class StepLR(LRScheduler):
        optimizer: Optimizer
        step_size: int
        gamma: float = 0.1

has __init__(self, optimizer, step_size, gamma=0.1), which passes them on, by name, to
_construct() of a base class. So the base decides what happens to them, and importing is
quick: dataclasses import half of the standard library.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


def add_method(
    cls: type, name: str, kinds: dict[str, str], body: str, **names: Any
) -> None:
    """Define cls.name(); kinds has its annotations, of the parameters too.

    The body knows names; one that is called default_x is the default of parameter x.
    """
    parameters = ["self"]
    for each in kinds:
        default = f"default_{each}"
        if each != "return":
            parameters.append(f"{each}={default}" if default in names else each)
    text = (
        f"def scope({', '.join(names)}):\n"
        f"    def {name}({', '.join(parameters)}):\n"
        f"        {body}\n"
        f"    return {name}"
    )
    made: dict[str, Any] = {}
    code = compile(text, f"<{cls.__name__}.{name}()>", "exec")
    exec(code, vars(sys.modules[cls.__module__]), made)
    method = made["scope"](**names)
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    method.__annotations__ = kinds
    setattr(cls, name, method)


@dataclass_transform()
def constructor(cls: _Class) -> _Class:
    """Define __init__() with the annotated names, after a base's, as parameters."""
    kinds = {**getattr(cls, "_fields", {}), **cls.__annotations__}
    defaults = {**getattr(cls, "_defaults", {})}
    for name in cls.__annotations__:
        if name in vars(cls):
            defaults[f"default_{name}"] = vars(cls)[name]
            delattr(cls, name)
    made: Any = cls
    made._fields, made._defaults = kinds, defaults
    given = ", ".join(f"{name}={name}" for name in kinds)
    kinds = {**kinds, "return": "None"}
    add_method(cls, "__init__", kinds, f"self._construct({given})", **defaults)
    return cls
