"""CUDA graphs as the race detector, the clock, the profiler and the libraries see them."""

import os
import subprocess
import sys

import pytest
from graph_capture import captured

import pydevtensor as torch

# What a build with AddressSanitizer needs in every process.
SANITIZER = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS")


def program(code, **environment):
    run = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        env={
            **{k: os.environ[k] for k in SANITIZER if k in os.environ},
            "PATH": "/usr/bin:/bin",
            **environment,
        },
    )
    return run.stdout, run.stderr


RACE = """
import pydevtensor as torch
torch.cuda.simulate(1, races="error")
x = torch.ones(4, device="cuda")
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    x += 1
torch.cuda.synchronize()
g.replay()
with torch.cuda.stream(torch.cuda.Stream()):
    WAIT
    x * 2
"""


def test_races_with_a_replay_are_found():
    _, err = program(RACE.replace("WAIT", "pass"))
    assert "race (RAW hazard)" in err and "<string>:7" in err and "<string>:12" in err
    wait = "torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())"
    assert program(RACE.replace("WAIT", wait)) == ("", "")


CLOCK = """
import pydevtensor as torch
torch.cuda.simulate(1, card="T4", host="fixed")
x = torch.ones(1000, 1000, device="cuda")
def work():
    y = x
    for _ in range(50):
        y = y + 1
    return y
work()
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    work()
for run in (work, g.replay):
    torch.cuda.synchronize()
    begin = torch.cuda.clock()
    run()
    queued = torch.cuda.clock() - begin
    torch.cuda.synchronize()
    print(queued, torch.cuda.clock() - begin)
"""


def test_the_clock_of_a_card_knows_replays():
    out, err = program(CLOCK)
    assert not err
    (eager_host, eager), (graph_host, graph) = (
        map(int, line.split()) for line in out.splitlines()
    )
    assert graph_host < eager_host / 20  # one launch instead of 50
    assert eager / 2 < graph <= eager


COLD = """
import pydevtensor as torch
torch.cuda.simulate(1)
a = torch.eye(3, device="cuda")
g = torch.cuda.CUDAGraph()
with torch.cuda.graph(g):
    b = CALL
g.replay()
print(b.sum().item())
"""


def test_a_product_needs_no_other_before_a_capture():
    """cuBLAS is started before, since it could not be in the capture."""
    out, err = program(COLD.replace("CALL", "a @ a"))
    assert out == "3.0\n" and not err


def test_a_factorization_needs_one_before_a_capture():
    cold = COLD.replace("CALL", "torch.linalg.inv_ex(a)[0]")
    out, err = program(cold)
    assert not out and "cuSOLVER cannot start while a graph is captured" in err
    warm = cold.replace("g =", "torch.linalg.inv(a)\ng =")
    assert program(warm) == ("3.0\n", "")


FIRST = """
import pydevtensor as torch
torch.cuda.simulate(1, card=CARD)
F, attend = torch.nn.functional, torch.nn.functional.scaled_dot_product_attention
x = torch.rand(3, 8, device="cuda")
where = torch.tensor([2, 0, 1], device="cuda")
images, weight, deep = (
    torch.rand(shape, device="cuda").requires_grad_()
    for shape in ((1, 4, 6, 6), (4, 4, 3, 3), (4, 1, 3, 3))
)
words = torch.rand(1, 2, 9, 24, device="cuda").requires_grad_()
halves = words.detach().bfloat16().requires_grad_()
odd = words.detach()[..., :23].half().requires_grad_()
large = torch.rand(1, 1, 9, 130, device="cuda").requires_grad_()
lstm = torch.nn.LSTM(8, 4, device="cuda")
sparse = torch.sparse_csr_tensor(where.sort()[0], where[:2], x[0, :2], (2, 3))
long = torch.rand(40000, device="cuda")

def gradients(y, *of):
    return torch.autograd.grad(y, of, torch.ones_like(y))

def fused(work):
    with torch.fused():
        return work()

for call in [
    lambda: attend(words, words, words),
    lambda: [gradients(attend(q, q, q), q) for q in (words, halves, odd, large)],
    lambda: [gradients(attend(q, q, q, None, 0.1), q) for q in (words, halves, large)],
    lambda: attend(words, words, words, words.detach()[0, 0, :, :9].requires_grad_(), 0.1),
    lambda: gradients(F.conv2d(images, weight), images, weight),
    lambda: gradients(F.conv2d(images, deep, groups=4), images, deep),
    lambda: gradients(F.max_pool2d(images, 2), images),
    lambda: [F.interpolate(images, scale_factor=2.0, mode=m) for m in ("nearest", "bicubic")],
    lambda: lstm(x[None])[0].sum().backward(),
    lambda: [fused(lambda: (x * 2 + 1).tanh()), fused(lambda: (x * 2 + 1).sum())],
    lambda: [fused(lambda: (x * 2 + 1).softmax(1)), fused(lambda: where * 2 + 1)],
    lambda: [F.cross_entropy(x, where), F.cross_entropy(x, x), x.log_softmax(0)],
    lambda: [F.layer_norm(x, (8,)), F.batch_norm(x, None, None, training=True)],
    lambda: [x.sort(), long.sort(), long.topk(3), long.cumsum(0), x.cummax(0)],
    lambda: [x.index_select(0, where), x.index_add(0, where, x), x.gather(0, where[:, None])],
    lambda: [x.sum(0), x.var(1), x.argmax(1), x.t().contiguous(), x.half(), x.double().exp()],
    lambda: [torch.rand(3, device="cuda"), F.dropout(x), torch.arange(3, device="cuda")],
    lambda: [sparse @ x, where[None] @ where[:, None], torch.special.airy_ai(x), x + 1j],
    lambda: torch.nn.utils.clip_grad_norm_(lstm.parameters(), 1.0),
]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    graph.replay()
    torch.cuda.synchronize()
print("captured")
"""


@pytest.mark.parametrize("card", [None, "h100"])
def test_a_first_launch_in_a_capture(card):
    """CUDA loads a kernel then, which captures of the strict modes do not allow."""
    assert program(FIRST.replace("CARD", repr(card))) == ("captured\n", "")


def test_streams_share_the_libraries(gpu):
    """Each product runs on its own stream, with its own workspace."""
    a = torch.ones(64, 64, device=gpu)
    streams = [torch.cuda.Stream(gpu) for _ in range(4)]
    torch.cuda.synchronize(gpu)
    results = []
    for i, stream in enumerate(streams * 3):
        with torch.cuda.stream(stream):
            results.append(a @ (a * i))
    torch.cuda.synchronize(gpu)
    assert [x[5, 7].item() for x in results] == [64.0 * i for i in range(12)]


def test_a_profile_has_a_row_for_each_replay(gpu):
    x = torch.ones(3, device=gpu)
    g, _ = captured(lambda: x + 1, gpu)
    with torch.profiler.profile() as profile:
        g.replay()
        g.replay()
    rows = {row.key: row.count for row in profile.key_averages()}
    assert rows["graph replay"] == 2
