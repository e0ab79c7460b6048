"""What a public module says of its names."""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import ModuleType


def publish(module: str, later: Collection[str] = ()) -> None:
    """Let dir(module) list its public names, and an unknown name say what to do.

    later: modules below it, also in __all__, that are imported at their first use.
    Public are the names of __all__ or, without it, all names without an underscore of
    what this package defines. A call, and no __getattr__ in the module: that would tell
    type checkers that every name exists.
    """
    names = vars(sys.modules[module])

    def __dir__() -> list[str]:
        if "__all__" in names:
            return sorted(names["__all__"])
        return sorted(n for n in names if n[0] != "_" and _is_ours(names[n]))

    def __getattr__(name: str) -> object:
        if name in later:
            from importlib import import_module

            return import_module(f"{module}.{name}")
        from pydevtensor._absent import absent

        text = absent(module, name)
        raise AttributeError(text, name=name, obj=sys.modules[module])

    names["__dir__"], names["__getattr__"] = __dir__, __getattr__


def _is_ours(value: object) -> bool:
    attribute = "__name__" if isinstance(value, ModuleType) else "__module__"
    return (getattr(value, attribute, None) or "").startswith("pydevtensor")
