"""Graphs of nodes, and the code that they stand for."""

from __future__ import annotations

import builtins
import keyword
import math
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pydevtensor._names import publish as _publish
from pydevtensor.fx.node import Node, as_torch, map_arg, qualified, type_text

__all__ = ["Graph", "PythonCode"]

_TAKEN = {*dir(builtins), *keyword.kwlist, "self", "torch", "inf", "nan", "device"}
_SIGNS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "truediv": "{} / {}",
    "floordiv": "{} // {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "matmul": "{} @ {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "lt": "{} < {}",
    "le": "{} <= {}",
    "gt": "{} > {}",
    "ge": "{} >= {}",
    "eq": "{} == {}",
    "ne": "{} != {}",
    "neg": "-{}",
    "pos": "+{}",
    "invert": "~{}",
    "getitem": "{}[{}]",
}
_OPERATORS = {getattr(operator, name): form for name, form in _SIGNS.items()}


class PythonCode(NamedTuple):
    """The code of a graph.

    src: the text. globals: the values of its global names.

    >>> graph = torch.fx.Graph()
    >>> _ = graph.output(graph.call_function(torch.relu, (graph.placeholder('x'),)))
    >>> sorted(graph.python_code('self').globals)
    ['torch']
    """

    src: str
    globals: dict[str, Any]


class _Nodes:
    """The nodes of a graph, in order."""

    def __init__(self, root: Node, backward: bool = False) -> None:
        self._root, self._backward = root, backward

    def __iter__(self) -> Iterator[Node]:
        step = "_prev" if self._backward else "_next"
        node = getattr(self._root, step)
        while node is not self._root:
            following = getattr(node, step)  # the node may be erased
            if not node._erased:
                yield node
            node = following

    def __reversed__(self) -> _Nodes:
        return _Nodes(self._root, not self._backward)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Inserting:
    """Goes back to the insertion point from before, at the end of a block."""

    def __init__(self, graph: Graph, before: Callable[[Node], None]) -> None:
        self._graph, self._before = graph, before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: object) -> None:
        self._graph._insert = self._before


