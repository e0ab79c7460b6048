"""torch.overrides: functions that a mode, or the class of an argument, takes over.

The extension calls this module before a call, while there is a mode or an object of a
subclass of Tensor, and after a call that has failed with a TypeError.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

_SPACES = ("", "nn.functional", "linalg", "fft", "special", "signal.windows")
# Operators whose function has another name than their row.
_OPERATORS = {
    "pow": "__pow__",
    "floor_divide": "__floordiv__",
    "bitwise_and": "__and__",
    "bitwise_or": "__or__",
    "bitwise_xor": "__xor__",
    "bitwise_left_shift": "__lshift__",
    "bitwise_right_shift": "__rshift__",
    "bitwise_not": "__invert__",
    "eq": "__eq__",
    "ne": "__ne__",
    "pow_": "__ipow__",
    "floor_divide_": "__ifloordiv__",
    "bitwise_and_": "__iand__",
    "bitwise_or_": "__ior__",
    "bitwise_xor_": "__ixor__",
    "bitwise_left_shift_": "__ilshift__",
    "bitwise_right_shift_": "__irshift__",
}
_COMMUTE = {"add", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"}
_REFLECTED = {
    "sub": "__rsub__",
    "div": "__rtruediv__",
    "floor_divide": "__rfloordiv__",
    "remainder": "__rmod__",
    "pow": "__rpow__",
    "matmul": "__rmatmul__",
    "bitwise_left_shift": "__rlshift__",
    "bitwise_right_shift": "__rrshift__",
}
_IGNORED = "__torch_function__"


class _Thread(threading.local):
    def __init__(self) -> None:
        self.modes: list[TorchFunctionMode] = []


_thread = _Thread()


# --- who takes over -------------------------------------------------------------------


def _overrides(value: Any) -> bool:
    kind = type(value)
    found = getattr(kind, _IGNORED, None)
    return (
        kind is not _C.Tensor
        and found is not None
        and found is not _C._disabled_torch_function_impl
    )


def _relevant(args: Iterable[Any]) -> Iterator[Any]:
    for value in args:
        if isinstance(value, (tuple, list)) and not _overrides(value):
            yield from value
        else:
            yield value


def _overloaded(args: Iterable[Any]) -> list[Any]:
    """One argument of each class that takes over: subclasses before their bases."""
    found: list[Any] = []
    for value in args:
        if not _overrides(value) or any(type(f) is type(value) for f in found):
            continue
        places = [i for i, f in enumerate(found) if isinstance(value, type(f))]
        found.insert(places[0] if places else len(found), value)
    return found


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode, or the class of one of the arguments, takes a function over.

    relevant_args: the arguments. A subclass of Tensor without a __torch_function__ of
    its own does not count.

    >>> torch.overrides.has_torch_function((torch.ones(2), 3))
    False
    """
    return bool(_thread.modes) or any(
        _overrides(value) and not _is_default(type(value)) for value in relevant_args
    )


def _is_default(kind: type) -> bool:
    home = next((c for c in kind.__mro__ if _IGNORED in vars(c)), None)
    return home is _C.Tensor


def has_torch_function_unary(value: Any) -> bool:
    """has_torch_function() of one value.

    >>> torch.overrides.has_torch_function_unary(torch.ones(2))
    False
    """
    return has_torch_function((value,))


def has_torch_function_variadic(*args: Any) -> bool:
    """has_torch_function() of args, one after another.

    >>> torch.overrides.has_torch_function_variadic(torch.ones(2), 3)
    False
    """
    return has_torch_function(args)


def is_tensor_like(inp: Any) -> bool:
    """Whether inp is a Tensor, or of a class with __torch_function__.

    >>> torch.overrides.is_tensor_like(3)
    False
    """
    return type(inp) is _C.Tensor or hasattr(inp, _IGNORED)


# --- modes ----------------------------------------------------------------------------


