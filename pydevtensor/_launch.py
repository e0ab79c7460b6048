"""python -m pydevtensor launch: runs a program as several processes, its ranks.

It takes the options of PyTorch's torchrun. Each process runs the program with `import
torch` meaning pydevtensor, and finds RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT in its environment, from which init_process_group() takes them.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

_PATIENCE = 10.0  # seconds that ranks have to end after another one failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pydevtensor launch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def option(name: str, **more: object) -> None:
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", **more)  # type: ignore[arg-type]

    option("nproc-per-node", default="1", metavar="N", help="processes, or cpu, gpu")
    option("nnodes", default="1", metavar="1", help="machines: 1")
    option("node-rank", type=int, default=0, metavar="0", help="of this machine: 0")
    option("master-addr", default="127.0.0.1", help="where rank 0 listens")
    option("master-port", type=int, default=0, help="its port; 0: one that is free")
    parser.add_argument("--standalone", action="store_true", help="the same as without")
    option("no-python", action="store_true", help="program is a command")
    parser.add_argument("-m", "--module", action="store_true", help="it is a module")
    parser.add_argument("program", help="script.py, or the module with -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's")
    return parser


def _count(parser: argparse.ArgumentParser, text: str) -> int:
    """The number of processes."""
    if text in ("cpu", "auto", "gpu"):
        from pydevtensor import cuda

        gpus = cuda.device_count()
        if text == "gpu" and not gpus:
            parser.error("--nproc-per-node is gpu, and no GPU is there")
        return len(os.sched_getaffinity(0)) if text == "cpu" or not gpus else gpus
    if not text.isdigit() or not int(text):
        parser.error(f"--nproc-per-node is {text!r}; give a number, cpu or gpu")
    return int(text)


def _free_port(address: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def _command(options: argparse.Namespace) -> list[str]:
    if options.no_python:
        return [options.program, *options.arguments]
    kind = ["-m"] if options.module else []
    start = [sys.executable, "-m", "pydevtensor", "run", *kind]
    return [*start, options.program, *options.arguments]


def _environment(options: argparse.Namespace, rank: int, size: int) -> dict[str, str]:
    ours = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": size,
        "GROUP_RANK": 0,
        "MASTER_ADDR": options.master_addr,
        "MASTER_PORT": options.master_port,
    }
    threads = max(1, len(os.sched_getaffinity(0)) // size)
    defaults = {
        "PYDEVTENSOR_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
    }
    return {**defaults, **os.environ, **{k: str(v) for k, v in ours.items()}}


def main(arguments: Sequence[str]) -> int:
    """Run the program. The exit status of a rank that failed, or 0."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.nnodes not in ("1", "1:1"):
        parser.error(
            f"--nnodes is {options.nnodes}; ranks of several machines are not there "
            "yet, so give 1"
        )
    size = _count(parser, options.nproc_per_node)
    if not options.master_port:
        options.master_port = _free_port(options.master_addr)
    command = _command(options)
    ranks = [
        subprocess.Popen(command, env=_environment(options, rank, size))
        for rank in range(size)
    ]

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    try:
        return _wait(ranks)
    finally:
        _end(ranks)


def _wait(ranks: list[subprocess.Popen[bytes]]) -> int:
    """Until all have ended. After a failure, the others have some seconds.

    They notice it in their next collective call, and say at which line.
    """
    running, first, end = {*range(len(ranks))}, 0, math.inf
    while running and time.monotonic() < end:
        for rank in sorted(running):
            status = ranks[rank].poll()
            if status is None:
                continue
            running.remove(rank)
            if status:
                how = f"exit status {status}"
                if status < 0:
                    how = f"signal {signal.Signals(-status).name}"
                print(f"launch: rank {rank} has ended with {how}", file=sys.stderr)
                first = first or (status if status > 0 else 128 - status)
                end = min(end, time.monotonic() + _PATIENCE)
        time.sleep(0.02)
    return first


def _end(ranks: list[subprocess.Popen[bytes]]) -> None:
    for send in (subprocess.Popen.terminate, subprocess.Popen.kill):
        for each in ranks:
            if each.poll() is None:
                send(each)
        try:
            for each in ranks:
                each.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            continue
        return
