"""Interrupts and signals while the library computes, each in a process of its own."""

from textwrap import dedent

import pytest
from isolated import run

# A pass or a kernel that would not stop writes its result before the signal is answered.
INTERRUPT = """
import gc, os, signal, subprocess, sys, time
import pydevtensor as torch

def interrupt(operation):
    "Whether the signal came while operation ran."
    kill = ["sh", "-c", f"sleep 0.2; kill -INT {os.getpid()}"]
    sender = subprocess.Popen(kill)
    finished = False
    try:
        operation()
        finished = True
        time.sleep(60)
    except KeyboardInterrupt:
        sender.wait()
        return not finished

def check():
    "Everything works, and nothing is left."
    gc.collect()
    assert torch._C._storage_count(torch.device("cpu")) == before
    assert torch.is_grad_enabled()
    torch.set_num_threads(2)
    x = torch.ones(300_000, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.sum().item() == 600_000 and x.sort()[0][-1] == 1
    assert (torch.ones(99, 500, 500) @ torch.ones(500, 500) == 500).all()

before = torch._C._storage_count(torch.device("cpu"))
torch.set_num_threads({threads})
"""


STOPS = {
    "elementwise": """
        x = torch.full((20_000_000,), 0.5, dtype=torch.float64)
        assert interrupt(x.erfinv_)
        assert x[-1].item() == 0.5, "it did not stop"
        del x
    """,
    "reduce": """
        assert interrupt(torch.ones(1).expand(2**40).sum)  # takes ten minutes
        assert interrupt(lambda: torch.ones(1).expand(2**20, 2**20).amax(1))
        assert interrupt(torch.ones(1).expand(2**40).argmax)
        assert interrupt(lambda: torch.ones(8).expand(2**36, 8).argmax(0))
    """,
    "sort": """
        x = torch.rand(30, 1_000_000)
        out = torch.zeros(30, 1_000_000), torch.zeros(30, 1_000_000, dtype=torch.int64)
        assert interrupt(lambda: x.sort(out=out))
        assert not out[0][-1].any(), "it did not stop"
        del x, out
    """,
    "sort of a row": """
        x = torch.rand(20_000_000)
        out = torch.zeros(20_000_000), torch.zeros(20_000_000, dtype=torch.int64)
        assert interrupt(lambda: x.sort(out=out))
        assert not out[0][-1], "it did not stop"
        del x, out
    """,
    "topk": """
        x, k = torch.arange(30_000_000.0), 10_000  # each element is among the first
        out = torch.zeros(k), torch.zeros(k, dtype=torch.int64)
        assert interrupt(lambda: x.topk(k, out=out))
        assert not out[0].any(), "it did not stop"
        del x, out
    """,
    "search": """
        sequence, x = torch.arange(1e7), torch.rand(5_000_000) * 1e7
        out = torch.zeros(5_000_000, dtype=torch.int64)
        assert interrupt(lambda: torch.searchsorted(sequence, x, out=out))
        assert out[-1] == 0, "it did not stop"
        del sequence, x, out
    """,
    "scan of a row": """
        x, out = torch.zeros(60_000_000), torch.zeros(60_000_000)
        assert interrupt(lambda: torch.logcumsumexp(x, 0, out=out))
        assert not out[-1], "it did not stop"
        del x, out
    """,
    "scan of columns": """
        x, out = torch.zeros(6_000_000, 10), torch.zeros(6_000_000, 10)
        assert interrupt(lambda: torch.logcumsumexp(x, 0, out=out))
        assert not out[-1].any(), "it did not stop"
        del x, out
    """,
    "index": """
        x, ones = torch.zeros(40_000_000), torch.ones(40_000_000)
        index = torch.randint(0, 40_000_000, (40_000_000,))
        assert interrupt(lambda: x.index_add_(0, index, ones))
        assert x.sum() < 39_000_000, "it did not stop"
        del x, index, ones
    """,
    "nonzero": """
        x, out = torch.ones(300_000_000, dtype=torch.bool), torch.zeros(0, 1).long()
        assert interrupt(lambda: torch.nonzero(x, out=out))
        assert not out.numel(), "it did not stop"
        del x, out
    """,
    "permutation": """
        torch.manual_seed(0)
        assert interrupt(lambda: torch.randperm(30_000_000))
        stopped = torch.rand(1)
        torch.manual_seed(0)
        torch.randperm(30_000_000)
        assert torch.rand(1) != stopped, "it did not stop"
        del stopped
    """,
    "random": """
        x = torch.zeros(60_000_000, dtype=torch.float64)
        assert interrupt(x.normal_)
        assert not x[-1], "it did not stop"
        assert torch.rand(9).any()  # the generator is unlocked
        del x
    """,
    "matmul": """
        x, out = torch.rand(900, 400, 400), torch.zeros(900, 400, 400)
        assert interrupt(lambda: torch.matmul(x, x, out=out))
        assert not out[-1].any(), "it did not stop"
        del x, out
    """,
    "one product": """
        x, out = torch.rand(5000, 5000), torch.zeros(5000, 5000)
        assert interrupt(lambda: torch.matmul(x, x, out=out))
        assert not out[-1].any(), "it did not stop"
        del x, out
    """,
    "one product of integers": """
        x, out = torch.ones(2, 4000, 4000, dtype=torch.int64)
        assert interrupt(lambda: torch.matmul(x, x, out=out))
        assert (out[-1] == 1).all(), "it did not stop"
        del x, out
    """,
    "tolist": """
        x = torch.ones(1, dtype=torch.bool).expand(2**16, 4096)
        made = []
        def stop(*_):
            lists = (o for o in gc.get_objects() if type(o) is list)
            made.append(sum(len(o) == 4096 for o in lists))
            raise KeyboardInterrupt
        signal.signal(signal.SIGINT, stop)
        assert interrupt(x.tolist)
        assert 0 < made[0] < 2**16, "it did not stop"
        del x
    """,
    "factorizations": """
        x, factors = torch.rand(1500, 240, 240), torch.zeros(1500, 240)
        assert interrupt(lambda: torch._C._lapack("geqrf", [x, factors], 240, 240))
        assert not factors.any(1).all(), "it did not stop"
        del x, factors
    """,
    "recurrent": """
        steps, n = 10_000, 1024
        gates, y, h_before = torch.zeros(3, steps, n)
        y += 7
        h, weight = torch.zeros(1, n), torch.zeros(n, n)
        operands = [gates, h, y, h_before, weight]
        assert interrupt(lambda: torch._C._rnn_steps(0, operands, [1] * steps, False))
        assert y[-1, 0].item() == 7, "it did not stop"
        del gates, y, h_before, h, weight, operands
    """,
    "recurrent backward": """
        layer = torch.nn.RNN(768, 768)
        x = torch.zeros(5000, 1, 768, requires_grad=True)
        y = layer(x)[0].sum()
        assert interrupt(y.backward)
        assert x.grad is None, "it did not stop"
        del layer, x, y
    """,
    "backward": """
        y = w = torch.ones(1, requires_grad=True)
        for _ in range(1_000_000):
            y = y * 1.0000001
        assert interrupt(y.backward)
        assert w.grad is None, "it did not stop"
        del y, w
    """,
}


