"""Publishes the names of a module, and says which module a class is of."""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import partial
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

import pydevtensor
from pydevtensor import _C

# The beginnings of modules' names, and those instead of them. install_as_torch() gives
# PyTorch's, since programs compare `__module__` with them.
_instead: dict[str, str] = {}
_published: list[str] = []


def publish(
    module: str,
    later: Collection[str] | dict[str, str] = (),
    home_of: Collection[str] = (),
    errors: bool = False,
    described: bool = False,
) -> None:
    """Let dir(module) list its public names, and an unknown name say what to do.

    later: modules below it, also in __all__, that are imported at their first use. A
    dict: classes and functions of such modules, too, with the module's name.
    home_of: classes of other modules that say they are from this one, as in PyTorch.
    errors: name the errors of the functions in __all__ after the function.
    described: complete their docstrings, and those of classes, from others (_records).
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

            home = later[name] if isinstance(later, dict) else name
            found = import_module(f"{module}.{home}")
            return found if home == name else getattr(found, name)
        return pydevtensor._find_absent(module, name)

    names["__dir__"], names["__getattr__"] = __dir__, __getattr__
    names.setdefault("__path__", [])  # modules below it may be stand-ins
    for below in list(names.values()):  # which may publish nothing themselves
        if isinstance(below, ModuleType) and below.__name__.startswith(module + "."):
            find = partial(pydevtensor._find_absent, below.__name__)
            vars(below).setdefault("__getattr__", find)
            vars(below).setdefault("__path__", [])
    if described:
        from pydevtensor import _records

        _records.complete_docs(names)
    for name in names["__all__"] if errors else ():
        if isinstance(names[name], FunctionType):
            names[name] = _with_its_name(names[name])
    give(module, *(names[name] for name in home_of))
    add(module)


def add(module: str) -> None:
    """Let a module have the name that rename() gives it, now or later."""
    _published.append(module)
    _rename(module)


def give(home: str, *classes: type) -> None:
    """Let classes say they are from home: by PyTorch's name of it, this package's."""
    for each in classes:
        _C._set_module(each, home)
        _follow(each)


class Returned(Exception):
    """Ends a public function of a module with errors=True, from a function below it.

    args[0] is the result.
    """


_named: dict[FunctionType, Any] = {}


def _with_its_name(body: FunctionType) -> Any:
    """The function with errors that have its name."""
    from functools import wraps

    @wraps(body)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return body(*args, **kwargs)
        except Returned as ended:
            return ended.args[0]
        except Exception as error:
            _C._name_error(error, body.__name__)
            raise

    return _named.setdefault(body, call)


def make_modules(above: str, **kinds: type) -> None:
    """Make modules of one class, which PyTorch has and this package has no files of."""
    for last, kind in kinds.items():
        name = f"{above}.{last}"
        made = ModuleType(name, f"The module that PyTorch has {kind.__name__} in.")
        made.__spec__ = ModuleSpec(name, None)
        setattr(made, kind.__name__, kind)
        setattr(sys.modules[above], last, made)
        sys.modules[name] = made
        give(name, kind)
        add(name)


def rename(instead: dict[str, str]) -> None:
    """Call modules, and the classes in them, by other names from now on."""
    _instead.update(instead)
    for module in list(sys.modules):
        if _renamed(module) != module:
            _rename(module)


def _rename(module: str) -> None:
    """Rename the classes of a module and, if it is published, the module."""
    if not _instead:
        return
    found = sys.modules[module]
    for value in list(vars(found).values()):
        if isinstance(value, type):
            _follow(value)
    if module in _published:
        found.__name__ = _renamed(module)
        sys.modules.setdefault(found.__name__, found)


def _follow(kind: type) -> None:
    name = _renamed(kind.__module__)
    if name != kind.__module__:
        _C._set_module(kind, name)


def _renamed(module: str) -> str:
    """The name instead of a module's, which stays that of a private one."""
    if "._" not in module:
        for ours, theirs in _instead.items():
            if module == ours or module.startswith(ours + "."):
                return theirs + module[len(ours) :]
    return module


def _is_ours(value: object) -> bool:
    attribute = "__name__" if isinstance(value, ModuleType) else "__module__"
    name = getattr(value, attribute, None) or ""
    return name.partition(".")[0] in {"pydevtensor", *_instead.values()}
