"""Sizes given as one number, and names of states: what other libraries import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that makes a tuple of n of one value, and any iterable a tuple."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """The items from the last to the first, each n times: F.pad takes such a tuple."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: Any, prefix: str) -> None:
    """Take a prefix away from the keys of a state that have it, in place.

    A state that a wrapper of the module saved fits the module then.

    >>> state = {'module.weight': 1, 'bias': 2}
    >>> nn.modules.utils.consume_prefix_in_state_dict_if_present(state, 'module.')
    >>> state
    {'bias': 2, 'weight': 1}
    """
    for key in [*state_dict]:
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for path in [*metadata]:  # the module's own path has no dot
        if path and (path == prefix.replace(".", "") or path.startswith(prefix)):
            metadata[path[len(prefix) :]] = metadata.pop(path)