# Several threads share a row otherwise than one goes through it.
THREADS = {
    "elementwise": [1],
    "sort of a row": [1, 2],
    "scan of a row": [1, 2],
    "one product": [1, 2],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "what, threads",
    [(what, threads) for what in STOPS for threads in THREADS.get(what, [2])],
)
def test_an_interrupt_stops_long_work(what, threads):
    code = INTERRUPT.replace("{threads}", str(threads)) + dedent(STOPS[what])
    run(code + "check()")


@pytest.mark.slow
@pytest.mark.parametrize(
    "operation",
    [
        "torch.linalg.inv(x).sum().item()",  # one factorization of LAPACK
        "[torch.optim.SGD([w], lr=0.1).step() for _ in range(5000)]",
    ],
)
def test_an_interrupt_is_answered_after_what_cannot_stop(operation):
    run(
        INTERRUPT.replace("{threads}", "1")
        + f"""
x = torch.rand(3000, 3000, dtype=torch.float64)
w = torch.zeros(1_000_000, requires_grad=True)
w.grad = torch.ones(1_000_000)
assert interrupt(lambda: {operation}), "it was too quick for the signal"
assert (w == w[0]).all(), "half a step"
del x, w
check()
"""
    )


@pytest.mark.slow
def test_signal_handlers_that_return_change_nothing():
    run(
        INTERRUPT.replace("{threads}", "2")
        + """
calls = []
torch.enable_grad  # which is loaded at its first use
def handler(number, frame):
    with torch.enable_grad():  # it may run in a pass
        x = torch.ones(100_000, requires_grad=True)
        (x.sort()[0] * 2).sum().backward()
        calls.append(x.grad.sum().item())
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.03, 0.03)
x = torch.rand(15, 100_000, dtype=torch.float64)
y = w = torch.ones(1, requires_grad=True)
for _ in range(50_000):
    y = y + 1
passes = 0
while len(calls) < 9 or passes < 3:
    passes += 1
    assert (x.sort()[0].diff() >= 0).all()
    assert abs((x.sin() ** 2 + x.cos() ** 2).sum().item() - x.numel()) < 1e-6 * x.numel()
    y.backward(retain_graph=True)
signal.setitimer(signal.ITIMER_REAL, 0)
assert w.grad.item() == passes and set(calls) == {200_000}
del x, y, w
check()
"""
    )