class Graph:
    """Nodes in the order in which they run.

    owning_module: the GraphModule that has it. tracer_cls, tracer_extras: have no
    effect.

    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder('x')
    >>> result = graph.output(graph.call_method('sum', (x,)))
    >>> net = torch.fx.GraphModule({}, graph)
    >>> net(torch.ones(3))
    tensor(3.)
    """

    def __init__(
        self,
        owning_module: Any = None,
        tracer_cls: Any = None,
        tracer_extras: Any = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self.owning_module = owning_module

    @property
    def nodes(self) -> _Nodes:
        """The Nodes, to be iterated over, also while they are erased."""
        return _Nodes(self._root)

    # --- making nodes

    def _name(self, wanted: str) -> str:
        """An unused name like the one wanted."""
        base = re.sub(r"[^0-9a-zA-Z_]+", "_", wanted)
        base = "_" + base if not base or base[0].isdigit() else base
        if found := re.fullmatch(r"(.*?)_(\d+)", base):
            if base not in self._names:
                self._names[base] = 0
                return base
            base = found[1]
        name = base
        while name in self._names or name in _TAKEN:
            self._names[base] = self._names.get(base, 0) + 1
            name = f"{base}_{self._names[base]}"
        self._names.setdefault(name, 0)
        return name

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a Node where the insertion point is: at the end, or as inserting_after().

        op, target, args, kwargs: those of the Node. name: the name that it has, with a
        number if it is used. type_expr: its type.
        """
        if name is None:
            name = getattr(target, "__name__", None) or str(target).rpartition("::")[2]
            name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
        if op in ("placeholder", "get_attr", "call_module") and isinstance(target, str):
            name = name.replace(".", "_")
        args, kwargs = args or (), kwargs or {}
        node = Node(self, self._name(name), op, target, args, kwargs, type_expr)
        self._insert(node)
        return node

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = ...
    ) -> Node:
        """Add an input.

        name: that of the parameter. type_expr: its type. default_value: its default.
        """
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the value of an attribute of the module, such as a parameter.

        qualified_name: its path. type_expr: its type.
        """
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a module by its path.

        module_name: the path. args, kwargs: its arguments. type_expr: the result's
        type.
        """
        return self.create_node(
            "call_module", module_name, args, kwargs, None, type_expr
        )

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a method of the first argument.

        method_name: its name. args, kwargs: its arguments. type_expr: the result's
        type.
        """
        return self.create_node(
            "call_method", method_name, args, kwargs, None, type_expr
        )

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function.

        the_function: the function. args, kwargs: its arguments. type_expr: the result's
        type. name: the Node's.
        """
        return self.create_node(
            "call_function", the_function, args, kwargs, name, type_expr
        )

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the result, in which Nodes stand for their values.

        result: a Node, or a structure of Nodes. type_expr: its type.
        """
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x
    ) -> Node:
        """Add a copy of a Node of another graph.

        node: the Node. arg_transform: a function from its Nodes to those of this graph.
        """
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        made = self.create_node(
            node.op, node.target, args, kwargs, node.name, node.type
        )
        made.meta = dict(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Add copies of the nodes of g, and return what its output has, copied.

        val_map: Nodes of g that this graph has already, with these; the copies are
        added to it. return_output_node: return also g's output Node.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    # --- changing

    def _inserting(self, insert: Callable[[Node], None]) -> _Inserting:
        before, self._insert = self._insert, insert
        return _Inserting(self, before)

    def inserting_before(self, n: Node | None = None) -> Any:
        """Let new nodes come before n, without n first; a context undoes it."""
        return self._inserting(self._root._next.prepend if n is None else n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Let new nodes come behind n in order, without n last; a context undoes it."""
        following = self._root if n is None else n._next
        return self._inserting(lambda made: following.prepend(made))

    def erase_node(self, to_erase: Node) -> None:
        """Remove a Node that no other one uses; RuntimeError for others.

        to_erase: the Node.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had "
                f"{len(to_erase.users)} users in the graph: {to_erase.users}; call "
                "replace_all_uses_with() first"
            )
        to_erase._set((), {})
        following, previous = to_erase._next, to_erase._prev
        to_erase._remove_from_list()
        to_erase._next, to_erase._prev = following, previous
        to_erase._erased = True

    def eliminate_dead_code(self, is_impure_node: Any = None) -> bool:
        """Erase nodes that nothing uses, and say whether there were such.

        is_impure_node: a function that says which ones stay; Node.is_impure().
        """
        found = False
        for node in reversed(self.nodes):
            kept = is_impure_node(node) if is_impure_node else node.is_impure()
            if not node.users and not kept:
                self.erase_node(node)
                found = True
        return found

    def find_nodes(
        self, *, op: str, target: Any = None, sort: bool = True
    ) -> list[Node]:
        """The nodes of an op, and of a target if it is given. sort has no effect."""
        return [
            node
            for node in self.nodes
            if node.op == op and (target is None or node.target == target)
        ]

    def output_node(self) -> Node:
        """The Node of the result."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def lint(self) -> None:
        """Raise RuntimeError unless nodes come behind those that they use, and what the
        module lacks is not named."""
        seen: set[Node] = set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self or used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has "
                        "been defined; move one of them"
                    )
            seen.add(node)
            if self.owning_module is not None and node.op in (
                "get_attr",
                "call_module",
            ):
                value = self.owning_module
                for name in node.target.split("."):
                    if not hasattr(value, name):
                        raise RuntimeError(
                            f"Node {node} target {node.target} references nonexistent "
                            f"attribute {name}; add it to the module"
                        )
                    value = getattr(value, name)

    # --- code

    def python_code(self, root_module: str) -> PythonCode:
        """The code of a method forward().

        root_module: the name of the module in it, 'self'.
        """
        globals_: dict[str, Any] = {}
        lines, parameters, free = [], [], self._last_uses()
        for node in self.nodes:
            if node.op == "placeholder":
                parameters.append(_parameter(node, globals_))
                if node.name != (given := node.target.lstrip("*")):
                    lines.append(f"{node.name} = {given}")
                continue
            lines.append(_line(node, root_module, globals_) + free.get(node, ""))
        body = "".join(f"    {line}\n" for line in lines or ["pass"])
        head = ", ".join([root_module, *parameters])
        return PythonCode(f"\n\n\ndef forward({head}):\n{body}    ", globals_)

    def _last_uses(self) -> dict[Node, str]:
        """By node, the end of its line, that lets values go which are used no more."""
        seen: set[Node] = set()
        found = {}
        for node in reversed(self.nodes):
            if node.op == "placeholder":
                continue
            last = [used for used in node.all_input_nodes if used not in seen]
            seen.update(last)
            if not node.users and node.op != "output":
                last.append(node)
            if last and node.op != "output":
                found[node] = ";  " + "".join(f"{n.name} = " for n in last) + "None"
        return found

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [
            (n.op, n.name, str(n.target), str(n.args), str(n.kwargs))
            for n in self.nodes
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        for row in rows:
            cells = (cell.ljust(w) for cell, w in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "graph():" + "".join(f"\n    {line}" for line in lines)

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph()
        result = made.graph_copy(self, {}, True)
        if result is not None:
            made.output(result[0], result[1].type)
        return made


def _parameter(node: Node, globals_: dict[str, Any]) -> str:
    stars = "*" * (len(node.target) - len(node.target.lstrip("*")))
    kind = f" : {type_text(node.type)}" if node.type is not None else ""
    default = f" = {_text(node.args[0], globals_)}" if node.args else ""
    return stars + node.target.lstrip("*") + kind + default


def _line(node: Node, root: str, globals_: dict[str, Any]) -> str:
    """A node as a statement."""
    args = [_text(a, globals_) for a in node.args]
    named = [f"{k} = {_text(v, globals_)}" for k, v in node.kwargs.items()]
    given = ", ".join([*args, *named])
    if node.op == "output":
        return f"return {args[0]}"
    if node.op == "get_attr":
        value = _path(root, node.target)
    elif node.op == "call_module":
        value = f"{_path(root, node.target)}({given})"
    elif node.op == "call_method":
        value = f"{args[0]}.{node.target}({', '.join([*args[1:], *named])})"
    elif node.target in _OPERATORS and not named:
        value = _OPERATORS[node.target].format(*args)
    elif node.target is getattr and _is_plain(node.args):
        value = f"{args[0]}.{node.args[1]}"
    else:
        value = f"{_global(node.target, globals_)}({given})"
    return f"{node.name} = {value}"


def _is_plain(args: tuple[Any, ...]) -> bool:
    return len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier()


def _path(root: str, target: str) -> str:
    for name in target.split("."):
        root = f"{root}.{name}" if name.isidentifier() else f'getattr({root}, "{name}")'
    return root


def _global(value: Any, globals_: dict[str, Any]) -> str:
    """The name of a function or class in code, which globals_ has then."""
    import pydevtensor

    text = qualified(value)
    if text.startswith("builtins."):
        return text.removeprefix("builtins.")
    if text.startswith("torch.") and _resolves(text, value):
        globals_["torch"] = pydevtensor
        return text
    name = re.sub(r"\W", "_", text)
    while globals_.setdefault(name, value) is not value:
        name += "_1"
    return name


def _resolves(text: str, value: Any) -> bool:
    import pydevtensor

    found: Any = pydevtensor
    for name in text.split(".")[1:]:
        found = getattr(found, name, None)
    return found is value


def _text(value: Any, globals_: dict[str, Any]) -> str:
    """An argument in code."""
    if isinstance(value, Node):
        return value.name
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        inside = ", ".join(_text(each, globals_) for each in value)
        return f"{_global(type(value), globals_)}({inside})"
    if type(value) is tuple:
        inside = ", ".join(_text(each, globals_) for each in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{', '.join(_text(each, globals_) for each in value)}]"
    if isinstance(value, dict):
        pairs = (f"{k!r}: {_text(v, globals_)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, slice):
        parts = (_text(x, globals_) for x in (value.start, value.stop, value.step))
        return f"slice({', '.join(parts)})"
    home = as_torch(type(value).__module__)
    if isinstance(value, float) and repr(value) in ("inf", "-inf", "nan"):
        globals_.update(inf=math.inf, nan=math.nan)
        return repr(value)
    if home == "builtins" and not callable(value):
        return repr(value)
    if callable(value):
        return _global(value, globals_)
    if home == "torch":  # dtype, device, Size, layout
        import pydevtensor

        globals_["torch"] = pydevtensor
        text = repr(value)
        return text if text.startswith("torch.") else f"torch.{text}"
    name = f"_constant_{len(globals_)}"
    globals_[name] = value
    return name


_publish(__name__)