class TorchFunctionMode:
    """A block in which __torch_function__ is called for each function of this library.

    It gets the function, the classes of arguments that have a __torch_function__, the
    arguments, and those by name, and returns the result. Within it, the mode is not
    active. It takes over functions, also those that functions written in Python call,
    and reads and writes of a Tensor's attributes, as `Tensor.shape.__get__`.

    >>> class Count(torch.overrides.TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count() as count:
    ...     y = torch.ones(2) + 1
    >>> count.calls
    2
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__}.__torch_function__: define it"
        )

    def __enter__(self) -> Any:
        _push(self)
        return self

    def __exit__(self, *unused: object) -> None:
        _pop()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """A mode of args and kwargs, for `with`.

        >>> type(torch.overrides.BaseTorchFunctionMode.push()).__name__
        'BaseTorchFunctionMode'
        """
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls each function as it is.

    >>> with torch.overrides.BaseTorchFunctionMode():
    ...     torch.relu(torch.tensor(-1.0))
    tensor(0.)
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _push(mode: TorchFunctionMode) -> None:
    _thread.modes.append(mode)
    _C._count_mode(1)


def _pop() -> TorchFunctionMode:
    _C._count_mode(-1)
    return _thread.modes.pop()


@contextmanager
def _popped() -> Iterator[TorchFunctionMode]:
    mode = _pop()
    try:
        yield mode
    finally:
        _push(mode)


# --- calls ----------------------------------------------------------------------------


def handle_torch_function(
    public_api: Callable[..., Any],
    relevant_args: Iterable[Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """The result of public_api(*args, **kwargs) by whoever takes it over.

    The innermost mode is asked first, then the classes of relevant_args. TypeError
    where all return NotImplemented.

    >>> class Ten:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return 10
    >>> torch.add(torch.ones(2), Ten())
    10
    """
    overloaded = _overloaded(relevant_args)
    types = tuple(type(value) for value in overloaded)
    if _thread.modes:
        with _popped() as mode:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in overloaded:
        result = value.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = resolve_name(public_api) or public_api
    asked = ", ".join(kind.__name__ for kind in types)
    raise TypeError(
        f"{name}: the __torch_function__ of {asked} gave NotImplemented; let one of "
        "them handle the function, or give Tensors"
    )


def _default(
    cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """__torch_function__ of Tensor: results are of the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with _C.DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        if func in get_default_nowrap_functions():
            return result
        return _converted(result, cls)


