"""torch.jit: functions and modules run as they are written.

save() writes a network of this package's layers into an archive of torch.save(), with
each layer's class by name, its options, parameters and buffers. load() builds it of
them: a file names layers of a closed list, and nothing in it is ever called.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from typing import Final as Final  # for annotations, as in PyTorch

from pydevtensor import _C
from pydevtensor import serialization as _serialization
from pydevtensor._absent import warn_of_compiling as _warn_of_compiling
from pydevtensor._answers import answer as _answer
from pydevtensor._names import publish as _publish

__all__ = ["annotate", "export", "fork", "freeze", "ignore", "is_scripting"]
__all__ += ["is_tracing", "load", "optimize_for_inference", "save", "script"]
__all__ += ["Attribute", "enable_onednn_fusion", "fuser", "isinstance"]
__all__ += ["onednn_fusion_enabled", "optimized_execution", "script_method"]
__all__ += ["set_fusion_strategy", "trace", "trace_module", "unused", "wait"]

_FORMAT = "pydevtensor.jit"
# What Module itself keeps, and save() writes in another way or not at all.
_OWN = {"training", "_parameters", "_buffers", "_modules", "_has_hooks", "_fuses"}
_OWN |= {"_non_persistent_buffers_set", "_scripted"}


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: list[tuple[Any, ...]] | dict[Any, Any] | None = None,
) -> Any:
    """obj itself, a function or a module, with a warning the first time.

    A module gets a method save(f), which calls torch.jit.save().

    optimize and example_inputs have no effect. TypeError for what cannot be called.

    >>> import warnings
    >>> with warnings.catch_warnings(action='ignore'):
    ...     net = torch.jit.script(nn.Linear(2, 1))
    >>> net
    Linear(in_features=2, out_features=1, bias=True)
    """
    _warn_of_compiling("torch.jit.script")
    return _with_save(obj)


def trace(func: Any, example_inputs: Any = None, **options: Any) -> Any:
    """func itself, a function or a module, with a warning the first time; see script().

    It is not run, so control flow that depends on the input stays right.

    example_inputs and other options have no effect. TypeError for what cannot be
    called.

    >>> import warnings
    >>> with warnings.catch_warnings(action='ignore'):
    ...     f = torch.jit.trace(torch.exp, torch.ones(2))
    >>> f is torch.exp
    True
    """
    _warn_of_compiling("torch.jit.trace")
    return _with_save(func)


def trace_module(mod: Any, inputs: dict[str, Any], **options: Any) -> Any:
    """The module mod itself, with a warning the first time; see trace().

    inputs and other options have no effect.

    >>> import warnings
    >>> with warnings.catch_warnings(action='ignore'):
    ...     net = torch.jit.trace_module(nn.ReLU(), {'forward': torch.ones(2)})
    >>> net
    ReLU()
    """
    return trace(mod, inputs, **options)


def freeze(
    mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True
) -> Any:
    """The module mod itself.

    preserved_attrs and optimize_numerics have no effect.

    >>> net = nn.ReLU().eval()
    >>> torch.jit.freeze(net) is net
    True
    """
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The module mod itself; other_methods has no effect.

    >>> net = nn.ReLU().eval()
    >>> torch.jit.optimize_for_inference(net) is net
    True
    """
    return mod


def ignore(drop: Any = False, **options: Any) -> Any:
    """A decorator that gives the function back, with or without arguments.

    drop and other options have no effect.

    >>> @torch.jit.ignore
    ... def f(x):
    ...     return x + 1
    >>> f(1)
    2
    """
    return drop if callable(drop) else lambda fn: fn


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that gives the function fn back.

    >>> torch.jit.export(len)([1, 2])
    2
    """
    return fn


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that gives the function fn back.

    >>> torch.jit.unused(len)([1, 2])
    2
    """
    return fn


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of the methods of a ScriptModule that gives the function fn back.

    >>> torch.jit.script_method(len)([1, 2])
    2
    """
    return fn


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call func(*args, **kwargs) now. Returns a torch.futures.Future of its result.

    wait() raises the exception that func raised.

    >>> torch.jit.fork(torch.add, torch.ones(2), 1).wait()
    tensor([2., 2.])
    """
    from pydevtensor.futures import Future

    made: Future[Any] = Future()
    try:
        made.set_result(func(*args, **kwargs))
    except Exception as error:
        made.set_exception(error)
    return made


def wait(future: Any) -> Any:
    """The value of a future, such as fork() gives; raises its error.

    >>> torch.jit.wait(torch.jit.fork(len, [1, 2]))
    2
    """
    return future.wait()


def annotate(the_type: Any, the_value: Any) -> Any:
    """the_value; the_type has no effect.

    >>> torch.jit.annotate(int, 3)
    3
    """
    return the_value


