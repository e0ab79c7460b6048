"""Collectives on the clocks of simulated GPUs, and the cluster that launch makes of them."""

import json
import math
import os
import subprocess
import sys
from itertools import pairwise

import pytest

from pydevtensor._cluster import scaled
from pydevtensor.distributed._links import LINKS, Cluster

MB = 1 << 20
# Microseconds, or GB/s of the bus, that NCCL was reported to take, and where.
MAINTAINERS = "NVIDIA's maintainers in issue 212 of nccl-tests"
SMALL = "issue 150 of nccl-tests: a GPU in each of two nodes, 200 Gbit/s"
ONE_GPU = "issue 232 of nccl-tests: a GPU and an adapter in each of two nodes"
EFA = "AWS, p5.48xlarge: sixteen GPUs, 400 Gbit/s for each"
OCI = "oracle-quickstart/oci-hpc-oke, BM.GPU.B4.8: sixteen GPUs, 200 Gbit/s for each"
PUBLISHED = [
    ("h100", 1, 8, "ib400", "all_reduce", 8192 * MB, None, 480, MAINTAINERS),
    ("h100", 1, 8, "ib400", "all_gather", 8192 * MB, None, 370, MAINTAINERS),
    ("a100", 2, 1, "ib200", "all_reduce", 64, 19.36, None, SMALL),
    ("h100", 2, 1, "ib400", "all_reduce", 4 * MB, 154, None, ONE_GPU),
    ("h100", 2, 1, "ib400", "all_reduce", 16 * MB, 420.5, None, ONE_GPU),
    ("h100", 2, 1, "ib400", "all_reduce", 32 * MB, 812.3, None, ONE_GPU),
    ("h100", 2, 8, "efa400", "all_reduce", MB // 1024, 69, None, EFA),
    ("h100", 2, 8, "efa400", "all_reduce", MB, 123, None, EFA),
    ("h100", 2, 8, "efa400", "all_reduce", 16 * MB, 298, None, EFA),
    ("h100", 2, 8, "efa400", "all_reduce", 64 * MB, 602, None, EFA),
    ("h100", 2, 8, "efa400", "all_reduce", 256 * MB, 1468, None, EFA),
    ("h100", 2, 8, "efa400", "all_reduce", 1024 * MB, 4607.6, None, EFA),
    ("h100", 2, 8, "efa400", "all_reduce", 8192 * MB, 33605, None, EFA),
    ("a100", 2, 8, "ib200", "all_reduce", 8192 * MB, 67689, None, OCI),
]


@pytest.mark.parametrize(
    ("card", "nodes", "gpus", "link", "op", "size", "us", "bus", "source"), PUBLISHED
)
def test_calls_cost_what_is_published(
    card, nodes, gpus, link, op, size, us, bus, source
):
    count = nodes * gpus
    ours = Cluster.of(card, gpus, link).time(op, size, [*range(count)]) / 1e3
    if us is None:
        parts = (2 if op == "all_reduce" else 1) * (count - 1) / count
        us = size * parts / bus / 1e3
    assert ours == pytest.approx(us, rel=0.2), source


def test_costs_grow_with_bytes_ranks_and_slower_links():
    for name in LINKS:
        cluster = Cluster.of("a100", 4, name)
        for op in ("all_reduce", "all_gather", "broadcast", "all_to_all", "send"):
            times = [cluster.time(op, size, [0, 4]) for size in (0, MB, 64 * MB)]
            assert 0 < times[0] < times[1] < times[2], (name, op)
        assert cluster.time("all_reduce", MB, [3]) == 0
        assert cluster.time("all_reduce", 64 * MB, [0, 1]) < times[2]
    by_link = [
        Cluster.of("a100", 4, name).time("all_reduce", 64 * MB, [*range(16)])
        for name in ("ib400", "ib200", "ib100", "eth100", "eth25")
    ]
    assert by_link == sorted(by_link)
    pci, nvlink = (Cluster.of(card, 4, "ib400") for card in ("l4", "a100"))
    assert pci.time("all_reduce", MB, [0, 1]) > nvlink.time("all_reduce", MB, [0, 1])


def launch(folder, code, *options, status=0, nodes=2, gpus=1, card="h100"):
    program = folder / "train.py"
    program.write_text("import os, torch, torch.distributed as dist\n" + code)
    cluster = ["--nodes", str(nodes), "--gpus", str(gpus), "--card", card]
    done = subprocess.run(
        [sys.executable, "-m", "pydevtensor", "launch", *cluster, *options]
        + [str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ},
        cwd=folder,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr if status else done.stdout


START = """
dist.init_process_group("nccl")
rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
def say(*values):
    os.write(1, (" ".join(map(str, (rank, *values))) + "\\n").encode())
"""


def said(printed, count=2):
    """What each rank has said, and the report."""
    lines = printed.splitlines()
    rows = sorted(line.split() for line in lines if line[:1].isdigit())
    rows = [row for row in rows if row[1] != "x"]
    return [row[1:] for row in rows[:count]], printed


def test_clocks_meet_in_a_collective_and_values_are_real(tmp_path):
    code = """
x = torch.full((1 << 20,), rank + 1.0, device="cuda")
if rank:
    for _ in range(50):
        y = x @ x
torch.cuda.synchronize()
begin = torch.cuda.clock()
dist.all_reduce(x)
torch.cuda.synchronize()
end = torch.cuda.clock()
say(x[0].item(), begin, end)
"""
    (first, second), _ = said(launch(tmp_path, START + code))
    assert first[0] == second[0] == "3.0"
    late, ends = int(second[1]), (int(first[2]), int(second[2]))
    assert int(first[1]) < late - 100_000
    cost = Cluster.of("h100", 1, "ib400").time("all_reduce", 4 * MB, [0, 1])
    assert ends[1] == pytest.approx(late + cost, abs=20_000)
    assert ends[0] == pytest.approx(ends[1], abs=2_000)


@pytest.mark.slow
def test_a_call_overlaps_with_computing_until_it_is_waited_for(tmp_path):
    code = """
x = torch.ones(1 << 20, device="cuda")
a = torch.ones(1024, 1024, device="cuda")
def timed(call):
    torch.cuda.synchronize()
    dist.barrier()
    begin = torch.cuda.clock()
    call()
    torch.cuda.synchronize()
    return torch.cuda.clock() - begin
def both():
    work = dist.all_reduce(x, async_op=True)
    for _ in range(3):
        y = a @ a
    work.wait()
sends = timed(lambda: dist.all_reduce(x))
computes = timed(lambda: [a @ a for _ in range(3)])
say(sends, computes, timed(both), x[0].item())
"""
    (first, _), _ = said(launch(tmp_path, START + code))
    sends, computes, together = map(int, first[:3])
    assert max(sends, computes) <= together < max(sends, computes) + 60_000
    assert together < 0.75 * (sends + computes)
    assert first[3] == "4.0"


MESSAGES = """
x = torch.full((1 << 20,), float(rank), device="cuda")
if rank:
    torch.cuda.synchronize()
    dist.send(x, 0)
else:
    assert dist.recv(x) == 1
torch.cuda.synchronize()
host = torch.ones(3) * rank
dist.broadcast(host, 1)
try:
    dist.all_reduce(torch.ones(rank + 1))
except RuntimeError as error:
    assert "1 float32" in str(error) and "2 float32" in str(error)
say(x[0].item(), host[0].item(), torch.cuda.clock())
"""


@pytest.mark.slow
def test_messages_hosts_and_errors_are_on_the_clock_too(tmp_path):
    printed = launch(tmp_path, START + MESSAGES)
    (first, second), _ = said(printed)
    assert first[:2] == second[:2] == ["1.0", "1.0"]
    assert abs(int(first[2]) - int(second[2])) < 20_000
    assert said(launch(tmp_path, START + MESSAGES))[0] == [first, second]


TRAIN = """
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)]).cuda()
model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.ones(4, 256, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert torch.cuda.device_count() == 2 and os.environ["GROUP_RANK"] == str(rank // 2)
say(loss.item())
"""


def test_the_report_has_steps_waits_lines_and_memory(tmp_path):
    printed = launch(tmp_path, START + TRAIN, "--timeline=trace.json", gpus=2)
    values, _ = said(printed, 4)
    assert len({value[0] for value in values}) == 1
    report = printed[printed.index("2 x 2 H100 SXM, ib400") :].splitlines()
    assert [line.split()[0] for line in report[1:4]] == ["step", "GPUs", "memory"]
    assert "3 steps" in report[1] and "80.0 GiB" in report[3]
    backward = next(line for line in report if "all_reduce" in line).split()
    assert backward[0] == "train.py:17" and backward[2] == "4"
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["pid"] for event in trace} == {0, 1, 2, 3}
    assert {event["tid"] for event in trace} == {"sends", "waits", "kernels", "copies"}
    works = [e for e in trace if e["tid"] in ("kernels", "copies")]
    products = [e["pid"] for e in works if e["name"] == "matmul train.py:15"]
    assert {*products} == {0, 1, 2, 3}
    assert sum(e["name"] == "sgd train.py:18" for e in works) == 4 * 3
    # It is the time that the report says, which is the same without a timeline.
    busy = sum(e["dur"] for e in works) / 4
    ends = max(e["ts"] + e["dur"] for e in trace)
    share = int(report[2].split()[1].rstrip("%")) / 100
    assert busy / ends == pytest.approx(share, abs=0.02)
    kernels = [e for e in works if e["pid"] == 0 and e["tid"] == "kernels"]
    kernels.sort(key=lambda e: e["ts"])
    for one, other in pairwise(kernels):  # a GPU runs one at a time
        assert one["ts"] + one["dur"] <= other["ts"] + 0.001, (one, other)
    plain = launch(tmp_path, START + TRAIN, gpus=2)
    assert plain[plain.index("2 x 2") :].splitlines() == report


def test_a_rank_has_the_memory_of_its_card(tmp_path):
    code = """
try:
    torch.empty(17 << 30, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    say("full")
"""
    printed = launch(tmp_path, START + code, card="t4")
    assert said(printed)[0] == [["full"], ["full"]]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--link", "tin"], "'tin' is not a link; give one of eth25"),
        (["--card", "abacus"], "is not a card"),
        (["--card", "t4,h100"], "give one card"),
        (["--nproc-per-node", "2"], "leave out --nproc-per-node"),
        (["--gpus", "0"], "give 1 or more"),
        (["--gpus", "33"], "give numbers from 1 to 32"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(tmp_path, options, says):
    assert says in launch(tmp_path, "", *options, status=2)


def test_several_clocks_are_refused(tmp_path):
    code = "from pydevtensor.distributed._clocks import cluster\ncluster()"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYDEVTENSOR_SIM_LINK": "ib400",
            "PYDEVTENSOR_SIM_CARD": "t4,h100",
        },
    )
    assert "give one card, whose clock collectives advance" in found.stderr


