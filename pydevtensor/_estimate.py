"""`python -m pydevtensor estimate`: how long a program would take on some cards.

The program runs once for each number of simulated GPUs, in a process of its own, with a
clock for each card (docs/clock.md).
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from html import escape
from typing import Any

from pydevtensor import _C, cuda
from pydevtensor.distributed._clocks import records
from pydevtensor.distributed._links import Cluster
from pydevtensor.profiler import DEFAULT, Event, in_background, profile

# The shares of a device's time, by their names in the clock's report.
LIMITS = {
    "bandwidth": "memory bandwidth",
    "flops": "FLOP/s",
    "accesses": "accesses of threads",
    "least": "small kernels",
    "copies": "copies",
}


@dataclass
class Estimate:
    """A run on some GPUs of one card; times are in nanoseconds."""

    card: str
    gpus: int
    time: int
    kernels: int
    copies: int
    waits: int
    waited: int
    peak: int
    memory: int
    busy: dict[str, int]  # of the busiest device, by LIMITS

    def host(self) -> int:
        """The time of the host's own work."""
        return self.time - self.waited

    def worked(self) -> int:
        """The time that the busiest GPU worked."""
        return sum(self.busy.values())

    def limit(self) -> str:
        """The reason that limited most of the busiest GPU's work."""
        name = max(self.busy, key=lambda name: self.busy[name])
        return f"{LIMITS[name]} ({percent(self.busy[name], self.worked())})"


def estimates(report: dict[str, Any]) -> list[Estimate]:
    """The estimates of a child's report."""
    found = []
    for card in report["cards"]:
        devices = card["devices"]
        busiest = max(devices, key=lambda d: sum(d[name] for name in LIMITS))
        found.append(
            Estimate(
                card["name"],
                len(devices),
                card["now"],
                report["kernels"],
                report["copies"],
                report["waits"],
                card["waited"],
                report["peak"],
                card["memory"],
                {name: busiest[name] for name in LIMITS},
            )
        )
    return found


# --- the child


_steps: list[int] = []  # the ends of the first optimizer's steps


def _clocks() -> dict[str, Any]:
    return dict(json.loads(_C._sim_control("clock") or "{}"))


def _note_steps() -> None:
    from pydevtensor.optim.optimizer import register_optimizer_step_post_hook

    first: list[Any] = []

    def note(optimizer: Any, *_: Any) -> None:
        first[:] = first or [optimizer]
        if optimizer is first[0] and _C._device_loaded("cuda"):
            card = _clocks()["cards"][0]
            ends = [device["end"] for device in card["devices"]]
            _steps.append(max(card["now"], *ends))

    register_optimizer_step_post_hook(note)


def _works(events: list[Event]) -> Iterator[list[Any]]:
    """The work on GPUs: its name with the source line, its row in a timeline, and its
    begin and end."""
    for event in events:
        if event.device_end > event.device_start:
            row = "kernels" if event.kind == "kernel" else "copies"
            side = "" if event.stream_name == DEFAULT else f", {event.stream_name}"
            line = os.path.basename(event.place.where()) if event.place else ""
            times = event.device_start, event.device_end
            yield [f"{event.name} {line}".rstrip(), row + side, *times]


def _write(path: str, recorded: profile | None) -> None:
    report: dict[str, Any] = {}
    if _C._device_loaded("cuda"):
        for i in range(cuda.device_count()):
            cuda.synchronize(i)
        report = _clocks()
        report["peak"] = max(map(cuda.max_memory_allocated, range(cuda.device_count())))
        report["calls"] = [call.record() for call in records]
        report["steps"] = _steps
        report["works"] = [*_works(recorded.events())] if recorded else []
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file)


def child(path: str, program: Sequence[str], works: bool) -> None:
    """Run the program; at its end, write the clocks to path. works: and each kernel."""
    from pydevtensor._run import run

    recorded = profile() if works else None
    atexit.register(_write, path, recorded)
    _note_steps()
    with in_background(recorded) if recorded else nullcontext():
        run(program)


