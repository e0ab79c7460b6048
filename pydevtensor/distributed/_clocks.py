"""Clocks of simulated GPUs that meet in collectives: a cluster on one machine.

`python -m pydevtensor launch --nodes 2 --gpus 4 --card h100 --link ib400` sets the
variables that ask for it; docs/scale.md describes the model. A collective call is work
on a stream of its group's own and begins when all ranks are ready for it. While the
data is exchanged, the thread's clock is stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pydevtensor import _C
from pydevtensor._streams import current
from pydevtensor._tree import flatten
from pydevtensor.distributed._links import Cluster
from pydevtensor.distributed._shared_engine import Buffers

__all__: list[str] = []

RUNS = bool(os.environ.get("PYDEVTENSOR_SIM_LINK"))
records: list[Timed] = []  # the calls of this process, in the order of their ends


def _cluster() -> Cluster:
    card = os.environ.get("PYDEVTENSOR_SIM_CARD", "")
    if not card or "," in card:
        raise ValueError(
            f"PYDEVTENSOR_SIM_CARD is {card!r}, and PYDEVTENSOR_SIM_LINK is set; give "
            "one card, whose clock collectives advance"
        )
    gpus = int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    return Cluster.of(card, gpus, os.environ["PYDEVTENSOR_SIM_LINK"])


_known: list[Cluster] = []


def cluster() -> Cluster:
    """The cluster that the environment describes."""
    if not _known:
        _known.append(_cluster())
    return _known[0]


def _ask(command: str, without: int) -> int | None:
    """The simulator's answer; `without` if no GPU is in use; None: a hidden clock."""
    if not _C._device_loaded("cuda"):
        return without
    found = _C._sim_control(command)
    return int(found) if found else None


def hide(hidden: bool = True) -> bool:
    """Stop or start this thread's clock. Returns whether it was stopped."""
    loaded = _C._device_loaded("cuda")
    return loaded and _C._sim_control(f"hide {hidden:d}") == "1"


@contextmanager
def _hidden() -> Iterator[None]:
    """Stop the clock, and allow all copies: NCCL would make none."""
    before, rules = hide(), _C._transfer_rules(True, 1, 1, 1)
    try:
        yield
    finally:
        _C._transfer_rules(True, *rules)
        hide(before)


class Timed:
    """A call of a group on the clock. Times are nanoseconds.

    call: the argument for the engine. tensors: those that this rank gives, and those
    that it takes. queue: names the calls that run one after the other.
    """

    def __init__(self, group: Any, call: Any, tensors: Any, queue: Any) -> None:
        name, key, self.line, _ = call
        self.op = (name + key).partition("(")[0].partition(" ")[0]
        self._group, self._call, self._queue = group, call, queue
        sides = [_tensors(each) for each in tensors]
        self.size = max(sum(map(_bytes, side)) for side in sides)
        on_gpu = (t.device for side in sides for t in side if t.device.type == "cuda")
        self._gpu = next(on_gpu, None)
        self.ready = int(_ask(f"ready {self._stream()}", 0) or 0)
        self.begin = self.end = -1  # when all ranks are ready, and when it ends
        self.came = -1  # when the stream, or the host, began to wait for it
        self._arrived = False

    def _stream(self) -> str:
        if self._gpu is None:
            return "-1 0"
        return f"{self._gpu.index} {current('Stream', self._gpu).cuda_stream}"

    def collect(self, run: Callable[[], Any]) -> Any:
        """Exchange times with all ranks, then run it."""
        with _hidden():
            both = self._mine()
            same = (both,)
            self._group._engine.run(self._call, Buffers(same, same, 1, "MAX"))
            self._meet(both, self._group._ranks)
            return run()

    def send(self, peer: int, tag: int, run: Callable[[], Any]) -> Any:
        """Send the time to a rank, then run it."""
        with _hidden():
            both = self._mine()
            self._group._engine.send(self._call, peer, tag, both)
            self._meet(
                both, [self._group._ranks[r] for r in (self._group.rank(), peer)]
            )
            return run()

    def receive(self, peer: int, tag: int, run: Callable[[int], Any]) -> Any:
        """Receive the time of a rank, or of any (-1), then run it for that rank."""
        with _hidden():
            both = self._mine()
            sender = self._group._engine.receive(self._call, peer, tag, both)
            both = _C.maximum(both, self._mine())
            ranks = [self._group._ranks[r] for r in (sender, self._group.rank())]
            self._meet(both, ranks)
            return run(sender)

    def _mine(self) -> Any:
        return _C.tensor([self.ready, self.size], dtype=_C.int64)

    def _meet(self, both: Any, ranks: list[int]) -> None:
        ready, self.size = both.tolist()
        self.begin = max(ready, self._group._clocks.get(self._queue, 0))
        on_gpu = self._gpu is not None
        self.end = self.begin + cluster().time(self.op, self.size, ranks, on_gpu)
        self._group._clocks[self._queue] = self.end

    def arrive(self) -> None:
        """Let the current stream, or the host, wait until its end."""
        if self._arrived or self.end < 0:
            return
        came = _ask(f"meet {self._stream()} {self.end}", self.end)
        if came is None:  # in the thread of the calls, whose clock is stopped
            return
        self._arrived, self.came = True, came
        records.append(self)

    def record(self) -> dict[str, Any]:
        """The figures for the report."""
        names = ("op", "line", "size", "ready", "begin", "end", "came")
        return {name: getattr(self, name) for name in names}


def _tensors(given: Any) -> list[Any]:
    return [t for t in flatten(given)[0] if isinstance(t, _C.Tensor)]


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())
