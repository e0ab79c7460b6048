"""A profile as JSON in Chrome's trace event format, which Perfetto opens."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from typing import Any

from pydevtensor.profiler._events import Event


def _named(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    where = {"ph": "M", "pid": process, "tid": thread}
    return {"name": kind, **where, "args": {"name": name}}


def _span(event: Event, begin: int, end: int, **where: int) -> dict[str, Any]:
    args: dict[str, Any] = {"device": event.device, "bytes": event.bytes}
    if event.flops:
        args["flops"] = event.flops
    if event.shapes:
        args["shapes"] = event.shapes
    if event.place is not None:
        args["line"] = str(event.place)
    if event.forward is not None:
        args["forward line"] = str(event.forward)
    if event.module:
        args["module"] = event.module
    times = {"ts": begin / 1e3, "dur": (end - begin) / 1e3}
    return {"ph": "X", "name": event.name, "cat": event.kind, **where, **times} | {
        "args": args
    }


def _memory(event: Event, total: dict[str, int]) -> dict[str, Any]:
    change = event.bytes if event.kind == "allocate" else -event.bytes
    total[event.device] = total.get(event.device, 0) + change
    where = {"ph": "C", "pid": 0, "ts": event.start / 1e3}
    return {"name": f"memory of {event.device}", **where} | {
        "args": {"bytes": total[event.device]}
    }


def trace_events(events: list[Event]) -> Iterator[dict[str, Any]]:
    """The host is process 0, GPU i process i + 1; a GPU's threads are its streams."""
    yield _named("process_name", 0, 0, "host")
    streams: dict[tuple[int, int], int] = {}
    total: dict[str, int] = {}
    for number, event in enumerate(events):
        if event.kind in ("allocate", "free"):
            yield _memory(event, total)
            continue
        yield _span(event, event.start, event.end, pid=0, tid=event.thread)
        if not event.device_end:
            continue
        process = int(event.device.rpartition(":")[2]) + 1
        stream = (process, event.stream)
        if stream not in streams:
            streams[stream] = sum(known[0] == process for known in streams)
            yield _named("process_name", process, 0, event.device)
            yield _named("thread_name", process, streams[stream], event.stream_name)
        lane = streams[stream]
        yield _span(event, event.device_start, event.device_end, pid=process, tid=lane)
        arrow = {"name": "launch", "cat": "launch", "id": number}
        yield {**arrow, "ph": "s", "pid": 0, "tid": event.thread} | {
            "ts": event.start / 1e3
        }
        yield {**arrow, "ph": "f", "bp": "e", "pid": process, "tid": lane} | {
            "ts": event.device_start / 1e3
        }


def write(path: str, events: list[Event]) -> None:
    """Write the trace to a file."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(os.fspath(path), "wt", encoding="utf-8") as file:
        json.dump(
            {"traceEvents": [*trace_events(events)], "displayTimeUnit": "ms"}, file
        )
