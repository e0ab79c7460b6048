"""The ranks of a new group find out whether all make the same one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pydevtensor.distributed._stores import Store

if TYPE_CHECKING:
    from pydevtensor.distributed._groups import ProcessGroup

_LOOK = 0.2  # seconds between looks at ranks that have not come


def check_same(own: int, mine: tuple[str, str], rank: int, theirs: str) -> None:
    """RuntimeError where another rank makes another group than this one, `own`.

    mine: this one's call, and its line. theirs: the same of the other, in two lines.
    """
    call, _, line = theirs.partition("\n")
    if call != mine[0]:
        raise RuntimeError(
            f"rank {own} calls {_at(*mine)}, and rank {rank} calls {_at(call, line)}; "
            "all ranks have to make the same groups in the same order, also those of "
            "other ranks"
        )


def _at(call: str, line: str) -> str:
    return f"{call} at {line}" if line else call


def agree(
    world: ProcessGroup,
    store: Store,
    members: list[int],
    mine: tuple[str, str],
    seconds: float,
) -> None:
    """Wait until all members have called new_group(), and compare their calls.

    All ranks that call new_group() call this, members or not; only members wait. mine:
    this rank's call, and its line. RuntimeError for a rank that makes another group, or
    does not come within some seconds.
    """
    own = world.rank()
    store.set(f"call {own}", "\n".join(mine))
    if own not in members:
        return
    end = time.monotonic() + seconds
    waiting = [rank for rank in members if rank != own]
    while waiting:
        wait = max(0.0, min(_LOOK, end - time.monotonic()))
        missing = store._wait([f"call {rank}" for rank in waiting], wait)
        late = [rank for rank in waiting if f"call {rank}" in missing]
        for rank in waiting:
            if rank not in late:
                check_same(own, mine, rank, store.get(f"call {rank}").decode())
        for rank in late:
            problem, last = world._engine.tell(rank)
            if time.monotonic() >= end:
                problem = problem or f"has not come within {seconds:g} seconds"
            if problem and not store.check([f"call {rank}"]):
                raise RuntimeError(
                    f"rank {rank} {problem}, while rank {own} waits for it in "
                    f"{_at(*mine)}; its last call {last}"
                )
        waiting = late