# --- other numbers of ranks, from the record of one

RECORD = {
    "steps": [],
    "cards": [
        {
            "now": 1_000_000,
            "waited": 1_000_000,
            "devices": [
                {"end": 0, "bandwidth": 0, "flops": 900_000, "least": 0, "accesses": 0}
            ],
        }
    ],
    "calls": [
        {"op": "all_reduce", "size": 128 * MB, "ready": 400_000, "came": 1_000_000},
    ],
}


def test_a_record_of_one_rank_is_scaled():
    RECORD["cards"][0]["devices"][0]["copies"] = 0
    cluster = Cluster.of("h100", 8, "ib400")
    cost = cluster.time("all_reduce", 128 * MB, [*range(64)])
    assert cost > 600_000
    # Sending begins at 0.4 ms, and 0.6 ms of it overlap.
    assert scaled(RECORD, cluster, 1, False) == (1_000_000, 0)
    assert scaled(RECORD, cluster, 64, False) == (400_000 + cost, cost - 600_000)
    # A 64th of the work overlaps with little.
    time, waits = scaled(RECORD, cluster, 64, True)
    assert time == pytest.approx(400_000 / 64 + cost)
    assert waits == pytest.approx(time - 1_000_000 / 64)


RESNET = "NVIDIA's DeepLearningExamples, ResNet-50 v1.5 by PyTorch: images a second"
BERT = "NVIDIA's DeepLearningExamples, BERT-large by TensorFlow: sentences a second"
# Samples of a GPU, and how many a second one GPU and eight of a node took.
STEPS = [
    ("a100", "TF32", 256, 938, 7248, 25.6e6, RESNET),
    ("a100", "mixed", 256, 2470, 16621, 25.6e6, RESNET),
    ("v100", "float32", 64, 367, 2855, 25.6e6, RESNET),
    ("v100", "mixed", 128, 1200, 8322, 25.6e6, RESNET),
    ("v100", "float32", 2, 5.48, 39.21, 336e6, BERT),
    ("v100", "mixed", 2, 18.97, 121.21, 336e6, BERT),
    ("v100", "mixed", 4, 19.46, 151.35, 336e6, BERT),
]