class Attribute(NamedTuple):
    """A value and its type, for the constructor of a ScriptModule.

    >>> torch.jit.Attribute(3, int).value
    3
    """

    value: Any
    type: Any


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether obj is of a type, whose items count too: List[int], Optional[Tensor].

    target_type: a type, one of typing, or a tuple of them. An empty container is of
    each type of items.

    >>> torch.jit.isinstance([1, 2], list[int])
    True
    >>> torch.jit.isinstance([1, 'a'], list[int])
    False
    """
    from typing import Union, get_args, get_origin

    if target_type is Any:
        return True
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, each) for each in target_type)
    origin, parts = get_origin(target_type), get_args(target_type)
    if origin is None:
        return builtins.isinstance(obj, target_type or type(None))
    if origin in (Union, types.UnionType):
        return any(isinstance(obj, each) for each in parts)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is dict:
        (keys, values), pairs = parts, obj.items()
        return all(
            isinstance(k, keys) and isinstance(v, values) for k, v in obj.items()
        )
    if origin is tuple and parts[1:] != (...,):
        pairs = zip(obj, parts, strict=False)
        return len(obj) == len(parts) and all(isinstance(a, b) for a, b in pairs)
    return all(isinstance(each, parts[0]) for each in obj)


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block, in which nothing differs; should_optimize has no effect.

    >>> with torch.jit.optimized_execution(True):
    ...     pass
    """
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block, in which nothing differs; name has no effect.

    >>> with torch.jit.fuser('fuser1'):
    ...     pass
    """
    yield


def set_fusion_strategy(strategy: Any) -> Any:
    """The strategy itself, which has no effect.

    >>> torch.jit.set_fusion_strategy([('STATIC', 2)])
    [('STATIC', 2)]
    """
    return strategy


_onednn = False


def enable_onednn_fusion(enabled: bool) -> None:
    """Set the answer of onednn_fusion_enabled(); enabled has no other effect.

    >>> torch.jit.enable_onednn_fusion(False)
    """
    global _onednn
    _onednn = enabled


def onednn_fusion_enabled() -> bool:
    """The answer that enable_onednn_fusion() has set; False at first.

    >>> torch.jit.onednn_fusion_enabled()
    False
    """
    return _onednn


is_scripting = _answer(__name__, "is_scripting", False)
is_tracing = _answer(__name__, "is_tracing", False)


def _with_save(value: Any) -> Any:
    from pydevtensor.nn import Module

    if builtins.isinstance(value, Module):
        object.__setattr__(value, "_scripted", save)  # for Module.__getattr__
    elif not callable(value):
        raise TypeError(
            f"a {type(value).__name__} was given; give a function or a module"
        )
    return value


# --- save and load


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Write m, a module of this package's layers, to be read by torch.jit.load().

    f is a path or a file object. PyTorch cannot read it. Raises RuntimeError for a
    module with a class of the program's own, with hooks, or with lazy parameters: save
    its state_dict() with torch.save() instead.

    _extra_files: a dict of names and contents, texts or bytes, that go with it.

    >>> net = nn.Sequential(nn.Linear(2, 1), nn.ReLU())
    >>> torch.jit.save(net, 'net.pt')
    >>> torch.jit.load('net.pt')
    Sequential(
      (0): Linear(in_features=2, out_features=1, bias=True)
      (1): ReLU()
    )
    """
    from pydevtensor.nn import Module

    if not builtins.isinstance(m, Module):
        raise RuntimeError(
            f"jit.save(): a {type(m).__name__} was given; a function cannot be in a "
            "file, keep it in the program"
        )
    record = _record(m, _layers(), {}, "the module")
    archive = {"format": _FORMAT, "version": 1, "module": record}
    if _extra_files:
        archive["files"] = {
            name: data.encode() if builtins.isinstance(data, str) else bytes(data)
            for name, data in _extra_files.items()
        }
    _serialization._save(archive, f, False)


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> Any:
    """Read a module that torch.jit.save() of this package wrote.

    Raises RuntimeError for a TorchScript program of PyTorch's: save its state_dict()
    there, and load that into a module built here; UnpicklingError for a file that does
    not describe layers.

    _extra_files: a dict; the contents, as bytes, of its names that are in the file
    become its values. f: a path or a file object. map_location: the device of the
    parameters, or what else torch.load() takes.

    >>> torch.jit.save(nn.Linear(2, 1), 'net.pt')
    >>> torch.jit.load('net.pt', map_location='cpu')
    Linear(in_features=2, out_features=1, bias=True)
    """
    found = _serialization.load(f, map_location)
    if not builtins.isinstance(found, dict) or found.get("format") != _FORMAT:
        raise RuntimeError(
            "jit.load(): the file holds a checkpoint and no module; read it with "
            "torch.load() and give it to load_state_dict()"
        )
    if found.get("version") != 1:
        raise RuntimeError(
            f"jit.load(): the file has version {found.get('version')!r}, and only 1 "
            "can be read; update pydevtensor"
        )
    files = found.get("files", {})
    for name in _extra_files or ():
        if name in files:
            _extra_files[name] = files[name]
    return _with_save(_rebuilt(found.get("module"), _layers(), {}))


def _layers() -> dict[str, type[Any]]:
    """The layers of pydevtensor.nn by name."""
    from pydevtensor import nn

    return {
        name: kind
        for name, kind in vars(nn).items()
        if builtins.isinstance(kind, type)
        and issubclass(kind, nn.Module)
        and kind.__module__.startswith(("pydevtensor.nn.", "torch.nn."))
    }


