"""Nodes: the calls of a graph."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pydevtensor
from pydevtensor._names import publish as _publish
from pydevtensor.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from pydevtensor.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

OPS = {"placeholder", "get_attr", "call_function", "call_method", "call_module"}
OPS |= {"output", "root"}
_impure: set[Any] = {pydevtensor._assert}


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """fn of each leaf of tuples, lists, dicts and slices.

    a: the structure; its lists and dicts become those that cannot be changed.

    >>> torch.fx.node.map_aggregate([1, (2, {'a': 3})], lambda x: x * 10)
    [10, (20, {'a': 30})]
    """
    if isinstance(a, tuple):
        made = [map_aggregate(each, fn) for each in a]
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    if isinstance(a, list):
        return immutable_list(map_aggregate(each, fn) for each in a)
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """fn of each Node in a structure; other leaves stay.

    a: tuples, lists, dicts and slices.

    >>> graph = torch.fx.Graph()
    >>> torch.fx.map_arg((graph.placeholder('x'), 1), lambda node: node.name)
    ('x', 1)
    """
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark fn, so that eliminate_dead_code() keeps its calls; also a decorator.

    >>> torch.fx.has_side_effect(print) is print
    True
    """
    _impure.add(fn)
    return fn


class Node:
    """A call in a Graph, or its input or output.

    graph        the Graph, whose methods make nodes
    name         the name of the value in the code
    op           'placeholder', 'get_attr', 'call_function', 'call_method',
                 'call_module' or 'output'
    target       the function, or the name of the method, module, attribute or parameter
    args         positional arguments: Nodes stand for their values
    kwargs       keyword arguments
    return_type  the type of the value, or None

    >>> graph = torch.fx.Graph()
    >>> node = graph.call_function(torch.relu, (graph.placeholder('x'),))
    >>> node.op, node.args, node.all_input_nodes[0].users
    ('call_function', (x,), {relu: None})
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in OPS:
            raise AssertionError(f"op is {op!r}; give one of {sorted(OPS)}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(f"Node: {target!r} is not callable; give a function")
        elif not isinstance(target, str):
            raise ValueError(f"Node: the target is {target!r}; give its name, a str")
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self.stack_trace: str | None = None
        self._erased = False
        self._prev = self._next = self
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._set(args, kwargs)

    def _set(self, args: Any, kwargs: Any) -> None:
        for node in self._inputs:
            node.users.pop(self, None)
        self._inputs = {}

        def used(node: Node) -> Node:
            self._inputs[node] = None
            node.users[self] = None
            return node

        self._args = map_arg(tuple(args), used)
        self._kwargs = map_arg(dict(kwargs), used)

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments. Assign a tuple to change them."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments. Assign a dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The Nodes among the arguments, each once."""
        return [*self._inputs]

    @property
    def next(self) -> Node:
        """The node behind this one; the graph's root behind the last."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self._prev = self._next = self

    def prepend(self, x: Node) -> None:
        """Move x, a Node of this graph, before this one."""
        if x.graph is not self.graph:
            raise AssertionError("a Node of another graph was given")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move x, a Node of this graph, behind this one."""
        self._next.prepend(x)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace the positional argument idx by arg."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert arg before the positional argument idx."""
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set the keyword argument key to arg."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace old_input by new_input wherever the arguments have it."""

        def other(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self._args, other), map_arg(self._kwargs, other))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users of this node use replace_with, and return them.

        delete_user_cb: a function that says for each user whether it changes.
        propagate_meta: give replace_with this node's meta.
        """
        if propagate_meta:
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the call does more than return a value, as far as one can know.

        impure_random: has no effect.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            writes = self.target in (operator.setitem, operator.delitem)
            return writes or self.target in _impure
        return False

    def format_node(
        self, placeholder_names: list[str] | None = None, *args: Any, **kwargs: Any
    ) -> str | None:
        """The node as a line of its graph's text.

        placeholder_names: has no effect.
        """
        count = f"[num_users={len(self.users)}]"
        kind = f"{type_text(self.type)} " if self.type is not None else ""
        if self.op == "output":
            return f"return {self.args[0]}"
        if self.op == "placeholder":
            default = f"(default={self.args[0]!r})" if self.args else ""
            text = f"placeholder[target={self.target}]{default}"
        elif self.op == "get_attr":
            text = f"get_attr[target={self.target}]"
        else:
            target = self.target
            if self.op == "call_function":
                target = qualified(target)
            given = f"(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"
            text = f"{self.op}[target={target}]{given}"
        return f"%{self.name} : {kind}{count} = {text}"

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: Node) -> bool:
        for node in self.graph.nodes:
            if node is self or node is other:
                return node is self and node is not other
        return False


def _shown(value: Any) -> str:
    """Arguments, with a % before the names of nodes."""
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, tuple):
        inside = ", ".join(map(_shown, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in value.items()) + "}"
    return str(value)


def type_text(kind: Any) -> str:
    """A type as an annotation shows it."""
    if not isinstance(kind, type) or hasattr(kind, "__args__"):
        return str(kind).replace("pydevtensor", "torch")
    if kind.__module__ == "builtins":
        return kind.__name__
    return f"{as_torch(kind.__module__)}.{kind.__qualname__}"


def as_torch(module: str) -> str:
    """The module's name, by PyTorch's name of this package."""
    top, dot, rest = module.partition(".")
    return "torch" + dot + rest if top == "pydevtensor" else module


def qualified(function: Any) -> str:
    """The name of a function with its module, by PyTorch's name of this package."""
    name = getattr(function, "__name__", None)
    if name is None:
        return str(function)
    if getattr(builtins, name, None) is function:
        return f"builtins.{name}"
    module = getattr(function, "__module__", None) or "torch"
    if getattr(pydevtensor.functional, name, None) is function:
        return f"torch.functional.{name}"  # where PyTorch's are from
    return f"{as_torch(module).replace('_operator', 'operator')}.{name}"


_publish(__name__)
