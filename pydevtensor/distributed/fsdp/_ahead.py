"""Chooses the parameters to gather before they are needed: those that a program names,
or those that the last pass needed next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal
from weakref import ref

__all__: list[str] = []


def _nothing() -> None:
    """A reference to no object."""


class Ahead:
    """Lets Shards fetch others, which are needed next.

    next, previous: the Shards to fetch in forward() and backward(); None: by the order
    of the last pass. in_forward: whether to do that in forward(). in_backward: whether
    to do it before or after the gradients of these Shards are computed.
    """

    def __init__(self) -> None:
        self.next: list[Any] | None = None
        self.previous: list[Any] | None = None
        self.in_forward = True
        self.in_backward: Literal["before", "after", "never"] = "before"
        # References, so that a model is freed when its program lets go of it.
        self._precedes: Any = _nothing  # the Shards whose forward() began next
        self._follows: Any = _nothing  # the Shards whose forward() ended before
        self._root: Any = _nothing  # the outermost Shards in that pass
        # Used on the outermost Shards: those whose forward() began last, those whose
        # forward() ended last, and those that were fetched by the order.
        self._begun: Any = _nothing
        self._ended: Any = _nothing
        self._unnamed: list[tuple[Any, Any]] = []
        self._sending: Any = _nothing  # the last gradients that were sent

    def those_after(self) -> list[Any]:
        """The other Shards in the order of the last pass, if these are outermost."""
        found: dict[Any, None] = {}
        each = self._precedes()
        while each is not None and each.ahead is not self and each not in found:
            found[each] = None
            each = each.ahead._precedes()
        return [*found]

    def sends(self, start: Callable[[], Any]) -> Any:
        """Start to send gradients when the last ones have been sent, so that few take
        memory at a time."""
        root = self._root()
        outermost = self if root is None else root.ahead
        before, outermost._sending = outermost._sending(), _nothing
        if before is not None:
            before.take()
        sent = start()
        outermost._sending = ref(sent)
        return sent

    def for_forward(self, root: Any) -> None:
        """Fetch for forward(), while the forward() of `root` runs."""
        target = self._precedes()
        if self.next is not None:
            for each in self.next:
                each.fetch()
        elif self.in_forward and target is not None and target.ahead._root() is root:
            _fetch(target)

    def for_backward(self) -> None:
        """Gather the parameters that backward() still needs."""
        named = self.previous is not None
        for each in self.previous if self.previous is not None else [self._follows()]:
            if each is not None and each.awaits():
                each.fetch() if named else _fetch(each)


def enter(shards: Any, root: Any) -> None:
    """A forward() has begun, inside of that of the outermost Shards, root."""
    outermost = root.ahead
    if shards is root:
        outermost._begun = outermost._ended = _nothing
        for one, came in outermost._unnamed:
            each = one()
            if each and came() and each.fetched is came():  # was not used
                each.drop()
        outermost._unnamed.clear()
    else:
        shards.ahead._root = ref(root)
    before = outermost._begun()
    if before is not None and before is not shards:
        before.ahead._precedes = ref(shards)
    outermost._begun = ref(shards)


def leave(shards: Any, root: Any) -> None:
    """A forward() has ended."""
    if root.ahead._ended() is not shards:
        shards.ahead._follows = root.ahead._ended
    root.ahead._ended = ref(shards)


def _fetch(shards: Any) -> None:
    shards.fetch()
    if root := shards.ahead._root():
        root.ahead._unnamed.append((ref(shards), ref(shards.fetched)))
