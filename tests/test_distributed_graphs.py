"""Calls of ranks in CUDA graphs: what stands for NCCL on simulated GPUs."""

import pytest
import ranks
from test_distributed_nccl import SCHEDULES, on_gpus

GRAPHS = """
begin()
right, left = (rank + 1) % size, (rank - 1) % size
def calls(x):
    y = x * 2
    dist.all_reduce(y)
    whole = torch.empty(size * 4, device="cuda")
    dist.all_gather_into_tensor(whole, y[:4] + rank)
    part = torch.empty(4, device="cuda")
    work = dist.reduce_scatter_tensor(part, whole.clone(), async_op=True)
    z = (x - 1).to(torch.int16)
    dist.broadcast(z, size - 1)
    got = torch.empty_like(x)
    ops = [dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, got, left)]
    for each in dist.batch_isend_irecv(ops):
        each.wait()
    work.wait()
    return y, whole, part, z, got * 3
static = torch.zeros(8, device="cuda")
calls(static)  # makes the communicator
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    found = calls(static)
for step in range(4):
    static.copy_(torch.arange(8) * (step + 1) + 100 * rank)
    wanted = calls(static.clone())
    graph.replay()
    for f, w in zip(found, wanted, strict=True):
        assert torch.equal(f, w), (step, f, w)
    assert found[0][0] == 2 * 100 * sum(range(size))
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_graphs_replay_calls(tmp_path, schedule):
    environment = on_gpus(schedule, PYDEVTENSOR_SIM_RACES="error")
    for count in (2, 3):
        ranks.run(tmp_path, count, GRAPHS, **environment)


def test_a_training_step_in_a_graph(tmp_path):
    code = """
    from pydevtensor.nn.parallel import DistributedDataParallel as DDP
    begin()
    def train(captures):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 3)).cuda()
        model = DDP(net, bucket_cap_mb=0.0003)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.zeros(4, 6, device="cuda")
        def step():
            optimizer.zero_grad(set_to_none=False)
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss
        data = torch.randn(8, 2 * size, 4, 6)[:, rank]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for i in range(3):
                x.copy_(data[i])
                loss = step()
        side.synchronize()
        if captures:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                loss = step()
        losses = []
        for i in range(3, 8):
            x.copy_(data[i])
            if captures:
                graph.replay()
            else:
                loss = step()
            losses.append(loss.item())
        return losses, [p.tolist() for p in net.parameters()]
    assert train(True) == train(False)
    """
    for schedule in SCHEDULES:
        ranks.run(tmp_path, 2, code, **on_gpus(schedule))


ALONE = """
from datetime import timedelta
begin(timeout=timedelta(seconds=float(os.environ["SECONDS"])))
x = torch.ones(3, device="cuda")
dist.all_reduce(x)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
how = os.environ["HOW"]
try:
    if how == "left open" or rank == 0:
        with torch.cuda.graph(graph):
            work = dist.all_reduce(x, async_op=how == "left open")
            if how != "left open":
                work = None
    if how == "no replay" and rank == 1:
        dist.all_reduce(x)
    if how in ("replay", "other call", "destroyed") and rank == 0:
        if how == "destroyed":
            dist.destroy_process_group()
        graph.replay()
    if how == "other call" and rank == 1:
        dist.all_reduce(x[:2])
    if how == "eager" and rank == 0:
        graph.replay()
    if how == "eager" and rank == 1:
        dist.all_reduce(x)
    torch.cuda.synchronize()
    print(x.tolist())
    if how == "no replay" and rank == 0:
        time.sleep(2)
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("how", "seconds", "rank", "says"),
    [
        ("eager", 60, 0, "[4.0, 4.0, 4.0]"),
        ("eager", 60, 1, "[4.0, 4.0, 4.0]"),
        ("no replay", 1, 1, "rank 0 has not come within 1 seconds, while rank 1 waits"),
        (
            "replay",
            1,
            0,
            "while rank 0 waits for it in all_reduce(SUM) of 3 float32 at program.py:22 "
            "in a graph",
        ),
        (
            "other call",
            60,
            1,
            "rank 1 calls all_reduce(SUM) of 2 float32 at program.py:32, and rank 0 calls "
            "all_reduce(SUM) of 3 float32 at program.py:22 in a graph",
        ),
        (
            "destroyed",
            60,
            0,
            "a replay of ncclAllReduce calls a communicator that has been destroyed",
        ),
        ("left open", 60, 0, "has work that the capturing one does not wait for"),
    ],
)
def test_a_graph_of_one_rank(tmp_path, how, seconds, rank, says):
    given = on_gpus(HOW=how, SECONDS=str(seconds))
    found = ranks.run(tmp_path, 2, ALONE, **given)
    assert says in found[rank], found
