"""Deep graphs, many tensors, long training: nothing grows, nothing recurses.

`make soak` runs them at full length and prints what was measured; without it they are
short. Deep graphs are built and freed in a thread with a small stack, where recursion
would end the process after some thousand nodes.
"""

import contextlib
import ctypes
import gc
import math
import os
import sys
import threading
from pathlib import Path

import pytest
from isolated import python

import pydevtensor as torch

SOAK = bool(os.environ.get("PYDEVTENSOR_SOAK"))
# Megabytes that a run may keep. A sanitizer keeps freed memory for a while, to find its
# later use.
KEPT = 300 if os.environ.get("PYDEVTENSOR_SANITIZE") else 8


def length(full, short):
    return full if SOAK else short


def say(**facts):
    if SOAK:
        print("\n   ", ", ".join(f"{name} {value}" for name, value in facts.items()))


def levels():
    """Resident memory in MB, storages and open files."""
    gc.collect()
    with contextlib.suppress(AttributeError):  # of another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return (
        int(fields["VmRSS"].split()[0]) / 1024,
        torch._C._storage_count(torch.device("cpu")),
        len(os.listdir("/proc/self/fd")),
    )


def with_a_small_stack(function):
    """What function returns, called in a thread of 256 KB."""
    results = []

    def run():
        try:
            results.append((function(), None))
        except BaseException as error:
            results.append((None, error))

    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    value, error = results.pop()
    if error:
        raise error
    return value


NODES = length(1_000_000, 50_000)


def deep_graph(backward):
    def run():
        x = torch.ones(1, requires_grad=True)
        y = x
        for _ in range(NODES):
            y = y + 1.0
        value = y.item()
        if backward:
            y.backward()
        del y
        return value, x.grad.item() if backward else 1.0

    expected = min(NODES + 1, 1 << 24), 1.0
    # The first run leaves the allocators' arenas as large as they get.
    assert with_a_small_stack(run) == expected
    before = levels()
    assert with_a_small_stack(run) == expected
    after = levels()
    assert after[1:] == before[1:] and after[0] < before[0] + KEPT
    say(nodes=NODES, MB_before=before[0], MB_after=after[0])


@pytest.mark.parametrize("backward", [False, True])
def test_deep_graph(backward):
    """In a process of its own: in one full of what other tests have freed, a second run
    may take pages that had been given back."""
    code = f"from test_long_runs import deep_graph; deep_graph({backward})"
    names = ("PYDEVTENSOR_SANITIZE", "PYDEVTENSOR_SOAK")
    given = {name: os.environ[name] for name in names if name in os.environ}
    print(python(code, timeout=600, PYTHONPATH=str(Path(__file__).parent), **given))


def test_deep_graph_that_is_kept_by_its_middle():
    """Nodes are freed from both ends, by the collector too."""

    def run():
        x = torch.ones(1, requires_grad=True)
        y, kept = x, []
        for i in range(NODES):
            y = y * 1.0
            if i % (NODES // 10) == 0:
                kept.append(y)
        kept.append(kept)  # a cycle
        middle = kept[5]
        del kept, y, x
        gc.collect()
        return middle.item()

    before = levels()
    assert with_a_small_stack(run) == 1
    assert levels()[1:] == before[1:]


def test_double_backward_of_a_deep_graph():
    n = length(200_000, 10_000)

    def run():
        x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
        y = x
        for _ in range(n):
            y = y.sin()
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        (second,) = torch.autograd.grad(first, x)
        return y.item(), first.item(), second.item()

    y, first, second = 0.5, 1.0, 0.0
    for _ in range(n):
        second = math.cos(y) * second - math.sin(y) * first * first
        first *= math.cos(y)
        y = math.sin(y)
    before = levels()
    got = with_a_small_stack(run)
    assert got == pytest.approx((y, first, second), rel=1e-6)
    assert levels()[1:] == before[1:]
    say(nodes=n)


@pytest.mark.parametrize("grad", [False, True])
def test_nested_views(grad):
    n = length(500_000, 30_000)

    def run():
        base = torch.zeros(4, 3)
        if grad:
            base = base.requires_grad_() * 1.0
        v = base
        for i in range(n):
            v = v.t() if i % 2 else v[:]
        v[0, 0] = 7.0
        return base.tolist()[0][0]

    before = levels()
    assert with_a_small_stack(run) == 7
    assert levels()[1:] == before[1:]
    say(views=n)


def test_many_tensors():
    n = length(1_000_000, 50_000)

    def make():
        return [torch.full((3,), float(i)) for i in range(n)]

    make()  # the allocators' arenas become as large as they get
    before = levels()
    alive = make()
    most = levels()
    assert most[1] == before[1] + n
    assert alive[-1].tolist() == [n - 1.0] * 3
    views = [x[1] for x in alive]
    del alive
    assert levels()[1] == before[1] + n and views[7].item() == 7
    del views
    after = levels()
    assert after[1:] == before[1:] and after[0] < before[0] + KEPT
    say(tensors=n, bytes_each=round((most[0] - before[0]) * (1 << 20) / n))


def test_training_is_level(device):
    steps = length(100_000 if device == "cpu" else 3_000, 300)
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    ).to(device)
    x = torch.randn(32, 4, device=device)
    y = (x * x).sum(1, keepdim=True)
    optimizers = [torch.optim.Adam(net.parameters(), lr=0.01)]

    def run(n):
        for _ in range(n):
            loss = torch.nn.functional.mse_loss(net(x), y)
            optimizers[0].zero_grad()
            loss.backward()
            optimizers[0].step()
        return loss.item()

    first = run(steps // 10)
    before = levels(), torch._C._storage_count(torch.device(device))
    blocks = sys.getallocatedblocks()
    last = run(steps)
    after = levels(), torch._C._storage_count(torch.device(device))
    # Blocks of Python's allocator: not one for each step. Those that pytest's other thread
    # may add, for tests to come, are not there twice.
    if sys.getallocatedblocks() >= blocks + steps // 4:
        blocks = sys.getallocatedblocks()
        run(steps)
        levels()
        assert sys.getallocatedblocks() < blocks + steps // 4
    assert last <= first
    assert after[0][1:] == before[0][1:] and after[1] == before[1]
    assert after[0][0] < before[0][0] + KEPT
    say(steps=steps, loss=last, MB_before=before[0][0], MB_after=after[0][0])
