"""Proxies: values that record the operations on them."""

from __future__ import annotations

import builtins
import enum
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import pydevtensor as torch
from pydevtensor._names import publish as _publish
from pydevtensor.fx.graph import Graph
from pydevtensor.fx.immutable_collections import immutable_dict, immutable_list
from pydevtensor.fx.node import Node

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "TracerBase"]

_EINSUM = torch.einsum  # which is another function while a trace runs
_PLAIN: tuple[Any, ...] = (
    str,
    int,
    float,
    bool,
    complex,
    type(None),
    type(...),
    range,
    torch.dtype,
)
_PLAIN += (
    torch.device,
    torch.Size,
    torch.layout,
    torch.memory_format,
    enum.Enum,
    slice,
    bytes,
)


class TraceError(ValueError):
    """A Proxy was used as a value is, such as the condition of an if.

    >>> try:
    ...     torch.fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    ... except torch.fx.proxy.TraceError as error:
    ...     print(str(error)[:46])
    symbolically traced variables cannot be used a
    """


class TracerBase:
    """Makes nodes and Proxies for them.

    >>> issubclass(torch.fx.Tracer, torch.fx.proxy.TracerBase)
    True
    """

    graph: Graph

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node of an op, which kind is, with what Graph.create_node() takes.

        target, args, kwargs, name, type_expr: those of the node.
        """
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """The Proxy for a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Any = None,
    ) -> Any:
        """Add a node, whose arguments may have Proxies, and return its Proxy.

        kind, target, args, kwargs, name, type_expr: those of create_node().
        proxy_factory_fn: makes the Proxy in place of proxy().
        """
        given, named = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        node = self.create_node(kind, target, given, named, name, type_expr)
        return self.proxy(node) if not proxy_factory_fn else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Any:
        """The argument of a node for a value, in which Proxies become Nodes.

        a: the value. NotImplementedError for one of a type that code cannot show.
        """
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, Node):
            return a
        if isinstance(a, tuple) and not isinstance(a, torch.Size):
            made = [self.create_arg(each) for each in a]
            return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
        if isinstance(a, list):
            return immutable_list(self.create_arg(each) for each in a)
        if isinstance(a, dict):
            for key in a:
                if isinstance(self.create_arg(key), Node):
                    raise RuntimeError("a Node cannot be a key of a dict argument")
            return immutable_dict((k, self.create_arg(v)) for k, v in a.items())
        if isinstance(a, slice):
            return slice(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        functions = (types.FunctionType, types.BuiltinFunctionType, type)
        if isinstance(a, (*_PLAIN, *functions, torch.Tensor)):
            return a
        raise NotImplementedError(
            f"argument of type: {type(a)}; give Tensors, numbers, texts, and lists, "
            "tuples and dicts of them"
        )

    def to_bool(self, obj: Proxy) -> bool:
        """The answer to `if obj`: TraceError."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow; "
            "give the value with concrete_args, or mark the function with fx.wrap()"
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The items of obj, for `a, b = obj`; TraceError for a loop over it."""
        count = _targets_of_unpacking()
        if count is None:
            raise TraceError(
                "Proxy object cannot be iterated; its length is not known while tracing"
            )
        whole: Any = obj
        return builtins.iter([whole[i] for i in range(count)])

    def keys(self, obj: Proxy) -> Any:
        """The answer to `**obj`: a call of its method keys()."""
        return Attribute(obj, "keys")()


def _targets_of_unpacking() -> int | None:
    """How many targets the line `a, b = proxy` has, that called __iter__()."""
    import dis
    import sys

    frame: Any = sys._getframe(3)
    for step in dis.get_instructions(frame.f_code):
        if step.offset == frame.f_lasti:
            return step.arg if step.opname == "UNPACK_SEQUENCE" else None
    return None


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a graph: for Proxy(node) of a graph that exists.

    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder('x'))
    >>> (x + 1).node.target
    <built-in function add>
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


