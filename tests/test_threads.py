"""Programs of Python threads without locks may compute wrong numbers, but never touch freed
memory, abort or hang. Each runs in a process of its own, on the CPU and on simulated GPUs."""

import os

import pytest
from isolated import python

# race(*work) calls each function again and again in a thread of its own for some seconds.
# Errors that a program without races would get as well are part of the game.
PRELUDE = """
import gc, sys, threading, time
import pydevtensor as torch
sys.setswitchinterval(1e-5)
device = torch.device('{device}')
expected = (RuntimeError, IndexError, AttributeError, TypeError)

def race(*work, seconds={seconds}):
    end, wrong = time.monotonic() + seconds, []
    def run(function):
        try:
            while time.monotonic() < end and not wrong:
                try:
                    function()
                except expected:
                    pass
        except BaseException as error:
            wrong.append(error)
    threads = [threading.Thread(target=run, args=(each,)) for each in work]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    if wrong: raise wrong[0]

def leaf(*shape):
    return torch.ones(*shape, device=device).requires_grad_()
"""


def prelude(device, seconds=1):
    return PRELUDE.format(device=device, seconds=seconds)


PROGRAMS = {
    # the memory of an operand is exchanged while kernels read and write it
    "data": """
x = torch.ones(300_000, device=device)
index = torch.arange(50_000, device=device)
def exchange():
    x.data = torch.zeros(300_000 if time.monotonic_ns() % 3 else 200_000, device=device)
race(exchange, exchange, lambda: x + 1, lambda: x.mul_(2), lambda: x[index],
     lambda: torch.cat([x, x]), lambda: x.sort(), lambda: x.cumsum(0), lambda: (x > 0).nonzero())
""",
    "matmul": """
x = torch.ones(300, 300, device=device)
def exchange():
    x.data = torch.ones(300, 300, device=device)
race(exchange, exchange, lambda: x @ x, lambda: x.t() @ x, lambda: x.softmax(1), lambda: x.sum(0))
""",
    "recorded data": """
w = leaf(100_000)
def exchange():
    w.data = torch.ones(100_000 if time.monotonic_ns() % 3 else 50_000, device=device)
def train():
    (w * w + w.exp()).sum().backward()
def step():
    with torch.no_grad():
        w.sub_(w.grad)
race(exchange, exchange, train, train, step, lambda: w.data.fill_(1.0))
""",
    "out": """
out, x = torch.empty(0, device=device), torch.ones(100_000, device=device)
def exchange():
    out.data = torch.empty(100_000, device=device)
    out.data = torch.empty(0, device=device)
race(exchange, exchange, lambda: torch.add(x, x, out=out), lambda: torch.sin(x, out=out),
     lambda: out + 1, lambda: out.sum())
""",
    "copies": """
import numpy
x = torch.ones(200_000, device=device)
def exchange():
    x.data = torch.zeros(200_000, device=device)
def exchange_owned():
    x.data = torch.from_numpy(numpy.zeros(200_000, numpy.float32)).to(device)
race(exchange, exchange_owned, lambda: x.cpu(), lambda: x.clone(), lambda: x.tolist()[0],
     lambda: x.double(), lambda: x[5].item(), lambda: x.copy_(torch.ones(200_000)))
""",
    # Hogwild: several threads train one leaf, and take its gradient away
    "grad": """
w = leaf(40_000)
def train():
    (w * 2).sum().backward()
def take():
    w.grad = None
race(train, train, train, take)
def give():
    w.grad = torch.ones(40_000, device=device)
race(train, train, take, give, lambda: w.grad.mul_(0.5), lambda: w.grad.sum().item())
""",
    "small grad": """
w = leaf(3)
def train():
    (w * w).sum().backward()
def train_twice():
    (w * w * w).sum().backward(create_graph=True)
def take():
    w.grad = None
race(train, train, train_twice, take, take, lambda: w.grad.sum())
""",
    "retain_grad": """
w = leaf(30_000)
shared = [w * 2]
def renew():
    shared[0] = w * 2
def train():
    y = shared[0]
    y.retain_grad()
    (y * y).sum().backward()
def take():
    shared[0].grad = None
    w.grad = None
race(renew, train, train, take, lambda: shared[0].grad.sum())
""",
    "optimizer": """
model = torch.nn.Sequential(torch.nn.Linear(64, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 64))
model.to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.ones(32, 64, device=device)
def train():
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
race(train, train, optimizer.zero_grad, optimizer.zero_grad, gc.collect)
""",
    # requires_grad on and off while other threads record
    "requires_grad": """
w = leaf(5)
big = leaf(30_000)
def switch():
    for t in (w, big):
        t.requires_grad = False
        t.requires_grad = True
        t.detach_().requires_grad_()
def train():
    (w * w).sum().backward()
    (big * big).sum().backward()
race(switch, switch, train, train, lambda: big * 2)
""",
    # hooks come and go while passes call them
    "hooks": """
w = leaf(10)
def train():
    y = w * 2
    handles = [y.register_hook(lambda g: None) for _ in range(3)]
    y.sum().backward()
def change():
    handles = [w.register_hook(lambda g: g * 1) for _ in range(12)]
    for handle in handles: handle.remove()
shared = w * 3
def change_shared():
    shared.register_hook(lambda g: None).remove()
race(change, change, change_shared, train, train, lambda: shared.sum().backward(retain_graph=True))
""",
    # one graph, several passes; whoever is second may find its saved tensors gone
    "one graph": """
w = leaf(30_000)
graph = [None]
def renew():
    graph[0] = (w.exp() * w.sin() + w.tanh()).sum()
renew()
race(renew, *[lambda: graph[0].backward()] * 3,
     lambda: torch.autograd.grad(graph[0], w, retain_graph=True))
""",
    "in place": """
base = torch.zeros(80_000, device=device)
w = leaf(40_000)
def write():
    base[:40_000] = w
    base[40_000:].mul_(2)
def exchange():
    base.detach_()
    base.data = torch.zeros(80_000 if time.monotonic_ns() % 3 else 70_000, device=device)
def train():
    view = base[10:60_000]
    view.add_(1)
    view.sum().backward()
race(write, write, exchange, exchange, train, train)
""",
    # cycles of tensors and hooks are collected while passes run over them
    "cycles": """
w = leaf(1000)
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        gc.collect(0)
        return g * 2 + 0 * ctx.saved_tensors[0]
def train():
    y = Double.apply(w * 1)
    y.register_hook(lambda g, y=y: g + 0 * y.detach())
    y.sum().backward()
race(train, train, train, gc.collect)
""",
    # an index that is checked, then changed, then used
    "index": """
x = torch.zeros(1000, device=device)
index = torch.zeros(200_000, dtype=torch.int64, device=device)
mask = torch.zeros(100_000, dtype=torch.bool, device=device)
rows, table = torch.zeros(200_000, 2, device=device), torch.zeros(100_000, device=device)
def change():
    index.fill_(10**12)
    index.fill_(-(10**12))
    index.fill_(3)
    mask.fill_(True)
    mask.fill_(False)
race(change, change, lambda: x[index], lambda: x.index_add_(0, index, rows[:, 0]),
     lambda: x.scatter_(0, index, 1.0), lambda: mask.nonzero(), lambda: table[mask],
     lambda: torch.nn.functional.nll_loss(rows, index.clamp(0, 1)),
     lambda: torch.nn.functional.nll_loss(rows, index),
     lambda: torch.searchsorted(x, x, sorter=index[:1000]))
def change_repeats():
    index.fill_(1)
    index.fill_(5)
race(change_repeats, change_repeats, lambda: index.repeat_interleave(index))
""",
    "lists": """
parts = [torch.ones(30_000, device=device) for _ in range(10)]
def change():
    parts[3] = torch.ones(30_000, device=device)
    parts.pop(), parts.insert(0, torch.ones(30_000, device=device))
    for part in parts:
        part.data = torch.zeros(30_000, device=device)
race(change, change, lambda: torch.cat(parts), lambda: torch.stack(parts),
     lambda: torch.nn.utils.clip_grad_norm_(parts, 1.0))
""",
}


