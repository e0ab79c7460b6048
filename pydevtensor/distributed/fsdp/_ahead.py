"""Which parameters are gathered before they are needed: those that a program names, or
those that came next in the pass before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal
from weakref import ref

__all__: list[str] = []


def _nothing() -> None:
    """A reference to nothing."""


class Ahead:
    """Lets some Shards fetch others, whose turn comes next.

    next, previous: the Shards that they name for forward() and backward(); None: as
    the order was. in_forward: whether without a name, too. in_backward: likewise, and
    whether before or after their own gradients are computed.
    """

    def __init__(self) -> None:
        self.next: list[Any] | None = None
        self.previous: list[Any] | None = None
        self.in_forward = True
        self.in_backward: Literal["before", "after", "never"] = "before"
        # References, so that a model is freed when its program lets go of it.
        self._precedes: Any = _nothing  # which began next
        self._follows: Any = _nothing  # which ended before
        self._root: Any = _nothing  # the outermost Shards, in whose forward() that was
        # Where it is outermost: the last that has begun, and ended, and what was
        # fetched without a name.
        self._begun: Any = _nothing
        self._ended: Any = _nothing
        self._unnamed: list[tuple[Any, Any]] = []
        self._sending: Any = _nothing  # the last gradients that were sent

    def those_after(self) -> list[Any]:
        """Where it is outermost: the others, in the order of the pass before."""
        found: dict[Any, None] = {}
        each = self._precedes()
        while each is not None and each.ahead is not self and each not in found:
            found[each] = None
            each = each.ahead._precedes()
        return [*found]

    def sends(self, start: Callable[[], Any]) -> Any:
        """Start to send gradients, after those before have been sent: so the memory of
        one more Shards' gradients is in use."""
        root = self._root()
        its = self if root is None else root.ahead
        before, its._sending = its._sending(), _nothing
        if before is not None:
            before.take()
        sent = start()
        its._sending = ref(sent)
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
    """A forward() has begun, in that of `root`, which is outermost."""
    its = root.ahead
    if shards is root:
        its._begun = its._ended = _nothing
        for one, came in its._unnamed:
            each = one()
            if each and came() and each.fetched is came():  # was not used
                each.drop()
        its._unnamed.clear()
    else:
        shards.ahead._root = ref(root)
    before = its._begun()
    if before is not None and before is not shards:
        before.ahead._precedes = ref(shards)
    its._begun = ref(shards)


def leave(shards: Any, root: Any) -> None:
    """A forward() has ended."""
    if root.ahead._ended() is not shards:
        shards.ahead._follows = root.ahead._ended
    root.ahead._ended = ref(shards)


def _fetch(shards: Any) -> None:
    shards.fetch()
    if root := shards.ahead._root():
        root.ahead._unnamed.append((ref(shards), ref(shards.fetched)))
