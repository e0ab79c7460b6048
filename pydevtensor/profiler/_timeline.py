"""A profile drawn as SVG: the host and each stream on a lane of their own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from pydevtensor.profiler._events import COPIES, Event

WIDTH, LEFT, RIGHT, TOP = 980, 150, 20, 34
LANE, GAP, CURVE = 22, 8, 40
# Bars of a lane closer than this are drawn as one, so that 20,000 events stay readable.
NARROW = 1.0
ARROWS = 40

STYLE = """
text { font: 11px system-ui, sans-serif; fill: #333; }
.lane { fill: #f2f3f5; } .tick { stroke: #ccc; } .arrow { stroke: #666; fill: none; }
.kernel { fill: #3b78c4; } .copy { fill: #e08a2e; } .call { fill: #a9bfd9; }
.range { fill: none; stroke: #7a8aa0; } .curve { fill: #3b78c444; stroke: #3b78c4; }
.wait { fill: url(#hatch); stroke: #b34a4a; stroke-width: .5; }
.hatch { stroke: #b34a4a; } .inside { fill: #fff; }
.tick-label { text-anchor: middle; } .note { text-anchor: end; }
@media (prefers-color-scheme: dark) {
text { fill: #ddd; } .lane { fill: #2a2d33; } .tick { stroke: #555; }
.arrow { stroke: #aaa; } .call { fill: #51657f; } .inside { fill: #fff; }
}
"""


@dataclass
class _Bar:
    start: int
    end: int
    look: str
    name: str
    count: int = 1


@dataclass
class _Lane:
    label: str
    bars: list[_Bar] = field(default_factory=list)


def _duration(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g} {unit}"
    return f"{nanoseconds:.4g} ns"


def _step(span: float) -> float:
    """A round distance of ticks, about six of them."""
    step = 1.0
    while step * 8 < span:
        for factor in (2, 2.5, 2):
            if step * 8 < span:
                step *= factor
    return step


class Timeline:
    """A drawing of a profile: shown by notebooks, written to a file by save()."""

    def __init__(self, events: list[Event]) -> None:
        self._lanes: dict[tuple[Any, ...], _Lane] = {}
        self._arrows: list[tuple[tuple[Any, ...], int, tuple[Any, ...]]] = []
        self._memory: dict[str, list[tuple[int, int]]] = {}
        self._merged = 0
        for event in events:
            self._add(event)
        self._lanes = dict(sorted(self._lanes.items()))
        bars = [bar for lane in self._lanes.values() for bar in lane.bars]
        self._begin = min((bar.start for bar in bars), default=0)
        self._end = max((bar.end for bar in bars), default=1)
        self._end = max(self._end, self._begin + 1)

    def _lane(self, key: tuple[Any, ...], label: str) -> _Lane:
        return self._lanes.setdefault(key, _Lane(label))

    def _add(self, event: Event) -> None:
        if event.kind in ("allocate", "free"):
            curve = self._memory.setdefault(event.device, [])
            change = event.bytes if event.kind == "allocate" else -event.bytes
            total = curve[-1][1] if curve else 0
            curve.append((event.start, max(total + change, 0)))
            return
        host = (0, event.thread)
        threads = sum(key[0] == 0 for key in self._lanes)
        if event.kind == "range":
            lane = self._lane((-1, event.thread), "record_function")
            lane.bars.append(_Bar(event.start, event.end, "range", event.name))
            return
        lane = self._lane(host, f"host, thread {threads + 1}" if threads else "host")
        look = "call"
        if event.waits:
            look = "wait"
        elif event.device == "cpu":
            look = "kernel"
        lane.bars.append(_Bar(event.start, event.end, look, event.name))
        if event.device_end:
            number = int(event.device.rpartition(":")[2])
            key = (1, number, event.stream)
            streams = sum(known[:2] == key[:2] for known in self._lanes)
            label = (
                f"{event.device}, stream {streams}" if event.stream else event.device
            )
            look = "copy" if event.kind in COPIES else "kernel"
            bar = _Bar(event.device_start, event.device_end, look, event.name)
            self._lane(key, label).bars.append(bar)
            if event.waits:
                self._arrows.append((key, event.device_end, host))

    def _x(self, time: float) -> float:
        inside = WIDTH - LEFT - RIGHT
        return LEFT + inside * (time - self._begin) / (self._end - self._begin)

    def _merge(self, bars: Iterable[_Bar]) -> list[_Bar]:
        """The bars, those together that lie closer than can be seen."""
        narrow = NARROW * (self._end - self._begin) / (WIDTH - LEFT - RIGHT)
        drawn: list[_Bar] = []
        last: dict[str, _Bar] = {}
        for bar in sorted(bars, key=lambda b: b.start):
            before = last.get(bar.look)
            small = before and max(before.end, bar.end) - before.start < 3 * narrow
            if before and small and bar.start - before.end < narrow:
                before.end = max(before.end, bar.end)
                before.count += 1
                self._merged += 1
                continue
            last[bar.look] = _Bar(bar.start, bar.end, bar.look, bar.name)
            drawn.append(last[bar.look])
        return drawn

    def _bar(self, bar: _Bar, y: float) -> str:
        x, width = self._x(bar.start), self._x(bar.end) - self._x(bar.start)
        more = f" and {bar.count - 1} more" if bar.count > 1 else ""
        title = f"{bar.name}{more}: {_duration(bar.end - bar.start)}"
        return (
            f'<rect class="{bar.look}" x="{x:.2f}" y="{y:.1f}" '
            f'width="{max(width, 0.4):.2f}" height="{LANE - 6}">'
            f"<title>{escape(title)}</title></rect>"
        )

    def _label(self, bar: _Bar, y: float) -> str:
        """The bar's name, where it has room for it."""
        x, width = self._x(bar.start), self._x(bar.end) - self._x(bar.start)
        if width < 8 * len(bar.name) + 6:
            return ""
        look = "inside" if bar.look in ("kernel", "copy") else "plain"
        return (
            f'<text class="{look}" x="{x + 3:.1f}" y="{y + 12:.1f}">'
            f"{escape(bar.name)}</text>"
        )

    def _ticks(self, bottom: float) -> Iterator[str]:
        step = _step(self._end - self._begin)
        time = 0.0
        while time <= self._end - self._begin:
            x = self._x(self._begin + time)
            label = _duration(time)
            yield f'<path class="tick" d="M{x:.1f} 22 V{bottom}"/>'
            yield f'<text class="tick-label" x="{x:.1f}" y="16">{label}</text>'
            time += step

    def _curves(self, y: float) -> Iterator[str]:
        for device, curve in sorted(self._memory.items()):
            peak = max(size for _, size in curve) or 1
            points, height = [f"{self._x(self._begin):.1f},{y + CURVE:.1f}"], 0.0
            for time, size in curve:
                x = min(max(self._x(time), LEFT), WIDTH - RIGHT)
                points.append(f"{x:.1f},{y + CURVE - height:.1f}")
                height = CURVE * size / peak
                points.append(f"{x:.1f},{y + CURVE - height:.1f}")
            points.append(f"{self._x(self._end):.1f},{y + CURVE - height:.1f}")
            points.append(f"{self._x(self._end):.1f},{y + CURVE:.1f}")
            yield f'<text x="6" y="{y + 14:.1f}">memory of {escape(device)}</text>'
            yield f'<text x="6" y="{y + 28:.1f}">up to {peak / 1e6:.4g} MB more</text>'
            yield f'<polygon class="curve" points="{" ".join(points)}"/>'
            y += CURVE + GAP

    def svg(self) -> str:
        """The drawing as text."""
        self._merged = 0
        parts: list[str] = []
        y, places = float(TOP), {}
        for key, lane in self._lanes.items():
            places[key] = y + LANE / 2
            parts.append(
                f'<rect class="lane" x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" '
                f'height="{LANE}"/>'
            )
            parts.append(f'<text x="6" y="{y + 15}">{escape(lane.label)}</text>')
            bars = self._merge(lane.bars)
            parts += [self._bar(bar, y + 3) for bar in bars]
            parts += [self._label(bar, y + 3) for bar in bars if bar.count == 1]
            y += LANE + GAP
        for start, time, end in self._arrows if len(self._arrows) <= ARROWS else ():
            x = self._x(time)
            parts.append(
                f'<path class="arrow" d="M{x:.1f} {places[start]} V{places[end]}" '
                'marker-end="url(#head)"/>'
            )
        parts += self._curves(y)
        y += (CURVE + GAP) * len(self._memory)
        parts[:0] = self._ticks(y)
        legend = [("kernel", "kernel"), ("copy", "copy"), ("wait", "wait of the host")]
        legend.append(("call", "call of the host"))
        for i, (look, text) in enumerate(legend):
            x = LEFT + 120 * i
            parts.append(
                f'<rect class="{look}" x="{x}" y="{y}" width="14" height="11"/>'
            )
            parts.append(f'<text x="{x + 20}" y="{y + 10}">{text}</text>')
        if self._merged:
            note = f"{self._merged} events are drawn with their neighbours"
            x = WIDTH - RIGHT
            parts.append(f'<text class="note" x="{x}" y="{y + 10}">{note}</text>')
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'height="{y + 24:.0f}" viewBox="0 0 {WIDTH} {y + 24:.0f}">'
            f"<style>{STYLE}</style><defs>"
            '<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><line class="hatch" y2="5"/></pattern>'
            '<marker id="head" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" '
            'markerHeight="6" orient="auto"><path class="arrow" d="M0 0 L6 3 L0 6"/>'
            f"</marker></defs>{''.join(parts)}</svg>"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg())
