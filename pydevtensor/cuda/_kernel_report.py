"""Kernel.report(): how a launch accesses memory, line by line.

The simulator counts (csrc/sim/count.h); this module finds the lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydevtensor.cuda import _kernel_checks

_FILE = "kernel.cu"  # the name of the source, where the line is not of a header
_WRITE, _SHARED, _ATOMIC = 1, 2, 4
# Blocks that a multiprocessor holds at most, by compute capability; of others 32.
_BLOCKS = {(7, 5): 16, (8, 6): 16, (8, 7): 16, (8, 9): 24}


@dataclass
class KernelLine:
    """A line of a kernel that accesses memory, and what a launch did there.

    file, line          where it is
    source              its text
    runs                how many threads ran it, each turn of a loop counted
    bytes_read, bytes_written   of global memory, by threads
    shared_bytes        read and written in shared memory
    requests            of warps, for global and shared memory
    sectors             of 32 bytes of global memory, of all requests
    sectors_per_request, sectors_needed    the mean, and that of the fewest possible
    bank_conflicts      how many times as long as without conflicts shared memory takes
    collisions          lanes of a warp whose atomics meet at one address: the mean of
                        the most in a request
    idle                the share of lanes that do not take part
    """

    file: str
    line: int
    source: str
    runs: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    shared_bytes: int = 0
    requests: int = 0
    sectors: int = 0
    sectors_per_request: float = 0.0
    sectors_needed: float = 0.0
    bank_conflicts: float = 0.0
    collisions: float = 0.0
    idle: float = 0.0


@dataclass
class KernelReport:
    """What Kernel.report() counts.

    kernel, grid, block   the launch
    device          the card's name
    lines           a KernelLine for each line that accesses memory
    occupancy       threads that a multiprocessor holds at a time, as a share of what it
                    can; registers, which may make it less, are not known
    blocks          blocks that a multiprocessor holds at a time
    limit           what bounds them: 'threads', 'blocks', 'shared memory' or 'grid'
    shared_memory   bytes of a block
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    device: str
    lines: list[KernelLine]
    occupancy: float
    blocks: int
    limit: str
    shared_memory: int

    def _title(self) -> str:
        return (
            f"{self.kernel}, {self.grid} blocks of {self.block} threads, "
            f"{self.device}: occupancy {self.occupancy:.0%}; blocks that a "
            f"multiprocessor holds at a time: {self.blocks}, limited by {self.limit}"
        )

    def _table(self) -> list[list[str]]:
        rows = [["line", *_HEADS, "source"]]
        for each in self.lines:
            name = "" if each.file == _FILE else each.file + ":"
            rows.append([f"{name}{each.line}", *_cells(each), each.source])
        return rows

    def __str__(self) -> str:
        rows = self._table()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
        listed = [
            "  ".join(
                [*(c.rjust(w) for c, w in zip(row[:-1], widths, strict=True)), row[-1]]
            )
            for row in rows
        ]
        return "\n".join([self._title(), *listed])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html

        rows = self._table()
        style = "text-align: right"
        head = "".join(f"<th>{html.escape(text)}</th>" for text in rows[0])
        body = "".join(
            "<tr>"
            + "".join(f'<td style="{style}">{html.escape(c)}</td>' for c in row[:-1])
            + f'<td style="text-align: left"><code>{html.escape(row[-1])}</code></td>'
            + "</tr>"
            for row in rows[1:]
        )
        return (
            f"<p>{html.escape(self._title())}</p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )


_HEADS = (
    *("runs", "read", "written", "shared", "sectors", "needed", "conflicts"),
    *("collisions", "idle"),
)


def _cells(each: KernelLine) -> list[str]:
    wide = each.sectors > 0

    def shown(value: float, holds: bool) -> str:
        return f"{value:.4g}" if holds else ""

    return [
        str(each.runs),
        *(str(n or "") for n in (each.bytes_read, each.bytes_written)),
        str(each.shared_bytes or ""),
        shown(each.sectors_per_request, wide),
        shown(each.sectors_needed, wide),
        shown(each.bank_conflicts, each.bank_conflicts > 0),
        shown(each.collisions, each.collisions > 0),
        f"{each.idle:.0%}",
    ]


def report(
    kernel: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    limits: dict[str, Any],
    handle: int,
    rows: list[list[int]],
) -> KernelReport:
    """The report of the rows that the simulator counted for a module."""
    from pydevtensor.cuda import _kernel_checks, _kernel_object

    module = _kernel_checks._modules[handle]
    lines = _lines(module, rows)
    texts = (module.source, *module.headers.values())
    shared += _kernel_object.fixed(module.object, texts, kernel)
    fit, limit = _resident(grid, block, shared, limits)
    threads = block[0] * block[1] * block[2]
    warps = (threads + 31) // 32
    most = limits["max_threads_per_multi_processor"]
    name = limits["name"]
    return KernelReport(
        kernel, grid, block, name, lines, fit * warps * 32 / most, fit, limit, shared
    )


def _resident(
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    limits: dict[str, Any],
) -> tuple[int, str]:
    """How many blocks a multiprocessor holds, and what limits them."""
    threads = limits["max_threads_per_multi_processor"]
    warps = (block[0] * block[1] * block[2] + 31) // 32
    blocks = _BLOCKS.get((limits["major"], limits["minor"]), 32)
    # The runtime keeps some of each block's.
    kept = 1024 if limits["major"] >= 8 else 0
    memory = limits["shared_memory_per_block_optin"] + kept
    every = {
        "threads": threads // (32 * warps),
        "blocks": blocks,
        "shared memory": memory // max(shared + kept, 1),
        "grid": -(-grid[0] * grid[1] * grid[2] // limits["multi_processor_count"]),
    }
    limit = min(every, key=lambda each: every[each])
    return every[limit], limit


def _lines(module: _kernel_checks._Module, rows: list[list[int]]) -> list[KernelLine]:
    from pydevtensor.cuda import _kernel_object

    if not module.lines:
        module.lines.append(module.object.lines())
    files = {_FILE: module.source, **module.headers}
    found: dict[tuple[str, int], list[list[int]]] = {}
    for row in rows:
        at, how = row[:2]
        place: tuple[str, int] | None = (_FILE, at)
        if not how & _ATOMIC:
            place = _kernel_object.place(module.lines[0], at, set(files))
        if place:
            found.setdefault(place, []).append(row)
    return [_line(files, place, found[place]) for place in sorted(found)]


def _line(
    files: dict[str, str], place: tuple[str, int], rows: list[list[int]]
) -> KernelLine:
    file, number = place
    text = files.get(file, "").splitlines()
    source = text[number - 1].strip() if number <= len(text) else ""
    made = KernelLine(file, number, source)
    sums = [sum(column) for column in zip(*rows, strict=True)]
    _, _, _, _, made.requests, lanes, idle, made.sectors, least = sums[:9]
    waves, parts, changes, rounds = sums[9:]
    made.runs = max(row[2] for row in rows)
    for _, how, _, bytes_moved, *_ in rows:
        if how & _SHARED:
            made.shared_bytes += bytes_moved
        elif how & _WRITE:
            made.bytes_written += bytes_moved
        else:
            made.bytes_read += bytes_moved
    wide = sum(row[4] for row in rows if not row[1] & _SHARED)
    if wide:
        made.sectors_per_request = made.sectors / wide
        made.sectors_needed = least / wide
    made.bank_conflicts = waves / parts if parts else 0.0
    made.collisions = rounds / changes if changes else 0.0
    made.idle = idle / lanes
    return made
