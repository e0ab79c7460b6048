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
import tempfile
import time
from collections.abc import Sequence
from types import FrameType

from pydevtensor import _cluster

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
    option("nodes", type=int, default=1, metavar="2", help="nodes that are simulated")
    option("gpus", type=int, default=1, metavar="4", help="simulated GPUs of a node")
    option("card", help="the card that they are like; with it, ranks have a clock")
    option("link", default="ib400", help="between nodes: eth25 to ib400, or efa400")
    option("timeline", metavar="FILE", help="also write calls and kernels, as a trace")
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


def _command(options: argparse.Namespace, record: str) -> list[str]:
    """The command of a rank. record: the file that a simulated one writes."""
    if options.no_python:
        return [options.program, *options.arguments]
    kind = ["-m"] if options.module else []
    how = ["pydevtensor", "run"]
    if options.card:
        works = ["--works"] if options.timeline else []
        how = ["pydevtensor._estimate", *works, record]
    safe = ["-P"] if sys.flags.safe_path else []
    start = [sys.executable, *safe, "-m", *how, *kind]
    return [*start, options.program, *options.arguments]


def _environment(options: argparse.Namespace, rank: int, size: int) -> dict[str, str]:
    here = options.gpus if options.card else size  # ranks of a node
    ours = {
        "RANK": rank,
        "LOCAL_RANK": rank % here,
        "WORLD_SIZE": size,
        "LOCAL_WORLD_SIZE": here,
        "GROUP_RANK": rank // here,
        "MASTER_ADDR": options.master_addr,
        "MASTER_PORT": options.master_port,
    }
    if options.card:
        ours |= _cluster.environment(options.card, options.gpus, options.link)
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
    if options.card:
        size = _check_cluster(parser, options)
    else:
        size = _count(parser, options.nproc_per_node)
    if not options.master_port:
        options.master_port = _free_port(options.master_addr)
    with tempfile.TemporaryDirectory() as folder:
        records = [os.path.join(folder, f"{rank}.json") for rank in range(size)]
        status = _run(options, records)
        if options.card and not status:
            sys.stdout.flush()
            print(_cluster.report(options, records))
    return status


def _check_cluster(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """The number of ranks of a simulated cluster."""
    if options.no_python or options.nproc_per_node != "1":
        parser.error(
            "--card simulates GPUs; leave out --nproc-per-node and --no-python"
        )
    if options.nodes < 1 or options.gpus < 1:
        parser.error(f"--nodes {options.nodes} --gpus {options.gpus}: give 1 or more")
    try:
        options.card = _cluster.check(options.card, options.gpus, options.link)
    except ValueError as error:
        parser.error(str(error))
    return int(options.nodes * options.gpus)


def _run(options: argparse.Namespace, records: Sequence[str]) -> int:
    """Run the ranks, one for each record. The exit status."""
    size = len(records)
    ranks = [
        subprocess.Popen(
            _command(options, record), env=_environment(options, rank, size)
        )
        for rank, record in enumerate(records)
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
