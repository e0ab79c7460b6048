"""Events of a profile, and the tables that are made of them."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

from pydevtensor.printing import name_of_file

# By the numbers of dt_activity_kind.
COPIES = ("host_to_device", "device_to_host", "device_to_device")
KINDS = ("kernel", *COPIES, "wait", "allocate", "free")
NO_NODE = -2  # DT_NO_NODE
DEFAULT = "default"  # the name of a device's default stream


class Place(NamedTuple):
    """A line of the program."""

    file: str
    line: int
    function: str
    module: str = ""  # the path of the module of nn that ran, with with_modules=True

    def __str__(self) -> str:
        return f"{self.where()} {self.function}"

    def where(self) -> str:
        """The file, or the cell of a notebook, and the line."""
        return f"{name_of_file(self.file)}:{self.line}"

    def of_line(self) -> Place:
        """The line in whatever module."""
        return self._replace(module="") if self.module else self

    def code(self) -> str:
        """The source of the line, where it can be read."""
        return linecache.getline(self.file, self.line).strip()


@dataclass(slots=True)
class Event:
    """A kernel, copy, wait, allocation, free, or range of record_function.

    `stream` is the handle of the stream, `stream_name` "default" or, of a device's
    others in the order of their first event, "side 1", "side 2", ... In a backward
    pass `backward` holds, and `forward` is the place in the forward pass to which the
    work belongs, or None.
    """

    kind: str
    name: str
    device: str
    stream: int = field(default=0, repr=False)
    start: int = 0
    end: int = 0
    device_start: int = 0
    device_end: int = 0
    bytes: int = 0
    flops: float = 0.0
    place: Place | None = None
    thread: int = 0
    waits: bool = False
    backward: bool = False
    forward: Place | None = None
    shapes: str = ""
    stream_name: str = DEFAULT

    @staticmethod
    def of(row: tuple[Any, ...], places: list[Place]) -> Event:
        """An event of the recorder's tuple."""
        kind, line, node = row[0], row[10], row[13]
        place = places[line] if line >= 0 else None
        forward = places[node] if node >= 0 else None
        own = (*row[1:10], place, *row[11:13], node != NO_NODE, forward, row[14])
        return Event(KINDS[kind], *own)

    @property
    def module(self) -> str:
        """The path of the module of nn to which it belongs; "" if that is unknown."""
        place = self.forward if self.backward else self.place
        return "" if place is None else place.module

    @property
    def cpu_time(self) -> float:
        """Microseconds of the host's call."""
        return (self.end - self.start) / 1e3

    @property
    def device_time(self) -> float:
        """Microseconds of the work on a GPU; 0 where it was not measured."""
        return (self.device_end - self.device_start) / 1e3


@dataclass
class Average:
    """The events of one name; times are in microseconds."""

    key: str
    place: Place | None = None
    shapes: str = ""
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    device_time_total: float = 0.0
    bytes: int = 0
    flops: float = 0.0

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / max(self.count, 1)

    @property
    def device_time(self) -> float:
        return self.device_time_total / max(self.count, 1)

    @property
    def self_device_time_total(self) -> float:
        return self.device_time_total

    # The names of PyTorch's older releases.
    cuda_time = device_time
    self_cuda_time_total = self_device_time_total

    @property
    def cuda_time_total(self) -> float:
        return self.device_time_total


def _time(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3f}ms"
    return f"{microseconds:.3f}us"


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1024
    return f"{count:.2f} TB"