# Who touches freed memory dies of it: it is overwritten, and returned to the system where
# it is large.
UNKIND = {
    "MALLOC_PERTURB_": "165",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "PYDEVTENSOR_CPU_CACHE": "0",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "device, seconds",
    [
        ("cpu", 0.5 if os.environ.get("PYDEVTENSOR_SANITIZE") else 0.1),
        pytest.param("cpu", 4, marks=pytest.mark.slow),
        pytest.param("cuda", 2, marks=pytest.mark.slow),
    ],
)
def test_a_race_ends_well(name, device, seconds):
    code = prelude(device, seconds) + PROGRAMS[name] + "print('done')"
    assert python(code, PYDEVTENSOR_SIM_GPUS="2", **UNKIND) == "done\n"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_passes_of_several_threads_add_up(device):
    code = """
small, big = leaf(3), leaf(400_000 if device.type == 'cpu' else 30_000)
threads = []
def train(number):
    for i in range(20):
        if i == 0:
            for t in (small, big): t.register_hook(lambda g: g * 1)
        (small * 2 + small * number).sum().backward()
        (big * 2 + big * number).sum().backward()
for number in range(1, 5):
    threads.append(threading.Thread(target=train, args=(number,)))
for thread in threads: thread.start()
for thread in threads: thread.join()
for t in (small, big):
    assert (t.grad == 20 * (3 + 4 + 5 + 6)).all(), t.grad
print('done')
"""
    printed = python(prelude(device) + code, PYDEVTENSOR_SIM_GPUS="2")
    assert printed == "done\n"


