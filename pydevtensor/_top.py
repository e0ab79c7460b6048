"""python -m pydevtensor top: the processes that use pydevtensor, and their GPUs.

Its source is /proc and, for real GPUs, NVIDIA's management library: the
processes watched take no part in it.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pwd
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# As csrc/sim/memory.cpp names the memory of a simulated GPU.
_SIMULATED = "/memfd:simulated-gpu"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Process:
    """A process that has loaded pydevtensor."""

    pid: int
    user: str
    command: str
    cpu_seconds: float
    simulated: list[tuple[int, int]] = field(default_factory=list)  # bytes used, of
    real: dict[int, int] = field(default_factory=dict)  # bytes used by GPU
    load: float | None = None  # share of one core, since the last look

    def devices(self) -> str:
        """Its GPUs: "2 simulated", "GPU 0, 1" or "-"."""
        parts = [f"{len(self.simulated)} simulated"] if self.simulated else []
        if self.real:
            parts.append("GPU " + ", ".join(map(str, sorted(self.real))))
        return ", ".join(parts) or "-"

    def memory(self) -> str:
        """The memory that it uses on them."""
        used = sum(u for u, _ in self.simulated) + sum(self.real.values())
        total = sum(t for _, t in self.simulated)
        if not self.simulated and not self.real:
            return "-"
        return f"{_size(used)} of {_size(total)}" if total else _size(used)


def _size(n: float) -> str:
    return f"{n / 2**30:.1f} GiB" if n >= 2**30 else f"{n / 2**20:.1f} MiB"


# --- processes -----------------------------------------------------------------------


def _gpus_of(pid: Path) -> list[tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for fd in (pid / "fd").iterdir():
        name = os.readlink(fd)
        if name.startswith(_SIMULATED):
            device, memory = map(int, name.split()[1:3])
            used = found.get(device, (0, 0))[0] + fd.stat().st_blocks * 512
            found[device] = used, memory
    return [found[device] for device in sorted(found)]


def _process(pid: Path) -> Process | None:
    """What /proc says; None if it is another program's, or not ours to see."""
    try:
        library = "/pydevtensor/_C."
        if library not in (pid / "maps").read_text(errors="replace"):
            return None
        words = (
            (pid / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
        times = (pid / "stat").read_text().rpartition(")")[2].split()
        try:
            user = pwd.getpwuid(pid.stat().st_uid).pw_name
        except KeyError:
            user = str(pid.stat().st_uid)
        seconds = (int(times[11]) + int(times[12])) / _TICKS
        command = " ".join(words.split())
        return Process(int(pid.name), user, command, seconds, _gpus_of(pid))
    except OSError:
        return None


def processes() -> list[Process]:
    """All processes of this machine that use pydevtensor, but for this one."""
    try:
        pids = [p for p in Path("/proc").iterdir() if p.name.isdigit()]
    except OSError:  # it is not mounted
        return []
    own = str(os.getpid())
    found = [_process(pid) for pid in pids if pid.name != own]
    return sorted((p for p in found if p is not None), key=lambda p: p.pid)


# --- real GPUs -----------------------------------------------------------------------


class _Memory(ctypes.Structure):
    total: int
    free: int
    used: int
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class _Utilization(ctypes.Structure):
    gpu: int
    memory: int
    _fields_ = [(name, ctypes.c_uint) for name in ("gpu", "memory")]


class _Use(ctypes.Structure):  # nvmlProcessInfo_v2_t
    pid: int
    used: int
    instance: int
    compute_instance: int
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class RealGPUs:
    """NVIDIA's GPUs, through NVML; none where it is not installed."""

    def __init__(self) -> None:
        self.library: ctypes.CDLL | None = None
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if library.nvmlInit_v2() == 0:
            self.library = library

    def driver(self) -> str:
        """The version of NVIDIA's driver, '' if there is none."""
        text = ctypes.create_string_buffer(96)
        if self.library is None or self.library.nvmlSystemGetDriverVersion(text, 96):
            return ""
        return text.value.decode(errors="replace")

    def rows(self, found: list[Process]) -> Iterator[list[str]]:
        """A row for each GPU; tells the processes what they use of it."""
        by_pid = {p.pid: p for p in found}
        library, count = self.library, ctypes.c_uint()
        if library is None or library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return
        for i in range(count.value):
            device = ctypes.c_void_p()
            if library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device)):
                continue
            name = ctypes.create_string_buffer(96)
            library.nvmlDeviceGetName(device, name, 96)
            memory, load = _Memory(), _Utilization()
            library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
            known = not library.nvmlDeviceGetUtilizationRates(
                device, ctypes.byref(load)
            )
            uses, room = (_Use * 256)(), ctypes.c_uint(256)
            if not library.nvmlDeviceGetComputeRunningProcesses_v2(
                device, ctypes.byref(room), uses
            ):
                for use in uses[: room.value]:
                    if use.pid in by_pid:
                        by_pid[use.pid].real[i] = use.used
            yield [
                f"GPU {i}",
                name.value.decode(errors="replace"),
                f"{_size(memory.used)} of {_size(memory.total)}",
                f"{load.gpu} %" if known else "-",
            ]


# --- the screen ----------------------------------------------------------------------


def _table(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (c.ljust(w) for c, w in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _screen(gpus: RealGPUs, before: dict[int, float], passed: float) -> list[str]:
    found = processes()
    cards = list(gpus.rows(found))
    lines: list[str] = []
    if cards:
        lines = [*_table([["GPU", "name", "memory", "load"], *cards]), ""]
    if not found:
        return [*lines, "no process uses pydevtensor"]
    rows = [["PID", "user", "devices", "memory of GPUs", "CPU", "time", "command"]]
    for p in found:
        if p.pid in before and passed > 0:
            p.load = (p.cpu_seconds - before[p.pid]) / passed
        before[p.pid] = p.cpu_seconds
        minutes, seconds = divmod(int(p.cpu_seconds), 60)
        load = "-" if p.load is None else f"{100 * p.load:.0f} %"
        cells = [str(p.pid), p.user, p.devices(), p.memory(), load]
        rows.append([*cells, f"{minutes}:{seconds:02}", p.command])
    return [*lines, *_table(rows)]


def main(arguments: list[str]) -> None:
    """Show the screen once, several times, or until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m pydevtensor top",
        description="Show the processes that use pydevtensor, and their GPUs.",
    )
    parser.add_argument("-d", "--delay", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument(
        "-n",
        "--times",
        type=int,
        metavar="N",
        help="how often; default: until Ctrl-C, or once if not in a terminal",
    )
    chosen = parser.parse_args(arguments)
    if not 0 < chosen.delay < 1e6 or (chosen.times is not None and chosen.times < 1):
        parser.error("give a delay above 0 and a number of times from 1 on")
    on_screen = sys.stdout.isatty()
    left: int | None = chosen.times if chosen.times or on_screen else 1
    gpus, looked = RealGPUs(), 0.0
    before: dict[int, float] = {}
    try:
        while left is None or left > 0:
            now = time.monotonic()
            lines = _screen(gpus, before, now - looked if looked else 0.0)
            looked = now
            if on_screen:
                width, height = shutil.get_terminal_size()
                print("\x1b[H\x1b[J", end="")
                lines = [line[:width] for line in lines[: height - 1]]
            print("\n".join(lines), flush=True)
            left = left and left - 1
            if left != 0:
                time.sleep(chosen.delay)
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
