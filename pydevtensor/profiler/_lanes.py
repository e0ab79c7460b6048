"""The events of a profile as bars on lanes, which the drawings of a timeline share."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from pydevtensor.profiler._events import COPIES, DEFAULT, Event

# Where a lane stands: its group from the top, then a device and a number in it.
Key = tuple[int, int, int]


@dataclass
class Bar:
    start: int
    end: int
    look: str  # "call", "wait", "kernel", "copy" or "range"
    name: str
    count: int = 1


@dataclass
class Lane:
    label: str
    bars: list[Bar] = field(default_factory=list)


def duration(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g} {unit}"
    return f"{nanoseconds:.4g} ns"


def size(count: float) -> str:
    return f"{count / 1e6:.4g} MB"


class Lanes:
    """Ranges, the host's threads and each GPU's streams, in this order; and memory."""

    def __init__(self, events: list[Event]) -> None:
        found: dict[Key, Lane] = {}
        # From a stream to the thread of the host that waited for it, and when.
        self.arrows: list[tuple[Key, int, Key]] = []
        self.memory: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._threads: dict[int, int] = {}
        self._found = found
        for event in events:
            self._add(event)
        self.lanes = dict(sorted(found.items()))
        self.memory = dict(sorted(self.memory.items()))
        bars = [bar for lane in found.values() for bar in lane.bars]
        self.begin = min((bar.start for bar in bars), default=0)
        self.end = max((bar.end for bar in bars), default=1)
        self.end = max(self.end, self.begin + 1)

    def _put(self, key: Key, label: str, bar: Bar) -> None:
        self._found.setdefault(key, Lane(label)).bars.append(bar)

    def _add(self, event: Event) -> None:
        if event.kind in ("allocate", "free"):
            curve = self.memory[event.device]
            change = event.bytes if event.kind == "allocate" else -event.bytes
            total = curve[-1][1] if curve else 0
            curve.append((event.start, max(total + change, 0)))
            return
        thread = self._threads.setdefault(event.thread, len(self._threads))
        of_thread = f", thread {thread + 1}" if thread else ""
        bar = Bar(event.start, event.end, "call", event.name)
        if event.kind == "range":
            bar.look = "range"
            self._put((0, 0, thread), f"record_function{of_thread}", bar)
            return
        if event.waits:
            bar.look = "wait"
        elif event.device == "cpu":
            bar.look = "kernel"
        host = (1, 0, thread)
        self._put(host, f"host{of_thread}", bar)
        if event.device_end:
            name = event.stream_name
            number = 0 if name == DEFAULT else int(name.rpartition(" ")[2])
            stream = (2, int(event.device.rpartition(":")[2]), number)
            look = "copy" if event.kind in COPIES else "kernel"
            bar = Bar(event.device_start, event.device_end, look, event.name)
            self._put(stream, f"{event.device} {name}", bar)
            if event.waits:
                self.arrows.append((stream, event.device_end, host))

    def part(self, time: float) -> float:
        """How much of the drawing's width is before a time, from 0 to 1."""
        return min(max((time - self.begin) / (self.end - self.begin), 0.0), 1.0)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Round times as parts of the width, at most so many, and their labels."""
        span = self.end - self.begin
        step = 1.0
        while step * most < span:
            for factor in (2, 2.5, 2):
                if step * most < span:
                    step *= factor
        return [
            (step * i / span, duration(step * i)) for i in range(int(span / step) + 1)
        ]