# --- the parent


def measure(
    program: list[str],
    gpus: int,
    cards: list[str],
    host: str,
    quiet: bool,
    more: Mapping[str, str],
) -> dict[Any, Any]:
    """The report of a run. Exits with its status if it fails.

    A quiet run shows only its stderr, and only when it fails. more: variables of its
    environment.
    """
    memory = {name: size for name, size, *_ in _C._sim_cards(None)}
    largest = max(memory[card] for card in cards)
    chosen = {
        "PYDEVTENSOR_SIM_GPUS": str(gpus),
        "PYDEVTENSOR_SIM_CARD": ",".join(cards),
        "PYDEVTENSOR_SIM_HOST": host,
        "PYDEVTENSOR_SIM_MEMORY": os.environ.get(
            "PYDEVTENSOR_SIM_MEMORY", str(largest)
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "clocks.json")
        safe = ["-P"] if sys.flags.safe_path else []
        done = subprocess.run(
            [sys.executable, *safe, "-m", __name__, path, *program],
            env={**os.environ, **chosen, **more},
            stdout=subprocess.DEVNULL if quiet else None,
            stderr=subprocess.PIPE if quiet else None,
            text=True,
        )
        if done.returncode:
            sys.stderr.write(done.stderr or "")
            print(
                f"estimate: the program ended with status {done.returncode} on {gpus} "
                "simulated GPUs, so its time is not known",
                file=sys.stderr,
            )
            sys.exit(done.returncode if done.returncode > 0 else 1)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


def percent(part: float, whole: float) -> str:
    return f"{100 * part / max(whole, 1):.0f}%"


def time_text(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds / 1e3:.1f} us"


def bytes_text(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def table(found: list[Estimate]) -> str:
    """The estimates as text, a card's together, with the gain over its first row.

    The host's own work, which differs little between cards, has a row of its own.
    """
    heads = ["card", "GPUs", "time", "gain", "GPU works", "kernels", "copies", "waits"]
    rows = [[*heads, "waited", "memory", "most of the GPU's work"]]
    first: dict[str, int] = {}
    for each in found:
        gain = first.setdefault(each.card, each.time) / max(each.time, 1)
        counts = map(str, (each.kernels, each.copies, each.waits))
        memory = bytes_text(each.peak)
        if each.peak > each.memory:
            memory += f", more than {bytes_text(each.memory)}"
        rows.append([each.card, str(each.gpus), time_text(each.time), f"{gain:.2f}"])
        rows[-1] += [time_text(each.worked()), *counts, time_text(each.waited), memory]
        rows[-1].append(each.limit())
        share = f"{percent(each.host(), each.time)} of the time"
        rows.append(["  the host", "", time_text(each.host()), *[""] * 7, share])
    return "\n".join(columns(rows, 0, 9, 10))


def columns(rows: list[list[str]], *left: int) -> list[str]:
    """The rows as lines, these columns to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def svg(found: list[Estimate]) -> str:
    """The times as bars, with the host's own part darker."""
    left, room, height = 150, 560, 22
    longest = max((each.time for each in found), default=1) or 1
    parts = []
    for i, each in enumerate(found):
        y, wide = 10 + i * (height + 6), room * each.time / longest
        own = room * each.host() / longest
        name = f"{each.card}, {each.gpus} GPU{'s' * (each.gpus > 1)}"
        parts.append(f'<text x="6" y="{y + 15}">{escape(name)}</text>')
        parts.append(
            f'<rect class="time" x="{left}" y="{y}" width="{wide:.1f}" '
            f'height="{height}"/><rect class="host" x="{left}" y="{y}" '
            f'width="{own:.1f}" height="{height}"/>'
        )
        note = f"{time_text(each.time)}: {each.limit()}"
        parts.append(
            f'<text x="{left + wide + 6:.1f}" y="{y + 15}">{escape(note)}</text>'
        )
    width, bottom = left + room + 270, 10 + len(found) * (height + 6)
    legend = (
        f'<rect class="host" x="{left}" y="{bottom}" width="14" height="11"/>'
        f'<text x="{left + 20}" y="{bottom + 10}">the host\'s own work</text>'
        f'<rect class="time" x="{left + 160}" y="{bottom}" width="14" height="11"/>'
        f'<text x="{left + 180}" y="{bottom + 10}">it waits for the GPUs</text>'
    )
    style = (
        "text { font: 11px system-ui, sans-serif; fill: #333; }"
        ".time { fill: #a9bfd9; } .host { fill: #3b78c4; }"
        "@media (prefers-color-scheme: dark) { text { fill: #ddd; } }"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{bottom + 20}" viewBox="0 0 {width} {bottom + 20}">'
        f"<style>{style}</style>{''.join(parts)}{legend}</svg>"
    )


def _arguments(given: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="python -m pydevtensor estimate",
        usage="%(prog)s script.py ARGUMENTS --cards t4,a100,h200 [--gpus 1,2,4]",
        description="How long a program would take on cards: docs/clock.md. These "
        "options may stand anywhere; what follows -- is the program's.",
        allow_abbrev=False,
    )
    parser.add_argument("--cards", required=True, help="names, separated by commas")
    parser.add_argument("--gpus", default="1", help="how many, such as 1,2,4")
    parser.add_argument(
        "--host", choices=("fixed", "measured"), default="fixed",
        help="the time of the program's own code: a model of it (docs/clock.md), or "
        "what it takes on this machine",
    )  # fmt: skip
    parser.add_argument("--svg", metavar="FILE", help="also draw the times")
    parser.add_argument("--ranks", help="how many, such as 1,8,64: docs/scale.md")
    parser.add_argument("--link", default="ib400", help="between nodes of 8 GPUs")
    parser.add_argument("--node", type=int, default=8, help="another number of them")
    given, more = list(given), []
    if "--" in given:
        at = given.index("--")
        given, more = given[:at], given[at + 1 :]
    chosen, program = parser.parse_known_args(given)
    program += more
    if not program:
        parser.error("give the program to run: script.py, -m module or -c code")
    try:
        chosen.cards = _C._sim_cards(chosen.cards)
        if len(chosen.cards) > 8:
            raise ValueError(f"--cards: {len(chosen.cards)} cards; give 8 or fewer")
        chosen.gpus = [int(count) for count in chosen.gpus.split(",")]
        if not all(1 <= count <= 32 for count in chosen.gpus):
            raise ValueError(f"--gpus {chosen.gpus}: give numbers from 1 to 32")
        if chosen.ranks:
            chosen.ranks = [int(count) for count in chosen.ranks.split(",")]
            if min(chosen.ranks) < 1 or chosen.node < 1 or chosen.gpus != [1]:
                raise ValueError("--ranks and --node: give 1 or more, and no --gpus")
            Cluster.of(chosen.cards[0], chosen.node, chosen.link)
    except ValueError as error:
        parser.error(str(error))
    return chosen, program


def main(given: Sequence[str], scale: Callable[..., int]) -> int:
    """Estimate a program: the exit status. scale: what --ranks wants."""
    chosen, program = _arguments(given)
    if chosen.ranks:
        return scale(chosen, program)
    found: list[Estimate] = []
    for gpus in chosen.gpus:
        report = measure(program, gpus, chosen.cards, chosen.host, bool(found), {})
        if not report.get("kernels") and not report.get("copies"):
            print("estimate: the program used no GPU", file=sys.stderr)
            return 1
        found += estimates(report)
    found.sort(key=lambda each: chosen.cards.index(each.card))
    sys.stdout.flush()
    print(table(found))
    if chosen.svg:
        with open(chosen.svg, "w", encoding="utf-8") as file:
            file.write(svg(found))
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--works":
        child(sys.argv[2], sys.argv[3:], True)
    else:
        child(sys.argv[1], sys.argv[2:], False)
