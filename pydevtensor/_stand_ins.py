"""Stand-ins for what PyTorch has and this package does not.

A program that imports torch.fx or names a class of it, and uses neither, runs.
`_torch_names.txt` lists PyTorch's modules and names; what the package does not have of
them is a module or a class that is made here when it is asked for. A stand-in raises
when it is called, derived classes too, and has no attributes but the members of an
enumeration. A function that asks whether something is there answers that it is not, and
a decorator that only marks a function gives it back.
"""

from __future__ import annotations

import re
import sys
from abc import ABCMeta
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec as _find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from pydevtensor._absent import absent, advice
from pydevtensor._names import add, give

_TOP = "pydevtensor."
# Modules that are there where a package of another project is, as in PyTorch.
_NEEDS = {"utils.tensorboard": "tensorboard"}
# Functions that ask: is_available(), is_nccl_available(), is_in_onnx_export(), ...
_ASKS = re.compile(
    r"is_(\w+_)?(available|built|initialized|launched|supported|enabled|capturing"
    r"|compiling|exporting|export|scripting|tracing|masked_tensor|from_package)"
    r"|device_count|has_torch_function(_unary|_variadic)?|kineto_available"
)
# Decorators that mark a function for a compiler or a tracer, which is not there.
_MARKS = {
    "_dynamo.allow_in_graph",
    "_dynamo.assume_constant_result",
    "_dynamo.disable",
    "compiler.allow_in_graph",
    "compiler.assume_constant_result",
    "compiler.nested_compile_region",
    "distributed.elastic.multiprocessing.errors.record",
    "jit.interface",
    "jit.script_if_tracing",
}
# Functions that register something with a part that is not there. What they return
# raises when it is called.
_REGISTERS = {"_C._log_api_usage_once", "_dynamo.mark_static_address"}

_table: dict[str, dict[str, bool]] = {}
_made: dict[str, Any] = {}


def table() -> dict[str, dict[str, bool]]:
    """PyTorch's names by module, without `torch.`; '' is torch itself.

    A name's value: whether the object is that of the module above.
    """
    if not _table:
        text = (Path(__file__).parent / "_torch_names.txt").read_text()
        rows = (line.partition(":") for line in text.splitlines())
        for path, _, names in rows:
            _table[path] = {n.rstrip("^"): n[-1] == "^" for n in names.split()}
    return _table


def is_module(path: str) -> bool:
    """Whether PyTorch has a module of this name, given without `torch.`."""
    if path not in table():
        return False
    needs = _NEEDS.get(path)
    return needs is None or _find_spec(needs) is not None


def find(module: str, name: str) -> Any:
    """The stand-in for a name that a module of this package lacks.

    AttributeError with advice if PyTorch has no such name there either.
    """
    here = "pydevtensor" + module.removeprefix("pydevtensor").removeprefix("torch")
    path = f"{here}.{name}".removeprefix(_TOP)
    above = path[: -len(name) - 1]
    names = table().get(above, {})
    from pydevtensor._private_names import find as find_private

    with suppress(KeyError):
        return find_private(path)
    if names.get(name):
        return getattr(import_module((_TOP + above).rpartition(".")[0]), name)
    if name in names:
        return _class(path)
    if is_module(path):
        return import_module(_TOP + path)
    raise AttributeError(absent(here, name), name=name, obj=sys.modules.get(module))


def is_stand_in(value: object) -> bool:
    """Whether it is a module, a class or a function made here."""
    return isinstance(value, (_Module, _StandIn)) or hasattr(value, "_stands_for")


def why(path: str) -> str:
    """The message for the use of a stand-in."""
    way = advice(path) or "docs/compatibility.md lists what there is"
    return f"pydevtensor has no torch.{path}; {way}"


# --- classes


