"""A graph as a graph of parts, each a module of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.fx.graph import Graph
from pydevtensor.fx.graph_module import GraphModule, value_at
from pydevtensor.fx.node import Node, map_arg
from pydevtensor.fx.proxy import Proxy

__all__ = ["split_module"]


class _Part:
    """A part: its graph, and which values of others it takes and gives."""

    def __init__(self, name: str) -> None:
        self.name, self.graph = name, Graph()
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.before: set[_Part] = set()
        self.after: dict[_Part, None] = {}
        self.targets: dict[str, Any] = {}

    def fill(self, m: GraphModule, names: dict[str, str] | None, is_tuple: bool) -> int:
        """Make the graph; how many values it gives: 0 for one without a tuple."""
        copies: dict[Node, Node] = {}
        for node in self.inputs:
            copies[node] = self.graph.placeholder(node.name, type_expr=node.type)
            copies[node].meta = dict(node.meta)
        for node in self.nodes:
            made = self.graph.node_copy(node, copies.__getitem__)
            if node.op == "call_module":
                made.target = node.target.replace(".", "_")
                self.targets[made.target] = value_at(m, node.target)
                if names is not None:
                    names[f"{self.name}.{made.target}"] = node.target
            copies[node] = made
        given = tuple(copies[node] for node in self.outputs)
        if len(given) == 1 and not is_tuple:
            self.graph.output(given[0])
            return 0
        self.graph.output(given)
        return len(given)


def _ordered(parts: list[_Part]) -> list[_Part]:
    ready = [part for part in parts if not part.before]
    found = []
    while ready:
        part = ready.pop()
        found.append(part)
        for later in part.after:
            later.before.remove(part)
            if not later.before:
                ready.append(later)
    if len(found) != len(parts):
        raise RuntimeError(
            "cycle exists between partitions! Put nodes that need each other's values "
            "both ways into one"
        )
    return found


def split_module(
    m: GraphModule,
    root_m: Any,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A GraphModule that calls a GraphModule for each part of the graph of m.

    The modules are named submod_ and the part's number. RuntimeError where two parts
    need values of each other.

    m                         the GraphModule
    root_m                    has no effect
    split_callback            gives a Node's part, a number or text
    qualname_map              is filled with the old path of each module by its new one
    keep_original_order       parts are called in the order of their first nodes
    keep_original_node_name   has no effect: names are kept
    keep_original_input_name  has no effect: names are kept
    partition_affix           is put before the number, with a _ between
    tuple_return              one value of a part is a tuple, too

    >>> net = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    >>> split = torch.fx.passes.split_module.split_module
    >>> made = split(net, net, lambda node: 0 if node.name == '_0' else 1)
    >>> [name for name, _ in made.named_children()]
    ['submod_0', 'submod_1']
    """
    parts: dict[str, _Part] = {}
    home: dict[Node, _Part | None] = {}
    affix = "" if partition_affix is None else f"{partition_affix}_"
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            home[node] = None
            continue
        number = str(split_callback(node))
        part = home[node] = parts.setdefault(number, _Part(f"submod_{affix}{number}"))
        part.nodes.append(node)
    for node in m.graph.nodes:
        own = home[node]
        for used in node.all_input_nodes:
            other = home[used]
            if other is own:
                continue
            if own is not None:
                own.inputs[used] = None
            if other is not None:
                other.outputs[used] = None
            if own is not None and other is not None:
                own.before.add(other)
                other.after[own] = None
    order = _ordered([*parts.values()])
    if keep_original_order:
        order = [*parts.values()]
    graph, copies = Graph(), dict[Node, Node]()
    targets: dict[str, Any] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            copies[node] = graph.node_copy(node)
            if node.op == "get_attr":
                targets[node.target] = value_at(m, node.target)
    for part in order:
        count = part.fill(m, qualname_map, tuple_return)
        targets[part.name] = GraphModule(part.targets, part.graph)
        call = graph.call_module(part.name, tuple(copies[n] for n in part.inputs))
        if not count:
            copies.update(dict.fromkeys(part.outputs, call))
        for i, node in enumerate(part.outputs if count else ()):
            copies[node] = Proxy(call)[i].node
    for node in m.graph.nodes:
        if node.op == "output":
            graph.output(map_arg(node.args[0], copies.__getitem__))
    return GraphModule(targets, graph)


_publish(__name__)
