"""Specs of trees as texts in JSON, in PyTorch's form."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

from pydevtensor import _tree
from pydevtensor._tree import TreeSpec

# By the name of a class in texts: the class, and what makes a text of a context and a
# context of a text.
_serialized: dict[str, tuple[Any, Any, Any]] = {}


def name_in_texts(
    name: str,
    kind: Any,
    to: Callable[[Any], Any] | None = None,
    back: Callable[[Any], Any] | None = None,
) -> None:
    """Give a class its name, and what changes a context into JSON, and back."""
    _serialized[name] = kind, to or json.dumps, back or json.loads


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec as text in JSON, in PyTorch's form, which treespec_loads() reads.

    Raises NotImplementedError for a class that was registered without
    serialized_type_name, ValueError for a protocol other than 1.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec is a {type(treespec).__name__}; give a TreeSpec")
    _check_protocol(1 if protocol is None else protocol)
    return json.dumps([1, _as_json(treespec)])


def _check_protocol(protocol: int) -> None:
    if protocol != 1:
        raise ValueError(f"treespecs have no protocol {protocol}; give 1")


def _as_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    for name, (kind, to, _) in _serialized.items():
        if kind is spec.type:
            below = [_as_json(child) for child in spec.children()]
            return {"type": name, "context": to(spec.context), "children_spec": below}
    raise NotImplementedError(
        f"{spec.type} has no name in texts; give register_pytree_node() a "
        "serialized_type_name"
    )


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec that treespec_dumps() wrote.

    Raises ValueError for another protocol, NotImplementedError for an unknown class.
    """
    protocol, spec = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(spec)


def _from_json(spec: dict[str, Any]) -> TreeSpec:
    name = spec["type"]
    if name is None:
        return _tree.LEAF
    if name not in _serialized:
        raise NotImplementedError(
            f"no class has the name {name!r} in texts; register it before"
        )
    kind, _, back = _serialized[name]
    below = [_from_json(child) for child in spec["children_spec"]]
    return TreeSpec(kind, back(spec["context"]), below)


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a class of named tuples its name in the texts of treespec_dumps()."""
    _named_tuples[serialized_type_name] = cls


_named_tuples: dict[str, type] = {}


def _name_of_tuple(kind: type) -> str:
    for name, known in _named_tuples.items():
        if known is kind:
            return name
    raise NotImplementedError(
        f"{kind} has no name in texts; give it one by _register_namedtuple()"
    )


def _text_of_default(context: Any) -> dict[str, Any]:
    factory, keys = context
    names = {"default_factory_module": None, "default_factory_name": None}
    if factory is not None:
        module, name = factory.__module__, factory.__qualname__
        names = {"default_factory_module": module, "default_factory_name": name}
    return {**names, "dict_context": keys}


def _default_of_text(text: dict[str, Any]) -> list[Any]:
    module, name = text["default_factory_module"], text["default_factory_name"]
    # Only what is known: a text must not choose what is imported.
    known = {"int": int, "list": list, "dict": dict, "set": set, "float": float}
    if module is None:
        return [None, text["dict_context"]]
    if module != "builtins" or name not in known:
        raise NotImplementedError(
            f"a text names {module}.{name} as a default_factory; only "
            f"{', '.join(known)} are read"
        )
    return [known[name], text["dict_context"]]


for _kind in (tuple, list, dict, OrderedDict, deque):
    name_in_texts(f"{_kind.__module__}.{_kind.__qualname__}", _kind)
name_in_texts(
    "collections.defaultdict", defaultdict, _text_of_default, _default_of_text
)
name_in_texts(
    "collections.namedtuple", namedtuple, _name_of_tuple, _named_tuples.__getitem__
)
