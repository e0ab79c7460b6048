"""python -m pydevtensor launch: runs a program as several processes, its ranks.

It takes the options of PyTorch's torchrun. Each process runs the program with `import
torch` meaning pydevtensor, and finds RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT in its environment, from which init_process_group() takes them.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
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
    option("nnodes", default="1", metavar="N", help="machines; mpirun starts several")
    option("hostfile", help="of mpirun: where they are, if nothing else says it")
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


def _environment(
    options: argparse.Namespace, rank: int, size: int, here: int
) -> dict[str, str]:
    """The variables of a rank; here: the ranks of its machine."""
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
    at_once = size if options.card else here
    threads = max(1, len(os.sched_getaffinity(0)) // at_once)
    defaults = {
        "PYDEVTENSOR_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
    }
    return {**defaults, **os.environ, **{k: str(v) for k, v in ours.items()}}


def main(arguments: Sequence[str]) -> int:
    """Run the program. The exit status of a rank that failed, or 0."""
    parser = _parser()
    options = parser.parse_args(arguments)
    first, _, last = options.nnodes.partition(":")
    if not first.isdigit() or int(first) < 1 or last not in ("", first):
        parser.error(f"--nnodes is {options.nnodes}; give a number of machines")
    if int(first) > 1:
        return _by_mpirun(parser, options, int(first))
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


def _by_mpirun(
    parser: argparse.ArgumentParser, options: argparse.Namespace, nodes: int
) -> int:
    """Run the ranks of several machines. The exit status of mpirun."""
    if options.card or options.node_rank:
        parser.error(
            "--nnodes starts all machines' ranks; leave out --card, --node-rank"
        )
    beside = os.path.join(os.path.dirname(sys.executable), "mpirun")
    mpirun = shutil.which("mpirun") or shutil.which(beside)
    if not mpirun:
        parser.error(
            f"--nnodes is {nodes}, and no mpirun is there; use the cluster's MPI, or "
            "pip install mpich"
        )
    each = _count(parser, options.nproc_per_node)
    if options.master_addr == "127.0.0.1":
        options.master_addr = socket.gethostname()
    options.master_port = options.master_port or _free_port("")
    environment = _environment(options, 0, nodes * each, each)
    ours = ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    for name in ("RANK", "LOCAL_RANK", "GROUP_RANK"):  # mpirun's, by `run`
        environment.pop(name)
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True)
    how = [mpirun, "-n", str(nodes * each)]
    if options.hostfile:
        how += ["--hostfile", options.hostfile]
    if "Open MPI" in version.stdout:
        how += ["--map-by", f"ppr:{each}:node"]
        for name in (*ours, "PYDEVTENSOR_NUM_THREADS", "OMP_NUM_THREADS"):
            how += ["-x", name]
    else:
        how += ["-ppn", str(each)]
    return subprocess.run([*how, *_command(options, "")], env=environment).returncode


def take_rank() -> None:
    """Give this process, which mpirun has started for _by_mpirun(), its variables."""
    from pydevtensor.distributed._rendezvous import LOCAL_RANK, RANK, from_environment

    rank, local = from_environment(RANK), from_environment(LOCAL_RANK)
    each = int(os.environ["LOCAL_WORLD_SIZE"])
    if rank is not None:
        found = {"RANK": rank, "GROUP_RANK": rank // each}
        found["LOCAL_RANK"] = (rank if local is None else local) % each
        os.environ.update({name: str(value) for name, value in found.items()})


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
    here = options.gpus if options.card else size
    ranks = [
        subprocess.Popen(
            _command(options, record), env=_environment(options, rank, size, here)
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