def _record(
    module: Any, layers: dict[str, type[Any]], known: dict[Any, Any], path: str
) -> dict[Any, Any]:
    """The records of modules in a file, one for each module."""
    from pydevtensor.nn import functional
    from pydevtensor.nn.modules._hooks import HOOKS
    from pydevtensor.nn.parameter import is_lazy

    if id(module) in known:
        return known[id(module)]
    kind = type(module)
    if layers.get(kind.__name__) is not kind:
        raise RuntimeError(
            f"jit.save(): {path} is a {kind.__qualname__}, which is not a layer of "
            "pydevtensor.nn, and a file cannot hold its code; save its state_dict() "
            f"with torch.save(), and load that into a new {kind.__qualname__}"
        )
    if any(vars(module)[name] for name in HOOKS):
        raise RuntimeError(
            f"jit.save(): {path} has hooks, and a file cannot hold their code; remove "
            "them first, or save its state_dict() with torch.save()"
        )
    values = vars(module)
    if any(is_lazy(p) for p in module._parameters.values() if p is not None):
        raise RuntimeError(
            f"jit.save(): {path} has lazy parameters without a shape; call the module "
            "once first"
        )
    options: dict[str, Any] = {}
    functions: dict[str, str] = {}
    for name, value in values.items():
        if name in _OWN or name.endswith("_hooks"):
            continue
        if builtins.isinstance(value, types.FunctionType | types.BuiltinFunctionType):
            function: Any = value
            if getattr(functional, function.__name__, None) is not value:
                raise RuntimeError(
                    f"jit.save(): {path} has a function as {name}, and a file cannot "
                    "hold its code; save its state_dict() with torch.save()"
                )
            functions[name] = function.__name__
        else:
            options[name] = value
    record = known[id(module)] = {
        "class": kind.__name__,
        "training": module.training,
        "options": options,
        "functions": functions,
        "parameters": dict(module._parameters),
        "buffers": dict(module._buffers),
        "not_persistent": sorted(module._non_persistent_buffers_set),
        "modules": {},
    }
    for name, child in module._modules.items():
        part = None
        if child is not None:
            part = _record(child, layers, known, f"{path}.{name}")
        record["modules"][name] = part
    return record


def _damaged(what: str) -> Exception:
    from pickle import UnpicklingError

    return UnpicklingError(
        f"jit.load(): the file does not describe a module: {what}; it is damaged, or "
        "not written by torch.jit.save()"
    )


def _field(record: dict[Any, Any], name: str, kind: type[Any]) -> Any:
    value = record.get(name)
    if type(value) is not kind:
        raise _damaged(f"{name} is a {type(value).__name__}, not a {kind.__name__}")
    if builtins.isinstance(value, dict) and not all(type(key) is str for key in value):
        raise _damaged(f"{name} has keys that are not strings")
    return value


def _rebuilt(record: Any, layers: dict[str, type[Any]], known: dict[Any, Any]) -> Any:
    """The module of a record, made without its constructor."""
    from pydevtensor.nn import Module, functional
    from pydevtensor.nn.parameter import Parameter

    if type(record) is not dict:
        raise _damaged(f"a module is a {type(record).__name__}")
    if id(record) in known:
        if known[id(record)] is None:
            raise _damaged("a module contains itself")
        return known[id(record)]
    known[id(record)] = None
    kind: Any = layers.get(_field(record, "class", str))
    if kind is None:
        raise _damaged(f"it names {record['class'][:80]!r}, which is not a layer")
    module: Any = kind.__new__(kind)
    Module.__init__(module)
    values = vars(module)
    values["training"] = _field(record, "training", bool)
    options = _field(record, "options", dict)
    for name, value in _field(record, "functions", dict).items():
        if type(value) is not str or value not in dir(functional):
            raise _damaged(f"{name} is not a function of nn.functional")
        options = {**options, name: getattr(functional, value)}
    for name, value in options.items():
        hidden = getattr(kind, name, None)
        if name in values or callable(hidden) or builtins.isinstance(hidden, property):
            raise _damaged(f"{name[:80]!r} is not an option of {kind.__name__}")
        values[name] = value
    held: tuple[Any, ...] = (
        ("parameters", Parameter),
        ("buffers", _C.Tensor),
        ("modules", dict),
    )
    for field, expected in held:
        for name, value in _field(record, field, dict).items():
            if value is not None and not builtins.isinstance(value, expected):
                raise _damaged(f"{name[:80]!r} of {field} is a {type(value).__name__}")
            if "." in name or name in values or callable(getattr(kind, name, None)):
                raise _damaged(f"{name[:80]!r} is not a name of a part")
            if field == "modules" and value is not None:
                value = _rebuilt(value, layers, known)
            getattr(module, f"_{field}")[name] = value
    for name in _field(record, "not_persistent", list):
        if name not in module._buffers:
            raise _damaged("a buffer is missing")
        module._non_persistent_buffers_set.add(name)
    known[id(record)] = module
    return module


_publish(__name__, later={"ScriptModule": "_script_module"})