@pytest.mark.slow
def test_other_threads_run_during_long_work():
    code = """
sys.setswitchinterval(1000)  # so that a thread runs only while another gives up the GIL
ticks, stop = 0, False
def tick():
    global ticks
    while not stop:
        ticks += 1
        time.sleep(0)
x, m = torch.rand(2_000_000), torch.rand(1200, 1200)
w, mask, index = torch.ones(4_000_000).requires_grad_(), x > 0.5, torch.arange(2_000_000)
far = torch.rand(4_000_000, device='cuda')
loss = w.sin().exp().sum()
work = {
    "sort": lambda: x.sort(), "sum": lambda: [torch.logsumexp(x, 0) for _ in range(20)],
    "matmul": lambda: m @ m, "add": lambda: [torch.sin(w) for _ in range(4)],
    "nonzero": lambda: mask.nonzero(), "index": lambda: x.index_add(0, index, x),
    "random": lambda: torch.randn(4_000_000), "copy": lambda: far.cpu(),
    "backward": lambda: loss.backward(retain_graph=True),
}
thread = threading.Thread(target=tick)
thread.start()
for name, function in work.items():
    during = 0
    for _ in range(20):
        before = ticks
        function()
        during += ticks - before
        if during:
            break
    print(name, during > 0)
stop = True
"""
    printed = python(prelude("cpu") + code, PYDEVTENSOR_SIM_GPUS="1")
    assert "False" not in printed and printed.count("True") == 9, printed


# A sanitizer's frames are several times as large.
SMALL_STACK = 256 if os.environ.get("PYDEVTENSOR_SANITIZE") else 64


@pytest.mark.parametrize("size", [0, 256 << 10, SMALL_STACK << 10])
def test_passes_inside_of_each_other_end_in_an_error(size):
    code = """
w = leaf(3)
class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, g):
        with torch.enable_grad():
            Again.apply(w).sum().backward()
        return g
def hook(g):
    with torch.enable_grad():
        y = w * 2
        y.register_hook(hook)
        y.sum().backward()
def run():
    for recurse in (lambda: hook(None), lambda: Again.apply(w).sum().backward()):
        try:
            recurse()
        except RecursionError:
            print('RecursionError')
    w.grad = None
    (w * w).sum().backward()
    assert w.grad.tolist() == [2, 2, 2]
"""
    code += f"""
sys.setrecursionlimit(100_000)
if {size}:
    threading.stack_size({size})
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
else:
    run()
"""
    printed = python(prelude("cpu") + code)
    assert printed == "RecursionError\nRecursionError\n"
