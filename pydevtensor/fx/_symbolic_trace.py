"""Tracing: a program's forward() runs with Proxies, which record it."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pydevtensor
from pydevtensor import Tensor, linalg, nn, special
from pydevtensor.fx.graph import Graph
from pydevtensor.fx.graph_module import GraphModule
from pydevtensor.fx.proxy import Proxy, TracerBase, spread
from pydevtensor.nn import functional

__all__ = ["Tracer", "symbolic_trace", "wrap"]

# Functions that wrap() names: the globals of a module, and the name in them.
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
_OWN = ("torch.", "pydevtensor.")
_SPACES: tuple[Any, ...] = (pydevtensor, functional, linalg, special)


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Let traces record the calls of a function, and not look into it.

    fn_or_name: a function of the module that calls wrap(), or its name, also of a
    builtin one such as 'len'. Also a decorator. RuntimeError for other values,
    NotImplementedError inside of a function.

    >>> torch.fx.wrap('len')
    'len'
    """
    if not isinstance(fn_or_name, str) and not callable(fn_or_name):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string "
            "name"
        )
    frame = inspect.currentframe()
    above = None if frame is None else frame.f_back
    if above is None or above.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    _wrapped[id(above.f_globals), name] = above.f_globals
    return fn_or_name


def _assert_is_none(value: Any, message: str) -> None:
    if value is not None:
        raise AssertionError(message)


def _proxy_in(values: Any) -> Proxy | None:
    for value in values:
        if isinstance(value, Proxy):
            return value
        if isinstance(value, tuple | list):
            found = _proxy_in(value)
        elif isinstance(value, dict):
            found = _proxy_in(value.values())
        else:
            continue
        if found is not None:
            return found
    return None


def _recording(function: Any) -> Any:
    """The function, which records a call with a Proxy instead of running."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = _proxy_in((*args, *kwargs.values()))
        if proxy is None:
            return function(*args, **kwargs)
        args = spread(function, args)
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    return call


_known: dict[int, tuple[Any, Any]] = {}


def _functions() -> dict[int, tuple[Any, Any]]:
    """By identity, the package's functions, and those that record them."""
    if _known:
        return _known
    found = _known
    for space in _SPACES:
        for name in dir(space):
            value = vars(space).get(name)
            if name[0] == "_" and name != "_assert":
                continue
            if callable(value) and not isinstance(value, type):
                found[id(value)] = value, _recording(value)
    for name, value in vars(math).items():
        if callable(value) and name[0] != "_":
            found[id(value)] = value, _recording(value)
    return found