def _converted(result: Any, cls: type) -> Any:
    if cls is _C.Tensor:
        return result
    if isinstance(result, _C.Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if type(result) in (tuple, list) or hasattr(result, "n_sequence_fields"):
        return type(result)([_converted(each, cls) for each in result])
    return result


def _take_over(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    relevant = [*_relevant(args), *_relevant(kwargs.values())]
    return handle_torch_function(function, relevant, *args, **kwargs)


def _call_entry(entry: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function = _entries().get(entry)
    if function is None:  # a private one
        return NotImplemented
    return _take_over(function, args, kwargs)


def _read_attribute(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _take_over(vars(_C.Tensor)[name].__get__, args, kwargs)


def _write_attribute(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _take_over(vars(_C.Tensor)[name].__set__, args, kwargs)


def _call_operator(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if name == "__iter__":
        return iter(_take_over(_C.Tensor.unbind, (*args, 0), kwargs))
    if len(args) == 2 and not isinstance(args[0], _C.Tensor):
        if name not in _COMMUTE:
            function = getattr(_C.Tensor, _REFLECTED[name])
            return _take_over(function, args[::-1], kwargs)
        args = args[::-1]
    function = getattr(_C.Tensor, _OPERATORS.get(name, name))
    return _take_over(function, args, kwargs)


def _call_method(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function = getattr(_C.Tensor, name.rpartition(".")[2], None)
    return NotImplemented if function is None else _take_over(function, args, kwargs)


def _call_function(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for space in _SPACES[1:]:  # linalg_det: before torch.det
        prefix = space.replace(".", "_") + "_"
        if name.startswith(prefix):
            function = vars(_space(space)).get(name.removeprefix(prefix))
            if function is not None:
                return _take_over(function, args, kwargs)
    for space in _SPACES:
        function = getattr(_space(space), name.rpartition(".")[2], None)
        if function is not None and (space or "." not in name):
            return _take_over(function, args, kwargs)
    return NotImplemented


# --- names ----------------------------------------------------------------------------


def _space(name: str) -> Any:
    import importlib

    return importlib.import_module(f"pydevtensor.{name}".rstrip("."))


@functools.cache
def _entries() -> dict[int, Any]:
    """Functions and methods by what the extension calls them."""
    found: dict[int, Any] = {}
    tables = [vars(_C.Tensor), *(vars(_space(s)) for s in _SPACES)]
    for table in tables:
        for name, function in table.items():
            entry = None if name[0] == "_" else _C._entry_of(function)
            if entry is not None:
                found.setdefault(entry, function)
    return found


@functools.cache
def _named() -> dict[Any, str]:
    names: dict[Any, str] = {}
    for space in _SPACES:
        prefix = f"torch.{space}.".replace("..", ".")
        for name, value in vars(_space(space)).items():
            if name[0] != "_" and callable(value) and not isinstance(value, type):
                names.setdefault(value, prefix + name)
    for name in dir(_C.Tensor):
        value = getattr(_C.Tensor, name)
        if hasattr(value, "__get__") and not callable(value):
            names[value.__get__] = f"torch.Tensor.{name}.__get__"
            names[value.__set__] = f"torch.Tensor.{name}.__set__"
        elif callable(value):
            names.setdefault(value, f"torch.Tensor.{name}")
    return names


def resolve_name(f: Any) -> str | None:
    """The public name of a function; None for what is not one of this library.

    f: a function, a method of Tensor, or `Tensor.shape.__get__`.

    >>> torch.overrides.resolve_name(torch.Tensor.add)
    'torch.Tensor.add'
    """
    try:
        return _named().get(f)
    except TypeError:  # it has no hash
        return None


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions that modes and classes may take over, by module and class.

    >>> torch.add in torch.overrides.get_overridable_functions()[torch]
    True
    """
    found: dict[Any, list[Any]] = {}
    for owner in (*(_space(s) for s in _SPACES), _C.Tensor):
        for name, value in vars(owner).items():
            if name[0] != "_" and _C._entry_of(value) in _entries():
                found.setdefault(owner, []).append(value)
    as_torch = sys.modules.get("torch")  # of install_as_torch()
    if getattr(as_torch, "Tensor", None) is _C.Tensor:
        found[as_torch] = found[_space("")]
    return found


def get_ignored_functions() -> set[Any]:
    """Public functions that nobody can take over: those that are written in Python.

    >>> torch.add in torch.overrides.get_ignored_functions()
    False
    """
    return {
        value
        for value, name in _named().items()
        if not name.startswith("torch.Tensor.")
        and _C._entry_of(value) not in _entries()
    }


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results Tensor.__torch_function__ gives as they are.

    >>> torch.Tensor.grad.__get__ in torch.overrides.get_default_nowrap_functions()
    True
    """
    return {_C.Tensor.grad.__get__}


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether func is a method of Tensor, or the getter of an attribute.

    >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
    True
    """
    return (resolve_name(func) or "").startswith("torch.Tensor.")


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Any:
    """Decorate a function of a program, so that modes and classes take it over too.

    dispatcher: gives the relevant arguments of all that the function is called with.

    >>> @torch.overrides.wrap_torch_function(lambda a: (a,))
    ... def double(a):
    ...     return a + a
    >>> double(torch.ones(1))
    tensor([2.])
    """

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = [*dispatcher(*args, **kwargs)]
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


# --- subclasses -----------------------------------------------------------------------


def _property(attribute: Any) -> property:
    """An attribute of Tensor that the class takes over."""

    def read(self: Any) -> Any:
        if _C._overrides_are_paused():
            return attribute.__get__(self)
        return handle_torch_function(attribute.__get__, (self,), self)

    def write(self: Any, value: Any) -> None:
        if _C._overrides_are_paused():
            attribute.__set__(self, value)
        else:
            handle_torch_function(attribute.__set__, (self,), self, value)

    return property(read, write, None, attribute.__doc__)


def _prepare(cls: type) -> bool:
    """Before the first object of a subclass: its attributes are taken over, too."""
    getsets = type(vars(_C.Tensor)["grad"])
    for name, attribute in vars(_C.Tensor).items():
        if type(attribute) is not getsets or name[:2] == "__":
            continue
        if getattr(cls, name, None) is attribute:
            setattr(cls, name, _property(attribute))
    return True


_publish(__name__)