def _record(function: Any, reflected: bool = False) -> Callable[..., Any]:
    """A method of Proxy that adds a call of an operator."""

    def call(self: Any, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    return call


class Proxy:
    """A value that records the operations on it as nodes of a graph.

    node: the Node whose value it stands for. tracer: what makes nodes.

    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder('x'))
    >>> y = (x * 2).relu()
    >>> [(node.op, node.name) for node in graph.nodes]
    [('placeholder', 'x'), ('call_function', 'mul'), ('call_method', 'relu')]
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Record a function, where no symbolic_trace() runs that does it itself."""
        from pydevtensor.overrides import is_tensor_method_or_property

        kwargs = kwargs or {}
        tracer = next(_proxies((args, kwargs))).tracer
        args = spread(func, args)
        kind, target = "call_function", func
        if is_tensor_method_or_property(func):
            kind, target = "call_method", func.__name__
        return tracer.create_proxy(kind, target, args, kwargs)

    def __getattr__(self, k: str) -> Attribute:
        if k[:2] == "__":  # what Python asks of any object
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy(
            "call_method", "__call__", (self, *args), kwargs
        )

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default; to record the "
            "call, call torch.fx.wrap('len') at module scope"
        )

    def __contains__(self, item: Any) -> bool:
        raise TraceError("'in' asks for a bool, which is not known while tracing")

    __add__ = _record(operator.add)
    __sub__ = _record(operator.sub)
    __mul__ = _record(operator.mul)
    __truediv__ = _record(operator.truediv)
    __floordiv__ = _record(operator.floordiv)
    __mod__ = _record(operator.mod)
    __pow__ = _record(operator.pow)
    __matmul__ = _record(operator.matmul)
    __lshift__ = _record(operator.lshift)
    __rshift__ = _record(operator.rshift)
    __and__ = _record(operator.and_)
    __or__ = _record(operator.or_)
    __xor__ = _record(operator.xor)
    __radd__ = _record(operator.add, True)
    __rsub__ = _record(operator.sub, True)
    __rmul__ = _record(operator.mul, True)
    __rtruediv__ = _record(operator.truediv, True)
    __rfloordiv__ = _record(operator.floordiv, True)
    __rmod__ = _record(operator.mod, True)
    __rpow__ = _record(operator.pow, True)
    __rmatmul__ = _record(operator.matmul, True)
    __rlshift__ = _record(operator.lshift, True)
    __rrshift__ = _record(operator.rshift, True)
    __rand__ = _record(operator.and_, True)
    __ror__ = _record(operator.or_, True)
    __rxor__ = _record(operator.xor, True)
    __getitem__ = _record(operator.getitem)
    __setitem__ = _record(operator.setitem)
    __lt__ = _record(operator.lt)
    __le__ = _record(operator.le)
    __gt__ = _record(operator.gt)
    __ge__ = _record(operator.ge)
    __ne__ = _record(operator.ne)
    __neg__ = _record(operator.neg)
    __pos__ = _record(operator.pos)
    __invert__ = _record(operator.invert)
    __abs__ = _record(abs)
    __eq__ = _record(operator.eq)
    __hash__ = object.__hash__  # not None, which a class with __eq__() gets

    def keys(self) -> Any:
        """A call of the method keys()."""
        return self.tracer.keys(self)


def spread(function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments, with einsum's operands in a list one by one, as PyTorch records."""
    if function is _EINSUM and len(args) == 2 and isinstance(args[1], tuple | list):
        return (args[0], *args[1])
    return args


def _proxies(value: Any) -> Iterator[Proxy]:
    if isinstance(value, Proxy):
        yield value
    elif isinstance(value, dict):
        yield from _proxies(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _proxies(each)


class Attribute(Proxy):
    """An attribute of a Proxy: a method if it is called, else a value.

    root: the Proxy. attr: the attribute's name.

    >>> graph = torch.fx.Graph()
    >>> torch.fx.Proxy(graph.placeholder('x')).shape.node.args
    (x, 'shape')
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            made = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attr), {}
            )
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args = (self.root, *args)
        return self.tracer.create_proxy("call_method", self.attr, args, kwargs)


_publish(__name__)