def _html(heads: Iterable[str], rows: Iterable[list[str]]) -> str:
    """A table for notebooks; cells are HTML."""
    lines = ["<table><thead><tr>"]
    lines += [f"<th>{escape(head)}</th>" for head in heads]
    lines.append("</tr></thead><tbody>")
    lines += ["<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows]
    lines.append("</tbody></table>")
    return "".join(lines)


def _text(heads: list[str], rows: list[list[str]]) -> str:
    """A table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    rule = "  ".join("-" * width for width in widths)

    def line(cells: list[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        cells = [first[0].ljust(first[1])] + [c.rjust(w) for c, w in others]
        return "  ".join(cells).rstrip()

    return "\n".join([rule, line(heads), rule, *map(line, rows), rule])


_SORTS = (
    *("cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time"),
    *("device_time_total", "self_device_time_total", "cuda_time", "cuda_time_total"),
    *("self_cuda_time_total", "count", "bytes", "flops"),
)


class EventList(list[Average]):
    """Averages, in the order of their first event."""

    with_flops = False

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        **ignored: object,
    ) -> str:
        """The averages as text; sort_by is an attribute, the largest first."""
        if sort_by is not None and sort_by not in _SORTS:
            raise AttributeError(
                f"table(): there is no {sort_by!r} to sort by; give one of "
                f"{', '.join(_SORTS)}"
            )
        heads, cells = self._cells(sort_by, row_limit)
        for row in cells:
            row[0] = row[0][:max_name_column_width]
        return _text(heads, cells) + "\n" + "".join(f"{t}\n" for t in self._totals())

    def _cells(
        self, sort_by: str | None, row_limit: int
    ) -> tuple[list[str], list[list[str]]]:
        """The heads of the table's columns, and its rows."""
        rows = list(self)
        if sort_by is not None:
            rows.sort(key=lambda row: -getattr(row, sort_by))
        if row_limit >= 0:
            rows = rows[:row_limit]
        total = sum(row.self_cpu_time_total for row in self)
        on_device = sum(row.device_time_total for row in self)
        heads = ["Name", "Self CPU %", "Self CPU", "CPU total", "CPU time avg"]
        if on_device:
            heads += ["CUDA total", "CUDA time avg"]
        shapes = any(row.shapes for row in rows)
        heads += ["Bytes", *["GFLOPs"] * self.with_flops, "# of Calls"]
        heads += ["Input Shapes"] * shapes
        cells = []
        for row in rows:
            name = row.key if row.place is None else f"{row.key} {row.place}"
            share = 100 * row.self_cpu_time_total / total if total else 0.0
            cells.append([name, f"{share:.2f}%"])
            cells[-1] += [_time(row.self_cpu_time_total), _time(row.cpu_time_total)]
            cells[-1] += [_time(row.cpu_time)]
            if on_device:
                cells[-1] += [_time(row.device_time_total), _time(row.device_time)]
            cells[-1].append(_size(row.bytes))
            if self.with_flops:
                cells[-1].append(f"{row.flops / 1e9:.3f}" if row.flops else "--")
            cells[-1].append(str(row.count))
            if shapes:
                cells[-1].append(row.shapes or "--")
        return heads, cells

    def _totals(self) -> list[str]:
        total = self.total_average()
        texts = [f"Self CPU time total: {_time(total.self_cpu_time_total)}"]
        if total.device_time_total:
            texts.append(f"CUDA time total: {_time(total.device_time_total)}")
        return texts

    def total_average(self) -> Average:
        """All events as one."""
        total = Average("Total")
        for row in self:
            total.count += row.count
            total.self_cpu_time_total += row.self_cpu_time_total
            total.cpu_time_total += row.self_cpu_time_total
            total.device_time_total += row.device_time_total
            total.bytes += row.bytes
            total.flops += row.flops
        return total

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads, cells = self._cells(None, 100)
        rows = [[*map(escape, row)] for row in cells]
        return _html(heads, rows) + f"<p>{'<br>'.join(self._totals())}</p>"


# The advice for a line that does this often, from so many times on.
OFTEN = 10
SMALL = 64 << 10


@dataclass
class Transfer:
    """The copies and waits of one line; time is of the host, in microseconds."""

    place: Place | None
    host_to_device: int = 0
    device_to_host: int = 0
    device_to_device: int = 0
    bytes: int = 0
    waits: int = 0
    time: float = 0.0
    devices: set[str] = field(default_factory=set)

    def advice(self) -> str:
        """The advice for it; "" if it is rare."""
        if self.waits >= OFTEN:
            return (
                f"waited {self.waits} times; keep the values on the device and read "
                "them once"
            )
        copies = self.host_to_device
        if copies >= OFTEN and self.bytes < copies * SMALL:
            return (
                f"{copies} small copies; create the data on the device, or copy it once"
            )
        return ""


class Transfers:
    """A table of copies and waits by line; `rows` has them as objects."""

    HEADS = ("Line", "to device", "to host", "between", "bytes", "waits", "time")

    def __init__(self, rows: list[Transfer]) -> None:
        self.rows = rows

    def _cells(self, row: Transfer) -> list[str]:
        where = "unknown" if row.place is None else row.place.where()
        counts = (row.host_to_device, row.device_to_host, row.device_to_device)
        cells = [where, *map(str, counts), _size(row.bytes)]
        return [*cells, str(row.waits), _time(row.time)]

    def __str__(self) -> str:
        text = _text([*self.HEADS], [self._cells(row) for row in self.rows])
        for row in self.rows:
            if advice := row.advice():
                cells = self._cells(row)
                code = row.place.code() if row.place else ""
                text += f"\n{cells[0]}: {code}\n    {advice}"
        return text

    __repr__ = __str__

    def sources(self, counters: Iterable[str]) -> str:
        """The lines that made what these attributes count, each with its code."""
        lines = []
        for row in self.rows:
            counts = [f"{n} {name}" for name in counters if (n := getattr(row, name))]
            if counts:
                lines.append(f"{self._cells(row)[0]}: {', '.join(counts)}")
                lines.append(f"    {row.place.code() if row.place else ''}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for row in self.rows:
            code = row.place.code() if row.place else ""
            cells = [*map(escape, self._cells(row)), f"<code>{escape(code)}</code>"]
            if advice := row.advice():
                cells[-1] += f"<br>{escape(advice)}"
            rows.append(cells)
        return _html((*self.HEADS, "source"), rows)


class Events:
    """The events of a profile."""

    def __init__(self, events: list[Event]) -> None:
        self.events = sorted(events, key=lambda e: (e.start, -e.end))
        names: dict[tuple[str, int], str] = {}
        sides: Counter[str] = Counter()
        for event in self.events:
            stream = (event.device, event.stream)
            if event.stream and stream not in names:
                sides[event.device] += 1
                names[stream] = f"side {sides[event.device]}"
            event.stream_name = names.get(stream, DEFAULT)

    def _inner_times(self) -> dict[int, float]:
        """The time that the events inside of each range took, by the range's id."""
        inner: dict[int, float] = {}
        open_ranges: dict[int, list[Event]] = {}
        for event in self.events:
            stack = open_ranges.setdefault(event.thread, [])
            while stack and stack[-1].end < event.end:
                stack.pop()
            if stack:
                above = id(stack[-1])
                inner[above] = inner.get(above, 0.0) + event.cpu_time
            stack.append(event)
        return inner

    def averages(self, by_line: bool = False, by_shapes: bool = False) -> EventList:
        """Events of one name, and of one line and of one shape if wanted, as one."""
        inner = self._inner_times()
        found: dict[tuple[Any, ...], Average] = {}
        for event in self.events:
            place = event.place.of_line() if by_line and event.place else None
            shapes = event.shapes if by_shapes else ""
            group = (event.name, place, shapes)
            row = found.setdefault(group, Average(*group))
            row.count += 1
            row.cpu_time_total += event.cpu_time
            row.self_cpu_time_total += event.cpu_time - inner.get(id(event), 0.0)
            row.device_time_total += event.device_time
            row.bytes += event.bytes
            row.flops += event.flops
        return EventList(found.values())

    def transfers(self) -> Transfers:
        """Copies and waits by line, those that took longest first."""
        found: dict[Place | None, Transfer] = {}
        for event in self.events:
            if event.kind not in COPIES and event.kind != "wait":
                continue
            place = event.place and event.place.of_line()
            row = found.setdefault(place, Transfer(place))
            if event.kind in COPIES:
                setattr(row, event.kind, getattr(row, event.kind) + 1)
            row.bytes += event.bytes
            row.waits += event.waits
            row.time += event.cpu_time
            row.devices.add(event.device)
        return Transfers(sorted(found.values(), key=lambda row: -row.time))
