"""Replacing each occurrence of a graph by another one."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydevtensor import nn
from pydevtensor._names import publish as _publish
from pydevtensor.fx._symbolic_trace import symbolic_trace
from pydevtensor.fx.graph import Graph
from pydevtensor.fx.node import Node

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """An occurrence of a pattern.

    anchor: its last Node. nodes_map: from the pattern's Nodes to those found.

    >>> torch.fx.subgraph_rewriter.Match._fields
    ('anchor', 'nodes_map')
    """

    anchor: Node
    nodes_map: dict[Node, Node]


def _matches(pattern: Any, found: Any, pairs: dict[Node, Any]) -> bool:
    """Whether values are alike, Nodes by what they compute; pairs gets the Nodes."""
    if isinstance(pattern, Node):
        if pattern in pairs:
            return pairs[pattern] is found
        if pattern.op == "placeholder":
            pairs[pattern] = found
            return True
        if not isinstance(found, Node) or found.op != pattern.op:
            return False
        if found.target != pattern.target:
            return False
        pairs[pattern] = found
        return _matches(pattern.args, found.args, pairs) and _matches(
            pattern.kwargs, found.kwargs, pairs
        )
    if isinstance(pattern, list | tuple):
        return (
            isinstance(found, list | tuple)
            and len(found) == len(pattern)
            and all(_matches(p, f, pairs) for p, f in zip(pattern, found, strict=True))
        )
    if isinstance(pattern, dict):
        return (
            isinstance(found, dict)
            and pattern.keys() == found.keys()
            and all(_matches(p, found[k], pairs) for k, p in pattern.items())
        )
    return not isinstance(found, Node) and bool(pattern == found)


def _graph(given: Any) -> tuple[Graph, Any]:
    if isinstance(given, Graph):
        return given, None
    made = given if hasattr(given, "graph") else symbolic_trace(given)
    return made.graph, made


def replace_pattern(gm: Any, pattern: Any, replacement: Any) -> list[Match]:
    """Replace each occurrence of pattern in gm by replacement; returns the Matches.

    gm           the GraphModule, which is changed
    pattern      a function, a module or a GraphModule with one result; its parameters
                 stand for any values
    replacement  the same, with as many parameters

    Occurrences whose inner values are used elsewhere stay, and of two that overlap the
    second one.

    >>> net = torch.fx.symbolic_trace(lambda a, b: torch.relu(a + b))
    >>> found = torch.fx.replace_pattern(
    ...     net, lambda x, y: x + y, lambda x, y: torch.sub(x, y)
    ... )
    >>> len(found), net(torch.ones(1), torch.ones(1))
    (1, tensor([0.]))
    """
    wanted, _ = _graph(pattern)
    other, module = _graph(replacement)
    inputs = [n for n in wanted.nodes if n.op == "placeholder"]
    others = [n for n in other.nodes if n.op == "placeholder"]
    if len(inputs) != len(others):
        raise RuntimeError(
            f"replace_pattern(): the pattern has {len(inputs)} parameters and the "
            f"replacement {len(others)}; give as many"
        )
    (last,) = (n for n in wanted.nodes if n.op == "output")
    result = last.args[0]
    if not isinstance(result, Node):
        raise NotImplementedError(
            "replace_pattern(): the pattern has several results; give one with one"
        )
    taken: set[Node] = set()
    matches = []
    for node in [*gm.graph.nodes]:
        pairs: dict[Node, Any] = {}
        if not _matches(result, node, pairs):
            continue
        inner = {f for p, f in pairs.items() if p.op not in ("placeholder", "get_attr")}
        private = all(set(n.users) <= inner for n in inner - {node})
        if private and not inner & taken and len(inner) > 0:
            taken |= inner
            matches.append(Match(node, pairs))
    renamed: dict[Node, Node] = {}
    for match in matches:
        given = {
            o: renamed.get(match.nodes_map[p], match.nodes_map[p])
            for o, p in zip(others, inputs, strict=True)
            if p in match.nodes_map
        }
        with gm.graph.inserting_before(match.anchor):
            made = gm.graph.graph_copy(other, given)
        match.anchor.replace_all_uses_with(made)
        renamed[match.anchor] = made
        found = [p for p in match.nodes_map if p.op not in ("placeholder", "get_attr")]
        for p in reversed([n for n in wanted.nodes if n in found]):
            gm.graph.erase_node(match.nodes_map[p])
    if isinstance(module, nn.Module):
        for name, value in (*module.named_modules(), *module.named_parameters()):
            if name and not _has(gm, name):
                gm._put(name, value)
    gm.recompile()
    return matches


def _has(module: Any, path: str) -> bool:
    for name in path.split("."):
        if not hasattr(module, name):
            return False
        module = getattr(module, name)
    return True


_publish(__name__)