class _StandIn(ABCMeta):
    """The class of stand-ins for classes, functions and other values.

    A class of ABCMeta, since programs derive classes from stand-ins and from ABC.
    """

    _path: str

    def __call__(cls, *args: Any, **named: Any) -> Any:
        raise NotImplementedError(why(cls._path))

    def __getattr__(cls, name: str) -> Any:
        path, _, last = cls._path.rpartition(".")
        if f"{last}.{name}" in table().get(path, ()):
            return _class(f"{path}.{last}.{name}", path)
        raise AttributeError(why(f"{cls._path}.{name}"), name=name, obj=cls)

    def __getitem__(cls, item: Any) -> Any:
        return cls  # Future[int] in an annotation

    def __repr__(cls) -> str:
        if cls.__name__ == cls._path.rpartition(".")[2]:
            return f"<stand-in for torch.{cls._path}>"
        return super().__repr__()


def _ignore(cls: type, **named: Any) -> None:
    """__init_subclass__() of stand-ins: the options of the class that is not there."""


def _class(path: str, module: str | None = None) -> Any:
    if path not in _made:
        _made[path] = _make(path, module)
    return _made[path]


def _make(path: str, module: str | None) -> Any:
    above, _, name = path.rpartition(".")
    if path in _MARKS:
        return _function(path, _mark(), "The function itself")
    if _ASKS.fullmatch(name):
        value = 0 if name == "device_count" else False
        return _function(path, lambda *args, **named: value, str(value))
    bases: tuple[type, ...] = ()
    if name.endswith("Warning"):
        bases = (UserWarning,)
    elif name.endswith(("Error", "Exception")):
        bases = (RuntimeError,)
    home = (_TOP + (above if module is None else module)).removesuffix(".")
    members = {
        "__module__": home,
        "__qualname__": path.removeprefix(f"{module}.") if module else name,
        "__doc__": why(path),
        "__init_subclass__": classmethod(_ignore),
        "_path": path,
    }
    made = _StandIn(name, bases, members)
    give(home, made)
    if path in _REGISTERS:
        return _function(path, lambda *args, **named: made, "Does nothing")
    return made


def _mark() -> Any:
    def mark(fn: Any = None, **options: Any) -> Any:
        return mark if fn is None else fn

    return mark


def _function(path: str, body: Any, gives: str) -> Any:
    above, _, name = path.rpartition(".")
    body._stands_for = path
    body.__name__ = body.__qualname__ = name
    body.__module__ = (_TOP + above).removesuffix(".")
    body.__doc__ = f"{gives}: {why(path)}"
    return body


# --- modules


class _Above(ModuleType):
    """A module that keeps a function when a submodule of the same name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        path = self.__name__.partition(".")[2]
        if not isinstance(value, ModuleType) or name not in table()[path]:
            super().__setattr__(name, value)


class _Module(_Above):
    """A module that PyTorch has and this package does not."""

    def __init__(self, path: str) -> None:
        super().__init__(_TOP + path, why(path))
        self.__dict__["__all__"] = sorted(n for n in table()[path] if "." not in n)

    def __getattr__(self, name: str) -> Any:
        return find(self.__name__, name)

    def __dir__(self) -> list[str]:
        path = self.__name__.partition(".")[2]
        return [
            name
            for name in self.__all__
            if _ASKS.fullmatch(name) or f"{path}.{name}" in _MARKS
        ]

    def __repr__(self) -> str:
        return f"<stand-in for the module {self.__name__}>"


class _Loader:
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name.removeprefix(_TOP))

    def exec_module(self, module: ModuleType) -> None:
        above, _, name = module.__name__.rpartition(".")
        parent = sys.modules[above]
        if type(parent) is ModuleType and name in table()[above[len(_TOP) :]]:
            parent.__class__ = _Above
        add(module.__name__)


def find_spec(name: str) -> ModuleSpec | None:
    """The finder's answer for a module below this package that has no file."""
    path = name.removeprefix(_TOP)
    if not is_module(path):
        return None
    return ModuleSpec(name, _Loader(), origin="stand-in", is_package=True)  # type: ignore[arg-type]
