"""Tuples, lists and dicts, however deep, of values: their leaves, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def flatten(value: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves, and a function that puts other leaves into the same structure."""
    kind: Any
    if isinstance(value, dict):
        keys, parts, kind = [*value], [*value.values()], type(value)

        def build(made: list[Any]) -> Any:
            return kind(zip(keys, made, strict=True))

    elif isinstance(value, (list, tuple)):
        parts, named = [*value], hasattr(value, "_fields")
        kind = type(value)

        def build(made: list[Any]) -> Any:
            return kind(*made) if named else kind(made)

    else:
        return [value], lambda leaves: leaves[0]
    inner = [flatten(part) for part in parts]

    def unflatten(leaves: list[Any]) -> Any:
        made, at = [], 0
        for few, back in inner:
            made.append(back(leaves[at : at + len(few)]))
            at += len(few)
        return build(made)

    return [leaf for few, _ in inner for leaf in few], unflatten


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """The structure with function(leaf) for each leaf."""
    leaves, unflatten = flatten(value)
    return unflatten([function(leaf) for leaf in leaves])
