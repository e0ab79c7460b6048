"""A timeline in characters, for terminals. They are ASCII's, whose width is certain."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator
from math import ceil, floor

from pydevtensor.profiler._lanes import Bar, Lanes, size

FILLS = {"kernel": "#", "copy": "=", "wait": "/", "call": "-", "range": "~"}
MEANINGS = {
    "kernel": "kernel",
    "copy": "copy",
    "wait": "wait of the host",
    "call": "call of the host",
}
NARROWEST = 20


def _cells(text: str) -> Iterator[str]:
    """The columns of a text; a wide character takes two, the second empty."""
    for character in text:
        yield character
        if unicodedata.east_asian_width(character) in "WF":
            yield ""


def _bars(lanes: Lanes, bars: list[Bar], columns: int) -> str:
    """A lane: in each column what took most of its time, and names that have room."""
    covered: list[dict[str, float]] = [{} for _ in range(columns)]
    row = [" "] * columns
    places = []
    for bar in bars:
        first, last = (columns * lanes.part(time) for time in (bar.start, bar.end))
        begin = min(int(first), columns - 1)
        end = max(ceil(last), begin + 1)
        for column in range(begin, end):
            share = min(last, column + 1) - max(first, column)
            seen = covered[column]
            seen[bar.look] = seen.get(bar.look, 0.0) + share
        places.append((begin, end, ceil(first), floor(last)))
    for column, seen in enumerate(covered):
        if seen:
            row[column] = FILLS[max(seen, key=lambda look: seen[look])]
    for bar, (begin, end, first, last) in zip(bars, places, strict=True):
        if bar.look == "range":
            row[begin], row[end - 1] = "[", "]"
        name = [*_cells(bar.name)]
        if len(name) + 2 <= last - first:
            at = first + (last - first - len(name)) // 2
            row[at : at + len(name)] = name
    return "".join(row)


def _memory(lanes: Lanes, curve: list[tuple[int, int]], columns: int) -> str:
    """The most that each column held: a digit, 9 for the peak; blank for nothing."""
    peak = max(held for _, held in curve) or 1
    most = [0] * columns
    held, column = 0, 0
    for time, after in [*curve, (lanes.end, 0)]:
        at = min(int(columns * lanes.part(time)), columns - 1)
        for between in range(column, at + 1):
            most[between] = max(most[between], held)
        most[at] = max(most[at], after)
        held, column = after, at
    return "".join(str(ceil(9 * each / peak)) if each else " " for each in most)


def drawn(lanes: Lanes, width: int) -> str:
    """The lanes below each other, no line wider than width."""
    rows = [(lane.label, lane.bars) for lane in lanes.lanes.values()]
    labels = [label for label, _ in rows] + [f"{each} memory" for each in lanes.memory]
    left = max(map(len, labels), default=0) + 2
    columns = max(width - left, NARROWEST)
    ruler = [" "] * columns
    for part, label in lanes.ticks(max(columns // 12, 1)):
        text, at = f"|{label}", int(part * columns)
        if at + len(text) <= columns:
            ruler[at : at + len(text)] = text
    lines = ["".ljust(left) + "".join(ruler)]
    lines += [label.ljust(left) + _bars(lanes, bars, columns) for label, bars in rows]
    notes = []
    for device, curve in lanes.memory.items():
        label = f"{device} memory"
        lines.append(label.ljust(left) + _memory(lanes, curve, columns))
        peak = max(held for _, held in curve)
        notes.append(f"{label}: 9 is {size(peak)} more than at the start")
    looks = {bar.look for _, bars in rows for bar in bars}
    shown = [
        f"{FILLS[look]} {text}" for look, text in MEANINGS.items() if look in looks
    ]
    notes.insert(0, "   ".join(shown))
    for note in notes:
        lines += textwrap.wrap(note, max(width, left + NARROWEST))
    return "\n".join(line.rstrip() for line in lines)
