"""Containers, however deep, of values: their leaves, and the way back.

Containers are tuples, lists, dicts, their kin in collections, and classes that the
program registers. `torch.utils._pytree` shows this by PyTorch's names.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

_Keyed = Callable[[Any], tuple[list[tuple[Any, Any]], Any]]


class NodeDef(NamedTuple):
    """How a container is taken apart, and made again from its parts and the context."""

    type: Any
    flatten_fn: Callable[[Any], tuple[Any, Any]]
    unflatten_fn: Callable[[Any, Any], Any]
    flatten_with_keys_fn: _Keyed | None


class SequenceKey(NamedTuple):
    """The index of a part in a list or a tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """The key of a part in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """The name of a part that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


NODES: dict[Any, NodeDef] = {}
# The types that match each other if their keys are the same.
DICTS = {dict, collections.OrderedDict, collections.defaultdict}


def add(
    kind: Any,
    apart: Callable[[Any], tuple[Any, Any]],
    together: Callable[[Any, Any], Any],
    keyed: _Keyed | None = None,
) -> None:
    NODES[kind] = NodeDef(kind, apart, together, keyed)


def _add(kind: Any, apart: Any, together: Any, keys: Callable[[Any], Any]) -> None:
    def keyed(value: Any) -> tuple[list[tuple[Any, Any]], Any]:
        parts, context = apart(value)
        return [*zip(keys(value), parts, strict=True)], context

    add(kind, apart, together, keyed)


def _numbers(value: Any) -> list[SequenceKey]:
    return [SequenceKey(i) for i in range(len(value))]


def _keys(value: Any) -> list[MappingKey]:
    return [MappingKey(key) for key in value]


def _made_dict(parts: Any, keys: Any) -> Any:
    return dict(zip(keys, parts, strict=True))


_add(tuple, lambda v: ([*v], None), lambda parts, _: tuple(parts), _numbers)
_add(list, lambda v: (v, None), lambda parts, _: [*parts], _numbers)
_add(dict, lambda v: ([*v.values()], [*v]), _made_dict, _keys)
_add(
    collections.namedtuple,
    lambda v: ([*v], type(v)),
    lambda parts, kind: kind(*parts),
    lambda v: [GetAttrKey(name) for name in v._fields],
)
_add(
    collections.OrderedDict,
    lambda v: ([*v.values()], [*v]),
    lambda parts, keys: collections.OrderedDict(zip(keys, parts, strict=True)),
    _keys,
)
_add(
    collections.defaultdict,
    lambda v: ([*v.values()], [v.default_factory, [*v]]),
    lambda parts, c: collections.defaultdict(c[0], zip(c[1], parts, strict=True)),
    _keys,
)
_add(
    collections.deque,
    lambda v: ([*v], v.maxlen),
    lambda parts, most: collections.deque(parts, maxlen=most),
    _numbers,
)


def node_type(value: Any) -> Any:
    """The key in NODES for a value, if it is a container."""
    kind = type(value)
    if kind in NODES or not issubclass(kind, tuple) or not hasattr(kind, "_fields"):
        return kind
    return collections.namedtuple


def node_of(kind: Any, widely: bool = False) -> NodeDef | None:
    """The definition for a type of node_type(), None for leaves.

    widely: for classes derived from list, tuple and dict too.
    """
    found = NODES.get(kind)
    if found is None and hasattr(kind, "n_fields") and issubclass(kind, tuple):
        # max(dim=) and its like return it.
        _add(kind, lambda v: ([*v], None), lambda parts, _: kind(parts), _numbers)
    elif found is None and widely and issubclass(kind, (list, tuple)):
        return NodeDef(kind, lambda v: (v, None), lambda parts, _: kind(parts), None)
    elif found is None and widely and issubclass(kind, dict):
        apart, make = NODES[dict].flatten_fn, NODES[dict].unflatten_fn
        return NodeDef(kind, apart, lambda parts, keys: kind(make(parts, keys)), None)
    return NODES.get(kind)


