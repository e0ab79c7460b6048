"""Places in the graph, and handles of hooks."""

from __future__ import annotations

import contextlib
import itertools
import weakref
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
        self._remove: Callable[[], None] | None = None
        if callable(remove):
            self._remove, self._dicts = remove, []
        else:
            extra = extra_dict if isinstance(extra_dict, list) else [extra_dict]
            self._dicts = [_reference(d) for d in (remove, *extra) if d is not None]

    @property
    def hooks_dict_ref(self) -> Callable[[], Any]:
        """A function that gives the dict of the hook, None if that is gone."""
        return self._dicts[0] if self._dicts else lambda: None

    def remove(self) -> None:
        """Remove the hook. A second call does nothing."""
        if self._remove:
            self._remove()
            self._remove = None
        for find in self._dicts:
            (find() or {}).pop(self.id, None)

    def __getstate__(self) -> Any:
        # Dicts alone: a copy's remove() is for the copied ones.
        return self.id, [find() for find in self._dicts]

    def __setstate__(self, state: Any) -> None:
        self.id, dicts = state
        self._remove = None
        self._dicts = [_reference(d) for d in dicts if d is not None]

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *unused: object) -> None:
        self.remove()


_hook_ids = itertools.count()


def _reference(hooks: Any) -> Callable[[], Any]:
    """A function that gives a dict, held weakly if its class can be."""
    with contextlib.suppress(TypeError):
        return weakref.ref(hooks)
    return lambda: hooks


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
    return RemovableHandle(hooks, key, extra_dict=options)
