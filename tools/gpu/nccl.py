"""Calls of torch.distributed by NCCL: of one rank, and of two with two GPUs."""

import os
import subprocess
import sys
import tempfile

import pydevtensor as torch
import pydevtensor.distributed as dist

RANKS = "NCCL_CHECK_RANKS"


def calls():
    """Each call with numbers that are known before, at this rank."""
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    total = sum(range(1, size + 1))
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64):
        mine = torch.full((1000,), rank + 1, dtype=dtype, device=device)
        x = mine.clone()
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        yield "all_reduce", (x == total).all().item()
        dist.broadcast(x, size - 1)
        yield "broadcast", (x == total).all().item()
        rows = torch.empty(size, 1000, dtype=dtype, device=device)
        dist.all_gather_into_tensor(rows, mine)
        yield "all_gather", rows[:, 0].tolist() == [*range(1, size + 1)]
        part = torch.empty(1000, dtype=dtype, device=device)
        dist.reduce_scatter_tensor(part, rows)
        yield "reduce_scatter", (part == size * (rank + 1)).all().item()
        outs = [torch.empty_like(mine) for _ in range(size)]
        dist.all_to_all(outs, [mine] * size)
        yield "all_to_all", [int(x[0]) for x in outs] == [*range(1, size + 1)]
    if size > 1:
        got, peer = torch.empty_like(mine), 1 - rank
        ops = [dist.P2POp(dist.isend, mine, peer), dist.P2POp(dist.irecv, got, peer)]
        for each in dist.batch_isend_irecv(ops):
            each.wait()
        yield "batch_isend_irecv", (got == peer + 1).all().item()
        dist.send(mine, 1) if rank == 0 else dist.recv(got, 0)
        yield "send", rank == 0 or (got == 1).all().item()
    x = torch.ones(1000, device=device)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    yield "mean", (x == 1).all().item()
    if not torch.cuda.is_simulated():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            dist.all_reduce(x)
        graph.replay()
        yield "all_reduce of a graph", (x == size).all().item()


def run():
    failed = 0
    for name, good in calls():
        failed += not good
        print(
            f"rank {dist.get_rank()}: {name} {'right' if good else 'WRONG'}", flush=True
        )
    torch.cuda.synchronize()
    dist.destroy_process_group()
    return failed > 0


def main():
    if RANKS in os.environ:
        dist.init_process_group("nccl")
        return run()
    kind = "simulated" if torch.cuda.is_simulated() else "real"
    print(f"ran on cuda:0 {torch.cuda.get_device_name(0)} ({kind})", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"file://{folder}/meeting"
        dist.init_process_group("nccl", meeting, world_size=1, rank=0)
        failed = run()
    if torch.cuda.device_count() < 2:
        print("two ranks: not tried, with one GPU")
        return failed
    command = [
        sys.executable,
        "-P",
        "-m",
        "pydevtensor",
        "launch",
        "--nproc-per-node=2",
    ]
    environment = {**os.environ, RANKS: "2", "PYTHONSAFEPATH": "1"}
    done = subprocess.run([*command, os.path.abspath(__file__)], env=environment)
    return failed or done.returncode


if __name__ == "__main__":
    sys.exit(main())
