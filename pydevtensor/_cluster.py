"""Reports of the time that ranks of a simulated cluster take: docs/scale.md.

`python -m pydevtensor launch --card` prints one at the end; `estimate --ranks` computes
one for other numbers of ranks from the record of a single rank.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from html import escape
from math import log2
from statistics import fmean
from typing import Any

from pydevtensor import _C
from pydevtensor._estimate import (
    LIMITS,
    bytes_text,
    columns,
    measure,
    percent,
    time_text,
)
from pydevtensor.distributed._links import Cluster

Record = dict[str, Any]  # of a rank, or of one of its calls


def check(card: str, gpus: int, link: str) -> str:
    """The card's whole name. ValueError for what is not known."""
    names = _C._sim_cards(card)
    if len(names) > 1:
        raise ValueError(f"--card {card}: give one card")
    Cluster.of(names[0], gpus, link)
    if gpus > 32:
        raise ValueError(f"--gpus {gpus}: give numbers from 1 to 32")
    return names[0]


def environment(card: str, gpus: int, link: str) -> dict[str, Any]:
    """The variables of a rank of a simulated cluster."""
    return {
        "PYDEVTENSOR_SIM_GPUS": gpus,
        "PYDEVTENSOR_SIM_CARD": card,
        "PYDEVTENSOR_SIM_LINK": link,
        "PYDEVTENSOR_SIM_HOST": "fixed",
    }


def report(options: argparse.Namespace, paths: Sequence[str]) -> str:
    """The report of the ranks' records. Writes the timeline, too."""
    ranks = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            ranks.append(json.load(file))
    if not all(rank.get("cards") for rank in ranks):
        return "launch: some rank used no GPU, so there is no time to report"
    if options.timeline:
        with open(options.timeline, "w", encoding="utf-8") as file:
            json.dump(timeline(ranks), file)
    title = f"{options.nodes} x {options.gpus} {options.card}"
    if options.nodes > 1:
        title += f", {options.link} between nodes"
    return "\n".join([title, *_summary(ranks), "", *columns(_lines(ranks), 0, 1)])


def step_time(rank: Record) -> float:
    """The mean nanoseconds of an optimizer's steps after the first; of the whole run if
    there are fewer than two."""
    ends = rank["steps"]
    if len(ends) > 1:
        return float(ends[-1] - ends[0]) / (len(ends) - 1)
    return float(run_time(rank))


def run_time(rank: Record) -> int:
    """Nanoseconds of a rank's run."""
    card = rank["cards"][0]
    return int(max(card["now"], *(device["end"] for device in card["devices"])))


def _idle(call: Record) -> int:
    """The nanoseconds for which a rank only waits for a call."""
    return int(max(0, call["end"] - call["came"]))


def _late(call: Record) -> int:
    """The nanoseconds for which a call waits for other ranks to begin it."""
    return max(0, _idle(call) - (call["end"] - call["begin"]))


def _summary(ranks: list[Record]) -> list[str]:
    times = [run_time(rank) for rank in ranks]
    total = sum(times)
    calls = [call for rank in ranks for call in rank["calls"]]
    late = sum(map(_late, calls))
    sent = sum(map(_idle, calls)) - late
    works = [
        max(sum(d[name] for name in LIMITS) for d in rank["cards"][0]["devices"])
        for rank in ranks
    ]
    fullest = max(range(len(ranks)), key=lambda rank: ranks[rank]["peak"])
    peak, memory = ranks[fullest]["peak"], ranks[fullest]["cards"][0]["memory"]
    steps = max(len(rank["steps"]) for rank in ranks)
    return [
        f"step     {time_text(max(map(step_time, ranks)))}, {steps} steps; the run "
        f"{time_text(max(times))}",
        f"GPUs     {percent(sum(works), total)} of the time; they wait "
        f"{percent(sent, total)} for what is sent, {percent(late, total)} for "
        "other ranks",
        f"memory   {bytes_text(peak)} on rank {fullest}, the fullest, of "
        f"{bytes_text(memory)}",
    ]


def _lines(ranks: list[Record]) -> list[list[str]]:
    """A row for each source line, with means over the ranks that call there."""
    heads = ["line", "call", "ranks", "calls", "bytes", "time", "overlaps", "waits"]
    found: dict[tuple[str, str], list[list[Record]]] = {}
    for rank in ranks:
        mine: dict[tuple[str, str], list[Record]] = {}
        for call in rank["calls"]:
            mine.setdefault((call["line"], call["op"]), []).append(call)
        for key, calls in mine.items():
            found.setdefault(key, []).append(calls)
    rows = []
    for (line, op), each in found.items():
        count = fmean(len(calls) for calls in each)
        size = fmean(sum(c["size"] for c in calls) for calls in each)
        time = fmean(sum(c["end"] - c["begin"] for c in calls) for calls in each)
        late = fmean(sum(map(_late, calls)) for calls in each)
        idle = fmean(sum(map(_idle, calls)) for calls in each) - late
        row = [line, op, str(len(each)), f"{count:.0f}", bytes_text(size)]
        row += [time_text(time), percent(time - idle, time), time_text(idle)]
        rows.append((idle + late, [*row, time_text(late)]))
    rows.sort(key=lambda row: -row[0])
    return [[*heads, "for ranks"], *(row for _, row in rows)]


