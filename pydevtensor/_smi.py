"""python -m pydevtensor smi: versions, GPUs and processes, as nvidia-smi lays them out.

It works where there is no GPU and no driver, and shows simulated GPUs: those that the
environment chooses, and those of running programs, which belong to one process each.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

import pydevtensor
from pydevtensor import _C, cuda
from pydevtensor._top import Process, RealGPUs, _size, processes

_HEADS = ["GPU", "Name", "Memory used / total", "Load"]


def _versions(gpus: RealGPUs) -> str:
    """The versions of the library, the driver and CUDA."""
    facts = _C._facts("cuda")
    cuda_version = facts.get("runtime", "none")
    if facts.get("kind") == "simulated":
        cuda_version += ", simulated"
    driver = gpus.driver() or "none"
    return (
        f"pydevtensor {pydevtensor.__version__}    Driver: {driver}    "
        f"CUDA: {cuda_version}"
    )


def _chosen() -> Iterator[list[str]]:
    """The GPUs that the environment gives a program."""
    for i in range(cuda.device_count()):
        facts = cuda.get_device_properties(i)
        name = facts.name
        if facts.simulated and "simulated" not in name.lower():
            name += " (simulated)"
        try:
            free, total = cuda.mem_get_info(i)
            memory = f"{_size(total - free)} / {_size(total)}"
        except RuntimeError:
            memory = f"? / {_size(facts.total_memory)}"
        yield [str(i), name, memory, "-"]


def _of_programs(found: list[Process]) -> Iterator[list[str]]:
    """The simulated GPUs of running programs."""
    for process in found:
        for i, (used, total) in enumerate(process.simulated):
            name = f"Simulated GPU of process {process.pid}"
            yield [str(i), name, f"{_size(used)} / {_size(total)}", "-"]


def _box(head: str, tables: list[list[list[str]]]) -> Iterator[str]:
    """A frame of a line and tables, each as wide as the widest."""
    widths = [[max(map(len, c)) for c in zip(*rows, strict=True)] for rows in tables]
    inner = max([len(head), *(sum(w) + 3 * len(w) - 3 for w in widths)])
    for each in widths:
        each[-1] += inner - (sum(each) + 3 * len(each) - 3)
    yield "+" + "-" * (inner + 2) + "+"
    yield f"| {head.ljust(inner)} |"
    for rows, each in zip(tables, widths, strict=True):
        line = "+" + "+".join("-" * (w + 2) for w in each) + "+"
        yield line
        for i, row in enumerate(rows):
            cells = (c.ljust(w) for c, w in zip(row, each, strict=True))
            yield f"| {' | '.join(cells)} |"
            if i == 0:
                yield line.replace("-", "=")
        yield line
    if not tables:
        yield "+" + "-" * (inner + 2) + "+"


def _lines() -> Iterator[str]:
    real, found = RealGPUs(), processes()
    rows = [
        [name.removeprefix("GPU "), model, memory.replace(" of ", " / "), load]
        for name, model, memory, load in real.rows(found)
    ]
    if cuda.is_simulated() or not rows:
        rows += _chosen()
    why = cuda.why_unavailable()
    usable = bool(rows) and not why  # hidden GPUs have rows too
    rows += _of_programs(found)
    tables = [[_HEADS, *rows]] if rows else []
    if found:
        tables.append([["PID", "User", "GPUs", "Memory of GPUs", "Command"]])
        for p in found:
            cells = [str(p.pid), p.user, p.devices(), p.memory(), p.command[:40]]
            tables[-1].append(cells)
    yield from _box(_versions(real), tables)
    if why:
        yield why
    if not usable:
        yield (
            "A program finds no GPU here. For two simulated ones, call "
            "torch.cuda.simulate(2) in it, or set PYDEVTENSOR_SIM_GPUS=2."
        )
    if not found:
        yield "No running process uses pydevtensor."


def main(arguments: list[str]) -> None:
    """Print the tables."""
    argparse.ArgumentParser(
        prog="python -m pydevtensor smi",
        description="Show versions, GPUs (real and simulated) and their processes.",
    ).parse_args(arguments)
    try:
        print("\n".join(_lines()), flush=True)
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