def _without_stars(function: Any) -> Any:
    """The function with all parameters positional, those with stars last: a Proxy
    stands for all that is given for one of these."""
    code = getattr(function, "__code__", None)
    if code is None:
        return function
    flags = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    if not flags and not code.co_kwonlyargcount:
        return function
    stars = bin(flags).count("1")
    plain = code.replace(
        co_argcount=code.co_argcount + code.co_kwonlyargcount + stars,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~flags,
    )
    return types.FunctionType(
        plain,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def _read_without_tracing(module: Any) -> None:
    """Let nn.Module, and all classes of modules, read attributes as before."""
    del module.__getattr__
    classes = [module]
    for kind in classes:
        kind._read_quickly()
        classes += kind.__subclasses__()


class _Patches:
    """Values of dicts that are replaced while tracing, and restored after it."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []
        self._seen: set[int] = set()

    def record(self, names: dict[str, Any]) -> None:
        """Let the functions of the package that a dict has record their calls."""
        if id(names) in self._seen:
            return
        self._seen.add(id(names))
        known = _functions()
        for name, value in [*names.items()]:
            if (pair := known.get(id(value))) and pair[0] is value:
                self.set(names, name, pair[1])

    def set(self, names: dict[str, Any], name: str, value: Any) -> None:
        self._before.append((names, name, names.get(name, _Patches)))
        names[name] = value

    def undo(self) -> None:
        for names, name, value in reversed(self._before):
            if value is _Patches:
                del names[name]
            else:
                names[name] = value


class PHBase:
    """The type of PH, which stands for a value that is not known, in concrete_args."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class Tracer(TracerBase):
    """Makes the Graph of a module or a function.

    autowrap_modules: modules whose functions are recorded, beside math and this
    package's. autowrap_functions: functions that are recorded where forward() names
    them. param_shapes_constant: has no effect. Override is_leaf_module() to say which
    modules stay calls.

    >>> graph = torch.fx.Tracer().trace(lambda x: torch.relu(x) + 1)
    >>> [node.name for node in graph.nodes]
    ['x', 'relu', 'add', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[Any, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._modules = autowrap_modules
        self._own = {id(f): _recording(f) for f in autowrap_functions}
        self._patches = _Patches()
        self._constants: dict[int, str] = {}

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether the module m stays one call: those of nn, but Sequential.

        module_qualified_name: its path.
        """
        home = type(m).__module__
        ours = home.startswith(("pydevtensor.nn", "torch.nn"))
        return ours and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """The path of mod in the root; NameError where it has none."""
        for path, each in self.root.named_modules():
            if each is mod:
                return path
        raise NameError(f"module {mod} is not installed as a submodule of the root")

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """The result of a call of the module m while it is traced.

        forward: runs it. args, kwargs: its arguments.
        """
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        self._look_into(type(m).forward)
        return forward(*args, **kwargs)

    def create_arg(self, a: Any) -> Any:
        """The argument of a node for a value; Tensors become attributes of the root.

        a: the value.
        """
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._path_of(a), (), {})
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _path_of(self, tensor: Any) -> str:
        pairs = (*self.root.named_parameters(), *self.root.named_buffers())
        for path, value in pairs:
            if value is tensor:
                return path
        if id(tensor) not in self._constants:
            name = next(
                n
                for i in range(len(self._constants) + 1000)
                if not hasattr(self.root, n := f"_tensor_constant{i}")
            )
            setattr(self.root, name, tensor)
            self._constants[id(tensor)] = name
        return self._constants[id(tensor)]

    def _look_into(self, function: Any) -> None:
        names = getattr(inspect.unwrap(function), "__globals__", None)
        if names is not None:
            self._patches.record(names)
            for name, value in [*names.items()]:
                if id(value) in self._own:
                    self._patches.set(names, name, self._own[id(value)])

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The Graph of root, a module or a function.

        concrete_args: values of parameters, by name, which the trace takes as they are,
        but for those that are PH, also in dicts, lists and tuples. The graph checks
        that it is called with them: AssertionError.
        """
        if isinstance(root, nn.Module):
            self.root, function = root, type(root).forward
            start: list[Any] = [root]
        else:
            self.root, function, start = nn.Module(), root, []
        self.graph = Graph()
        inputs = self._inputs(function, bool(start), concrete_args or {})
        function = _without_stars(function)
        self._patches, self._constants = _Patches(), {}
        with self._patched():
            self._look_into(function)
            result = function(*start, *inputs)
            self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _inputs(
        self, function: Any, is_method: bool, concrete: dict[str, Any]
    ) -> list[Any]:
        """A value for each parameter, in the order of _without_stars()."""
        found: dict[int, list[Any]] = {0: [], 1: [], 2: []}
        parameters = [*inspect.signature(function).parameters.values()][is_method:]
        for p in parameters:
            stars = "*" if p.kind is p.VAR_POSITIONAL else ""
            stars = "**" if p.kind is p.VAR_KEYWORD else stars
            default = () if p.default is p.empty else (p.default,)
            kind = None if p.annotation is p.empty else p.annotation
            if kind == "Any" and function.__module__.startswith(_OWN):
                kind = None  # PyTorch's own functions say nothing
            name = stars + p.name
            if p.name in concrete:
                name, kind = p.name + "_1", None
            value = self.create_proxy("placeholder", name, default, {}, None, kind)
            if p.name in concrete:
                value = self._known(p.name, value, concrete[p.name])
            place = 2 if stars else int(p.kind is p.KEYWORD_ONLY)
            found[place].append(value)
        return [*found[0], *found[1], *found[2]]

    def _known(self, name: str, given: Proxy, value: Any) -> Any:
        """The concrete value of a parameter, with Proxies in the places of PH."""
        if isinstance(value, PHBase):
            return given
        if isinstance(value, dict):
            return {k: self._known(name, given[k], v) for k, v in value.items()}
        if type(value) in (list, tuple):
            return type(value)(
                self._known(name, given[i], v) for i, v in enumerate(value)
            )
        self._assert_equal(name, given, value)
        return value

    def _assert_equal(self, name: str, given: Proxy, value: Any) -> None:
        """Record that the graph is for this value of a parameter."""
        text = (
            f"{name} has been specialized to have value {value} but got another value"
        )
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (given, text), {})
        elif isinstance(value, (bool, int, float, str, pydevtensor.dtype)):
            same = self.create_proxy("call_function", operator.eq, (given, value), {})
            asserts = pydevtensor._assert
            self.create_proxy("call_function", asserts, (same, text), {})
        else:
            warnings.warn(
                f"the graph is for the value of {name} that was given, which it cannot "
                "check; call it with that one alone",
                stacklevel=5,
            )

    @contextmanager
    def _patched(self) -> Iterator[None]:
        as_torch = sys.modules.get("torch", pydevtensor)  # of install_as_torch()
        for module in (*_SPACES, as_torch, *self._modules):
            self._patches.record(vars(module))
        for (_, name), names in _wrapped.items():
            function = names.get(name, getattr(builtins, name, None))
            self._patches.set(names, name, _recording(function))
        classes = {c for m in self.root.modules() for c in type(m).__mro__}
        calls = {c: vars(c)["__call__"] for c in classes if "__call__" in vars(c)}
        read = nn.Module.__getattr__
        traced_already = "__getattr__" in vars(nn.Module)
        proxies: dict[str, Any] = {}

        def parameter(module: Any, name: str) -> Any:
            value = read(module, name)
            if isinstance(value, nn.Parameter):
                for path, each in self.root.named_parameters():
                    if each is value and path not in proxies:
                        proxies[path] = self.create_proxy("get_attr", path, (), {})
                    if each is value:
                        return proxies[path]
            return value

        patched: Any = nn.Module
        patched.__getattr__ = parameter
        for kind, call in calls.items():
            setattr(kind, "__call__", self._traced(call))  # noqa: B010
        try:
            yield
        finally:
            if traced_already:
                patched.__getattr__ = read
            else:
                _read_without_tracing(patched)
            for kind, call in calls.items():
                setattr(kind, "__call__", call)  # noqa: B010
            self._patches.undo()

    def _traced(self, call: Any) -> Any:
        """__call__() of modules, while they are traced."""

        def traced(module: Any, *args: Any, **kwargs: Any) -> Any:
            forward = functools.partial(call, module)
            if _proxy_in((*args, *kwargs.values())) is None:
                return forward(*args, **kwargs)
            return self.call_module(module, forward, args, kwargs)

        return traced


def symbolic_trace(
    root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """A GraphModule of what root does with its arguments, whatever they are.

    root: a module or a function. concrete_args: values of parameters, by name, that
    the trace takes as they are, and for which alone the result is, but for those that
    are PH, also in dicts, lists and tuples; such a parameter's name ends in _1 then.
    TraceError where it needs a value that is not known, such as the condition of an if.

    >>> net = torch.fx.symbolic_trace(lambda x: torch.relu(x) * 2)
    >>> print(net.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        mul = relu * 2;  relu = None
        return mul
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
