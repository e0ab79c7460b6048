"""Trees of containers by PyTorch's names: tree_map(), tree_flatten() and their like.

The private module that libraries for PyTorch import. Containers are tuples, lists,
dicts, named tuples, OrderedDict, defaultdict, deque, what max(dim=) returns, and the
classes of register_pytree_node(); all else is a leaf, None and derived classes too.
Arguments named is_leaf are functions that say of a container that it is a leaf.

>>> from pydevtensor.utils._pytree import tree_flatten, tree_map, tree_unflatten
>>> leaves, spec = tree_flatten({'a': 1, 'b': [2, (3,)]})
>>> leaves
[1, 2, 3]
>>> tree_unflatten([x * 10 for x in leaves], spec)
{'a': 10, 'b': [20, (30,)]}
>>> tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)])
[11, (22,)]
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import isclass
from types import UnionType
from typing import Any, Protocol

from pydevtensor import _C, _tree
from pydevtensor._names import publish as _publish
from pydevtensor._tree import NODES as SUPPORTED_NODES
from pydevtensor._tree import GetAttrKey as GetAttrKey
from pydevtensor._tree import LeafSpec as LeafSpec
from pydevtensor._tree import MappingKey as MappingKey
from pydevtensor._tree import NodeDef as NodeDef
from pydevtensor._tree import SequenceKey as SequenceKey
from pydevtensor._tree import TreeSpec as TreeSpec
from pydevtensor._tree import node_type as _get_node_type
from pydevtensor.utils._tree_texts import _register_namedtuple as _register_namedtuple
from pydevtensor.utils._tree_texts import name_in_texts
from pydevtensor.utils._tree_texts import treespec_dumps as treespec_dumps
from pydevtensor.utils._tree_texts import treespec_loads as treespec_loads

PyTree = Any
Context = Any
PyTreeSpec = TreeSpec
_IsLeaf = Callable[[Any], bool] | None
_Kinds = type | tuple[type, ...] | UnionType
_Path = tuple[Any, ...]


class KeyEntry(Protocol):
    """The key of a part in a container; str() gives it as Python writes it."""

    def get(self, parent: Any) -> Any: ...


# --- containers of the program


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[Any], Any]] | None = None,
) -> None:
    """Let the objects of a class be containers, for torch.func too.

    flatten_fn(object) gives its parts and a context; unflatten_fn(parts, context) makes
    an object. flatten_with_keys_fn(object) gives pairs of a key and a part, for the
    functions with paths. serialized_type_name is the class's in treespec_dumps(), and
    the two functions change a context into what JSON has, and back. Raises ValueError
    if the class is registered already.

    >>> from pydevtensor.utils import _pytree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> _pytree.register_pytree_node(
    ...     Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
    >>> _pytree.tree_leaves([Pair(1, [2]), 3])
    [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered; a class is registered once")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"{cls} has one of to_dumpable_context and from_dumpable_context; give "
            "both or neither"
        )
    _tree.add(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        name_in_texts(
            serialized_type_name, cls, to_dumpable_context, from_dumpable_context
        )


def _register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    **options: Any,
) -> None:
    """register_pytree_node() by its older name; the two further functions are unused.

    It is also the one that libraries written for PyTorch 2.1 call.
    """
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    """Let the objects of a class be leaves again."""
    del SUPPORTED_NODES[cls]


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Let the objects of a dataclass be containers of its fields.

    The fields are those that its constructor takes, or field_names; then the rest has
    to be in drop_field_names, and its values are lost. Another class needs field_names.
    A class that is registered already stays as it is. Raises ValueError if the names
    are not those of the fields.

    >>> import dataclasses
    >>> from pydevtensor.utils import _pytree
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> _pytree.register_dataclass(Point)
    >>> _pytree.tree_map(lambda v: -v, Point(1, 2))
    Point(x=-1, y=-2)
    """
    dropped = set(drop_field_names or ())
    if dataclasses.is_dataclass(cls):
        fields = [field.name for field in dataclasses.fields(cls) if field.init]
        # Without field_names PyTorch keeps those to drop.
        names = fields if field_names is None else field_names
        if set(names) | dropped != set(fields):
            raise ValueError(
                f"field_names {names} and drop_field_names {sorted(dropped)} are not "
                f"the fields of {cls}, {fields}; give each once"
            )
    elif field_names is None:
        raise ValueError(f"{cls} has no fields that dataclass() made; give field_names")
    else:
        names = field_names
    if cls in SUPPORTED_NODES:
        return

    def parts_of(value: Any) -> tuple[list[str], list[str]]:
        some = [name for name in names if getattr(value, name) is not None]
        return some, [name for name in names if name not in some]

    def apart(value: Any) -> tuple[list[Any], Any]:
        some, none = parts_of(value)
        return [getattr(value, name) for name in some], [some, none]

    def together(parts: Any, context: Any) -> Any:
        given = dict(zip(context[0], parts, strict=True))
        return cls(**given, **dict.fromkeys(context[1]))

    def keyed(value: Any) -> tuple[list[Any], Any]:
        parts, context = apart(value)
        keys = [GetAttrKey(name) for name in context[0]]
        return [*zip(keys, parts, strict=True)], context

    register_pytree_node(
        cls,
        apart,
        together,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=keyed,
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of an object whose class is a constant."""

    value: Any


CONSTANT_NODES: set[type] = set()


def register_constant(cls: type) -> None:
    """Let the objects of a class be containers without parts, kept as they are.

    Raises TypeError if its objects do not compare by value, and cannot be hashed.
    """
    for name in ("__eq__", "__hash__"):
        if getattr(cls, name) is getattr(object, name) or getattr(cls, name) is None:
            raise TypeError(f"{cls} has no {name} of its own; give it one")
    register_pytree_node(
        cls,
        lambda value: ([], ConstantNode(value)),
        lambda _, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether register_constant() knows a class."""
    return isclass(cls) and cls in CONSTANT_NODES


# --- taking apart and putting together


def tree_flatten(tree: PyTree, is_leaf: _IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree, and its containers without them."""
    leaves: list[Any] = []
    return leaves, _tree.walk(tree, leaves, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """A tree of containers that tree_flatten() gave, with these leaves.

    Raises ValueError for another number of leaves, TypeError without a TreeSpec.
    """
    return _spec(treespec).unflatten(leaves)


def _spec(given: Any) -> TreeSpec:
    if not isinstance(given, TreeSpec):
        raise TypeError(f"treespec is a {type(given).__name__}; give a TreeSpec")
    return given


def tree_leaves(tree: PyTree, is_leaf: _IsLeaf = None) -> list[Any]:
    """The leaves of a tree."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: _IsLeaf = None) -> Iterator[Any]:
    """The leaves of a tree, one by one."""
    yield from tree_leaves(tree, is_leaf)


def tree_structure(tree: PyTree, is_leaf: _IsLeaf = None) -> TreeSpec:
    """The containers of a tree, without its leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: PyTree, is_leaf: _IsLeaf = None) -> bool:
    """Whether a value is a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return True
    return _tree.node_of(_get_node_type(tree)) is None


_is_leaf = tree_is_leaf


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments."""
    return [leaf for each in (*args, *kwargs.values()) for leaf in tree_leaves(each)]


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: _IsLeaf = None
) -> list[Any] | None:
    """A leaf for each leaf of treespec; a leaf of the tree holds for all below it.

    None if the tree has other containers.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    node = _tree.node_of(_get_node_type(tree))
    assert node is not None
    parts, context = node.flatten_fn(tree)
    found: list[Any] = []
    if (node.type, context) != (treespec.type, treespec.context):
        return None
    if len([*parts]) != treespec.num_children:
        return None
    for part, child in zip(parts, treespec.children(), strict=True):
        below = _broadcast_to_and_flatten(part, child, is_leaf)
        if below is None:
            return None
        found += below
    return found


# --- maps


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: _IsLeaf = None
) -> PyTree:
    """The tree with func(leaf, part, ...) for each leaf.

    rests: further trees, whose parts at the positions of the leaves are the arguments.
    Raises ValueError where one of them has other containers.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: _IsLeaf = None
) -> PyTree:
    """The tree itself, after func(leaf, part, ...) for each leaf."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(
    type_or_types_or_pred: _Kinds | Callable[[Any], bool], /
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function leaves values of other types as they are.

    Given are a type, several, or a function that says of a value whether to change it.
    """
    asked: Any = type_or_types_or_pred
    if isinstance(asked, (type, tuple, UnionType)):
        chosen: Callable[[Any], bool] = lambda x: isinstance(x, asked)
    elif callable(asked):
        chosen = asked
    else:
        raise TypeError(
            f"map_only() got {asked!r}; give a type, a tuple of types or a function"
        )

    def wrap(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: func(x) if chosen(x) else x

    return wrap


def tree_map_only(
    type_or_types_or_pred: _Kinds | Callable[[Any], bool],
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: _IsLeaf = None,
) -> PyTree:
    """The tree with func(leaf) for each leaf of a type; map_only() says how to choose.

    >>> from pydevtensor.utils import _pytree
    >>> _pytree.tree_map_only(int, lambda n: n + 1, [1, ('a', 2.5)])
    [2, ('a', 2.5)]
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: _Kinds | Callable[[Any], bool],
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: _IsLeaf = None,
) -> PyTree:
    """The tree itself, after func(leaf) for each leaf of a type."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(
    pred: Callable[[Any], bool], tree: PyTree, is_leaf: _IsLeaf = None
) -> bool:
    """Whether pred holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool], tree: PyTree, is_leaf: _IsLeaf = None
) -> bool:
    """Whether pred holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    type_or_types: _Kinds,
    /,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: _IsLeaf = None,
) -> bool:
    """Whether pred holds for all leaves of a type."""
    leaves = tree_leaves(tree, is_leaf)
    return all(pred(x) for x in leaves if isinstance(x, type_or_types))