class TreeSpec:
    """The containers of a tree, without its leaves.

    type      class of the container, None for a leaf
    context   what its definition needs beside its parts to make it again
    children  the specs of its parts
    """

    __slots__ = (
        "_children",
        "_context",
        "num_children",
        "num_leaves",
        "num_nodes",
        "type",
    )
    __match_args__ = ("type", "context")

    def __init__(self, type: Any, context: Any, children_specs: Iterable[Any]) -> None:
        self.type, self._context, self._children = type, context, [*children_specs]
        self.num_children = len(self._children)
        self.num_nodes, self.num_leaves = 1, int(type is None)
        for child in self._children:
            self.num_nodes += child.num_nodes
            self.num_leaves += child.num_leaves

    @property
    def context(self) -> Any:
        return self._context

    @property
    def children_specs(self) -> list[Any]:
        return self._children

    def children(self) -> list[Any]:
        return [*self._children]

    def child(self, index: int) -> Any:
        return self._children[index]

    def is_leaf(self) -> bool:
        return self.type is None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self._key() == other._key()

    def _key(self) -> tuple[Any, Any, list[Any]]:
        return self.type, self._context, self._children

    def __hash__(self) -> int:
        return hash((self.type, repr(self._context), *self._children))

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.is_leaf():
            return "*"
        space = ",\n" + " " * (indent + 2)
        inner = space.join(child._text(indent + 2) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context!r}, [{inner}])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with other leaves. Raises ValueError for another number of them."""
        given = [*leaves]
        if len(given) != self.num_leaves:
            raise ValueError(
                f"unflatten() got {len(given)} leaves, and the tree has "
                f"{self.num_leaves} ({self}); give one for each"
            )
        return given[0] if self.type is None else self._build(iter(given))

    def _build(self, leaves: Any) -> Any:
        parts = [
            next(leaves) if child.type is None else child._build(leaves)
            for child in self._children
        ]
        node = node_of(self.type, widely=True)
        assert node is not None, self
        return node.unflatten_fn(parts, self._context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of a tree at the positions of this one's leaves.

        Raises ValueError where the tree has another container than this one.
        """
        found: list[Any] = []
        self._up_to(tree, found)
        return found

    def _up_to(self, tree: Any, found: list[Any]) -> None:
        if self.type is None:
            found.append(tree)
            return
        kind = node_type(tree)
        node = node_of(kind)
        dicts = kind in DICTS and self.type in DICTS
        if node is None or (kind is not self.type and not dicts):
            raise ValueError(
                f"the tree has a {kind.__name__} where one of type "
                f"{self.type.__name__} is expected"
            )
        given, context = node.flatten_fn(tree)
        parts = [*given]
        if len(parts) != self.num_children:
            raise ValueError(
                f"the tree has a {kind.__name__} of {len(parts)} parts where "
                f"{self.num_children} are expected"
            )
        if dicts:
            keys = self._context
            keys = keys[1] if self.type is collections.defaultdict else keys
            if any(key not in tree for key in keys):
                raise ValueError(
                    f"the tree has a dict of the keys {[*tree]} where {keys} are "
                    "expected"
                )
            parts = [tree[key] for key in keys]
        elif context != self._context and kind is not collections.deque:
            raise ValueError(
                f"the tree has a {kind.__name__} of the context {context!r} where "
                f"{self._context!r} is expected"
            )
        for child, part in zip(self._children, parts, strict=True):
            child._up_to(part, found)


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


LEAF = LeafSpec()


def walk(
    tree: Any,
    leaves: list[Any],
    is_leaf: Callable[[Any], bool] | None = None,
    widely: bool = False,
) -> TreeSpec:
    """The spec of a tree; its leaves are appended to a list."""
    node = NODES.get(type(tree))
    if node is None and isinstance(tree, (tuple, list, dict)):  # derived from one
        node = node_of(node_type(tree), widely)
    if node is None or (is_leaf and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    parts, context = node.flatten_fn(tree)
    below = [walk(part, leaves, is_leaf, widely) for part in parts]
    return TreeSpec(node.type, context, below)


def flatten(value: Any) -> tuple[list[Any], Callable[[Iterable[Any]], Any]]:
    """The leaves, and a function that puts other leaves into the same structure.

    Classes derived from list, tuple and dict are containers too.
    """
    leaves: list[Any] = []
    return leaves, walk(value, leaves, widely=True).unflatten


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """The structure with function(leaf) for each leaf."""
    leaves, unflatten = flatten(value)
    return unflatten([function(leaf) for leaf in leaves])


def need_alike(
    function: str, what: str, given: Sequence[Any], others: str, wanted: Sequence[Any]
) -> None:
    """Raise RuntimeError unless Tensors are as many as others and of their shapes."""
    if len(given) != len(wanted):
        raise RuntimeError(
            f"{function}(): {what} has {len(given)} Tensors, and {others} "
            f"{len(wanted)}; give one for each"
        )
    for each, other in zip(given, wanted, strict=True):
        if each.shape != other.shape:
            raise RuntimeError(
                f"{function}(): {what} has a Tensor of shape {[*each.shape]}, and "
                f"{others} {[*other.shape]}; give the same shape"
            )
