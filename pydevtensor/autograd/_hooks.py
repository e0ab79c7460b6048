"""Places in the graph, and handles of hooks."""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from pydevtensor import _C


class GradientEdge(NamedTuple):
    """The position of a Tensor's gradient in the graph: a node, and which result of it.

    grad() and backward() take it instead of the Tensor, which need not be kept.
    get_gradient_edge() makes it.

    >>> x = torch.ones(2, requires_grad=True)
    >>> edge = torch.autograd.graph.get_gradient_edge(x * 2)
    >>> edge.node.name(), edge.output_nr
    ('MulBackward0', 0)
    """

    node: _C.Node
    output_nr: int
    ownership_token: Any = None


class RemovableHandle:
    """The handle of a hook: remove(), or the end of a `with`, removes the hook.

    remove: the dict that has the hook, or will have it, by the handle's id; or a
    function that removes it. id: the number of the hook; None: a new one. extra_dict:
    another dict, or several, with something by the same id.

    >>> x = torch.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda gradient: gradient * 10)
    >>> handle.remove()
    >>> x.sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """

    def __init__(
        self, remove: Any, id: int | None = None, *, extra_dict: Any = None
    ) -> None:
        self.id: int = next(_hook_ids) if id is None else id
        if not callable(remove):
            extra = extra_dict if isinstance(extra_dict, list) else [extra_dict]
            remove = functools.partial(_forget, [remove, *extra], self.id)
        self._remove: Callable[[], None] | None = remove

    def remove(self) -> None:
        """Remove the hook. A second call does nothing."""
        if self._remove:
            self._remove()
            self._remove = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *unused: object) -> None:
        self.remove()


_hook_ids = itertools.count()


def _forget(dicts: list[Any], key: int) -> None:
    for each in dicts:
        if each is not None:
            each.pop(key, None)


def _add_hook(
    hooks: OrderedDict[Any, Any],
    hook: Any,
    prepend: bool = False,
    options: dict[Any, Any] | None = None,
) -> RemovableHandle:
    """options: what else is known of hooks, by the same keys."""
    key = next(_hook_ids)
    while key in hooks:  # from a pickle that another process wrote
        key = next(_hook_ids)
    hooks[key] = hook
    if prepend:
        hooks.move_to_end(key, last=False)

    def remove() -> None:
        hooks.pop(key, None)
        if options is not None:
            options.pop(key, None)

    return RemovableHandle(remove, key)
