"""all_reduce of two ranks on one machine: microseconds a call, and GB/s of the tensor.

Beside PyTorch's gloo and mpi4py on NumPy arrays, where the interpreter has them:

    python benchmarks/bench_distributed.py [interpreter of the others] [rounds]

Each round starts two processes for each library, one after the other, and takes the
median of the calls of each size; the table has the best of the rounds.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

SIZES = [256, 4096, 65536, 1 << 20, 25_000_000]  # of float32
RANKS = 2


def calls_of(library):
    """A function that makes a tensor of n ones, and one that reduces it."""
    if library == "mpi4py":
        import numpy as np
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        return (
            world.rank,
            lambda n: np.ones(n, np.float32),
            lambda x: world.Allreduce(MPI.IN_PLACE, x),
        )
    if library == "pydevtensor":
        import pydevtensor as torch
        import pydevtensor.distributed as dist
    else:
        import torch
        import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    return dist.get_rank(), torch.ones, dist.all_reduce


def run(library):
    """Prints, at rank 0, the seconds of a call for each size."""
    rank, make, reduce = calls_of(library)
    found = []
    for size in SIZES:
        x = make(size)
        for _ in range(3):
            reduce(x)
        repeats = max(20, min(5000, 20_000_000 // size))
        times = [time.perf_counter()]
        for _ in range(repeats):
            reduce(x)
            times.append(time.perf_counter())
        found.append(median(b - a for a, b in pairwise(times)))
    if rank == 0:
        print(json.dumps(found))


def start(library, python):
    """The seconds of a call for each size; None where there is no such library."""
    script = [str(Path(__file__).resolve()), "--run", library]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    if library == "mpi4py":
        mpiexec = shutil.which("mpiexec", path=str(Path(python).parent))
        if mpiexec is None:
            return None
        command = [mpiexec, "-n", str(RANKS), python, *script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None
    ranks = [
        subprocess.Popen(
            [sys.executable if library == "pydevtensor" else python, *script],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(RANKS),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            },
        )
        for rank in range(RANKS)
    ]
    printed = [rank.communicate()[0] for rank in ranks]
    return json.loads(printed[0]) if not ranks[0].returncode else None


def main():
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    best = {}
    for _ in range(rounds):
        for library in ("pydevtensor", "torch", "mpi4py"):
            if found := start(library, python):
                before = best.get(library, found)
                best[library] = [min(pair) for pair in zip(before, found, strict=True)]
    print(f"{'bytes':>12}" + "".join(f"{name:>24}" for name in best))
    for i, size in enumerate(SIZES):
        row = f"{4 * size:>12}"
        for seconds in best.values():
            row += f"{1e6 * seconds[i]:>12.1f} us {4e-9 * size / seconds[i]:>4.1f} GB/s"
        ours = best["pydevtensor"][i]
        ratios = [f"{n} {ours / s[i]:.2f}" for n, s in best.items() if s[i] != ours]
        print(row + "   ours / " + ", ".join(ratios))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2])
    else:
        main()