@pytest.mark.parametrize(
    ("card", "kind", "samples", "one", "eight", "parameters", "source"), STEPS
)
def test_steps_take_what_is_published(
    card, kind, samples, one, eight, parameters, source
):
    """From the published step of one GPU, whose gradients become ready in its last two
    thirds, in buckets of 25 MiB."""
    step, count = samples / one * 1e9, math.ceil(4 * parameters / 25 / MB)
    ready = [step * (1 + 2 * (i + 1) / count) / 3 for i in range(count)]
    size = round(4 * parameters / count)
    record = {
        "cards": [{"now": step, "waited": step, "devices": [{"end": step}]}],
        "calls": [
            {"op": "all_reduce", "size": size, "ready": at, "came": step}
            for at in ready
        ],
    }
    ours, _ = scaled(record, Cluster.of(card, 8, "ib100"), 8, False)
    assert ours == pytest.approx(8 * samples / eight * 1e9, rel=0.2), source


@pytest.mark.slow
def test_estimate_scales_a_program(tmp_path):
    (tmp_path / "train.py").write_text(
        "import os, torch, torch.distributed as dist\n"
        + START
        + TRAIN[: TRAIN.index("assert")]
    )
    command = [sys.executable, "-m", "pydevtensor", "estimate", "train.py"]
    options = [
        "--cards",
        "t4",
        "--ranks",
        "1,8,64",
        "--link",
        "eth25",
        "--svg",
        "x.svg",
    ]

    def run(options):
        return subprocess.run(
            [*command, *options], capture_output=True, text=True, cwd=tmp_path
        )

    done = run(options)
    assert done.returncode == 0, done.stderr
    title, heads, *rows = done.stdout.splitlines()[-5:]
    assert title == "T4, nodes of 8, eth25" and heads.split()[0] == "ranks"
    assert [row.split()[0] for row in rows] == ["1", "8", "64"]
    assert rows[0].split()[3:5] == ["100%", "0%"]
    shares = [int(row.split()[3].rstrip("%")) for row in rows]
    assert shares[0] > shares[1] > shares[2] > 0
    assert (tmp_path / "x.svg").read_text().count("<path") == 3
    assert "--gpus" in run([*options, "--gpus", "2"]).stderr
    assert (
        "is not a link" in run(["--cards", "t4", "--ranks", "2", "--link", "x"]).stderr
    )
    (tmp_path / "train.py").write_text("import torch\ntorch.ones(1, device='cuda') + 1")
    assert "made no call of ranks" in run(options).stderr
