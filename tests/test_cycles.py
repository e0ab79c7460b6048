"""Reference cycles through a graph: a module that keeps its output, hooks that know the module."""

import gc
import threading
import weakref

import pytest

import pydevtensor as torch
from pydevtensor import nn


class Keeper(nn.Module):
    """Keeps what it computes, with something in the graph that refers to the module."""

    def __init__(self, device):
        super().__init__()
        self.linear = nn.Linear(3, 3, device=device)
        self.seen = []

    def own(self):
        module = self

        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.module = module
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                ctx.module.seen.append("Double")
                return grad * 2

        return Double

    def forward(self, x, way):
        h = self.linear(x)
        if "hook" in way:
            h.register_hook(lambda grad: self.seen.append("hook"))
        if "function" in way:
            h = self.own().apply(h)
        if "longer" in way:
            h = (h.relu() * 2 + h).reshape(-1)[1:].exp()
        if "in place" in way:
            h = h + 0
            h.mul_(2)
        if "diamond" in way:
            h = h.tanh() * h + h.sigmoid()
        self.last = h
        return h


WAYS = [
    "hook",
    "hook, longer",
    "hook, in place",
    "hook, diamond",
    "function",
    "function, longer",
    "function, diamond",
    "hook, function, longer, diamond",
]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_module_that_keeps_its_output_goes(device, way, backward):
    gc.collect()
    module = Keeper(device)
    out = module(torch.ones(1, 3, device=device), way)
    if backward:
        out.sum().backward()
        assert module.seen
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is not None  # out keeps it
    del out
    gc.collect()
    assert gone() is None


def test_a_full_backward_hook(device):
    module = nn.Linear(3, 3, device=device)
    module.register_full_backward_hook(lambda *given, m=module: None)
    module.last = module(torch.ones(1, 3, device=device)) * 2
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None


def test_what_others_hold_stays(device):
    """A graph that two tensors share, or a grad_fn, is left alone, and works on."""
    module = Keeper(device)
    out = module(torch.ones(1, 3, device=device), "hook, function, longer")
    module.more = out * 2
    other, node = out + 1, module.last.grad_fn
    seen = module.seen
    gone = weakref.ref(module)
    del module, out
    for _ in range(3):
        gc.collect()
    assert gone() is not None and node.name() == "ExpBackward0"
    other.sum().backward()
    assert sorted(seen) == ["Double", "hook"]
    del other, node
    gone().more = None  # with which the module's two tensors shared a part
    gc.collect()
    assert gone() is None


def test_collecting_while_threads_compute(device):
    """The collector may come at any time; nothing that is in use may be cleared."""
    weight = torch.ones(200, 200, device=device, requires_grad=True)
    failures, stop = [], threading.Event()

    def work():
        while not stop.is_set():
            module = Keeper(device)
            kept = module.linear(torch.ones(1, 3, device=device))
            calls = []
            kept.register_hook(calls.append)
            module.last = (kept.sum() * weight).tanh()
            module.last.sum().backward()
            if len(calls) != 1 or module.last.grad_fn is None:
                failures.append(calls)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        gc.collect()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    gc.collect()


def test_a_long_chain_with_a_hook_at_its_start(device):
    x = torch.ones(2, device=device, requires_grad=True) * 1
    calls = []
    x.register_hook(calls.append)
    for _ in range(20000):
        x = x + 1
    gc.collect()  # walks the whole chain, without recursion
    x.sum().backward()
    assert len(calls) == 1