def tree_any_only(
    type_or_types: _Kinds,
    /,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: _IsLeaf = None,
) -> bool:
    """Whether pred holds for a leaf of a type."""
    leaves = tree_leaves(tree, is_leaf)
    return any(pred(x) for x in leaves if isinstance(x, type_or_types))


# --- paths


def tree_leaves_with_path(
    tree: PyTree, is_leaf: _IsLeaf = None
) -> list[tuple[_Path, Any]]:
    """Pairs of a leaf's path, a tuple of keys, and the leaf.

    Raises ValueError for a container that was registered without its keys.
    """
    return [*_paths((), tree, is_leaf)]


def _paths(path: _Path, tree: Any, is_leaf: _IsLeaf) -> Iterator[tuple[_Path, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"the parts of a {node.type} have no keys; give register_pytree_node() a "
            "flatten_with_keys_fn"
        )
    for key, part in node.flatten_with_keys_fn(tree)[0]:
        yield from _paths((*path, key), part, is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: _IsLeaf = None
) -> tuple[list[tuple[_Path, Any]], TreeSpec]:
    """Pairs of a leaf's path and the leaf, and the containers without the leaves."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: _IsLeaf = None
) -> PyTree:
    """The tree with func(path, leaf, part, ...) for each leaf.

    >>> from pydevtensor.utils import _pytree
    >>> _pytree.tree_map_with_path(lambda p, x: _pytree.keystr(p), {'w': [1, 2]})
    {'w': ["['w'][0]", "['w'][1]"]}
    """
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    columns = [paths, leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def keystr(kp: _Path) -> str:
    """A path as Python writes it."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: _Path) -> Any:
    """The part of an object at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# --- specs


def treespec_leaf() -> LeafSpec:
    """The spec of a leaf."""
    return _tree.LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The spec of a tuple, from those of its parts."""
    below = [*iterable]
    if not all(isinstance(each, TreeSpec) for each in below):
        raise ValueError(f"treespec_tuple() got {below}; give TreeSpecs")
    return TreeSpec(tuple, None, below)


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (),
    /,
    **kwargs: TreeSpec,
) -> TreeSpec:
    """The spec of a dict, from those of its values."""
    below = dict(mapping, **kwargs)
    if not all(isinstance(each, TreeSpec) for each in below.values()):
        raise ValueError(f"treespec_dict() got {below}; give a dict of TreeSpecs")
    return TreeSpec(dict, [*below], [*below.values()])


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree with a star for each leaf, as text."""
    star = type("_", (), {"__repr__": lambda self: "*"})()
    return repr(_spec(treespec).unflatten([star] * treespec.num_leaves))


_tree.add(
    _C.Size,
    lambda size: ([*size], None),
    lambda parts, _: tuple(parts),  # the parts may be anything now
    lambda size: ([(SequenceKey(i), n) for i, n in enumerate(size)], None),
)
_dict_flatten = SUPPORTED_NODES[dict].flatten_fn
_dict_flatten_with_keys = SUPPORTED_NODES[dict].flatten_with_keys_fn
_dict_unflatten = SUPPORTED_NODES[dict].unflatten_fn
_publish(__name__)