def timeline(ranks: list[Record]) -> Record:
    """A trace in Chrome's format: the calls of all ranks, the waits for them, and the
    kernels and copies of their GPUs."""
    events: list[Record] = []
    for number, rank in enumerate(ranks):
        for call in rank["calls"]:
            name, size = f"{call['op']} {call['line']}", call["size"]
            sends = name, "sends", call["begin"], call["end"] - call["begin"]
            waits = name, "waits", call["came"], _idle(call)
            for name, row, begin, lasts in (sends, waits):
                if lasts:
                    events.append(_span(number, name, row, begin, lasts))
                    events[-1]["args"] = {"bytes": size}
        for name, row, begin, end in rank.get("works", ()):
            events.append(_span(number, name, row, begin, end - begin))
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _span(rank: int, name: str, row: str, begin: int, lasts: int) -> Record:
    where = {"name": name, "ph": "X", "pid": rank, "tid": row}
    return {**where, "ts": begin / 1e3, "dur": lasts / 1e3}


# --- other numbers of ranks


def scaled(
    rank: Record, cluster: Cluster, count: int, divides: bool
) -> tuple[float, ...]:
    """Predict the run of one of `count` ranks, from the record of a run of one rank.

    divides: the work is divided among the ranks; else each does the same work. Returns
    the nanoseconds of the run, and those of its waits for calls.
    """
    whole, card = run_time(rank), rank["cards"][0]
    part = 1.0
    if divides:  # except the host's own time and the least times of kernels
        busiest = max(card["devices"], key=lambda d: sum(d[name] for name in LIMITS))
        fixed = max(card["now"] - card["waited"], busiest["least"]) / max(whole, 1)
        part = min(fixed, 1.0) + (1 - min(fixed, 1.0)) / count
    events = [
        event
        for number, call in enumerate(rank["calls"])
        for event in (
            (call["ready"], 0, number),
            (max(call["came"], call["ready"]), 1, number),
        )
    ]
    delay = sends = 0.0  # the delay until now; the end of the last call
    ends: dict[int, float] = {}
    for time, waits, number in sorted(events):
        now = time * part + delay
        if waits:
            delay += max(0.0, ends[number] - now)
            continue
        call = rank["calls"][number]
        cost = cluster.time(call["op"], call["size"], [*range(count)])
        sends = ends[number] = max(now, sends) + cost
    return whole * part + delay, delay


def scaling(card: str, report: Record, chosen: argparse.Namespace) -> list[list[str]]:
    """A row for each number of ranks, after the heads."""
    cluster = Cluster.of(card, chosen.node, chosen.link)
    steps = run_time(report) / step_time(report)
    first, _ = scaled(report, cluster, 1, False)
    rows = [
        ["ranks", "as much each", "efficiency", "waits", "divided", "speedup", "waits"]
    ]
    for count in chosen.ranks:
        weak, waits = scaled(report, cluster, count, False)
        strong, stands = scaled(report, cluster, count, True)
        row = [str(count), time_text(weak / steps), percent(first, weak)]
        row += [percent(waits, weak), time_text(strong / steps)]
        rows.append([*row, f"{first / strong:.1f}", percent(stands, strong)])
    return rows


def estimate(chosen: argparse.Namespace, program: list[str]) -> int:
    """`estimate --ranks`: run the program as one rank, and scale it. The status."""
    alone = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    alone |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    alone["PYDEVTENSOR_SIM_LINK"] = chosen.link
    drawn = []
    for number, card in enumerate(chosen.cards):
        found = measure(program, 1, [card], chosen.host, bool(number), alone)
        if not found.get("calls"):
            print("estimate: the program made no call of ranks", file=sys.stderr)
            return 1
        title = f"{card}, nodes of {chosen.node}, {chosen.link}"
        print("\n".join([title, *columns(scaling(card, found, chosen))]))
        drawn.append((title, found, card))
    if chosen.svg:
        with open(chosen.svg, "w", encoding="utf-8") as file:
            file.write(svg(chosen, drawn))
    return 0


def svg(chosen: argparse.Namespace, drawn: list[tuple[str, Record, str]]) -> str:
    """A plot of the speedup over one rank: with the same work for each, and dashed with
    the work divided. Both axes are logarithmic."""
    counts = sorted({1, *chosen.ranks})
    wide, high, most = 420, 300, log2(max(2, counts[-1]))

    def at(n: int, gain: float) -> str:
        up = max(0, high * log2(gain) / most)
        return f"{50 + wide * log2(n) / most:.1f},{20 + high - up:.1f}"

    parts = [f'<path class="ideal" d="M{at(1, 1)} L{at(counts[-1], counts[-1])}"/>']
    for number, (title, found, card) in enumerate(drawn):
        cluster = Cluster.of(card, chosen.node, chosen.link)
        first, _ = scaled(found, cluster, 1, False)
        for divides in (False, True):
            points = []
            for n in counts:
                gain = first / scaled(found, cluster, n, divides)[0]
                points.append(at(n, gain if divides else gain * n))
            dashes = ' stroke-dasharray="5 4"' * divides
            color = f"hsl({(210 + 70 * number) % 360} 55% 50%)"
            parts.append(f'<path stroke="{color}" d="M{" L".join(points)}"{dashes}/>')
        below = 34 + 14 * number
        parts.append(f'<text x="60" y="{below}" fill="{color}">{escape(title)}</text>')
    for n in counts:
        x, y = at(n, n).split(",")
        parts.append(f'<text x="{x}" y="{high + 36}">{n}</text>')
        parts.append(f'<text x="8" y="{y}">{n}</text>')
    style = (
        "path { fill: none; stroke-width: 2 } .ideal { stroke: #aaa; stroke-width: 1 }"
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {wide + 90} {high + 50}">'
        f"<style>{style} text {{ font: 11px system-ui, sans-serif }}</style>"
        f"{''.join(parts)}</svg>"
    )
