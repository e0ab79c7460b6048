"""The process around the library: imports, interpreters, exits, interrupts, messages.

Each test runs in a process of its own; isolated.python() checks its exit status, which
a crash changes, and that no process outlives it.
"""

import os
import signal
from textwrap import dedent

import pytest
from isolated import python


def run(code, **expected):
    return python(dedent(code), PYDEVTENSOR_SIM_GPUS="2", **expected)


# --- interpreters and imports -------------------------------------------------------

INTERPRETER = """
try:
    from _interpreters import create, destroy, exec
    def run(interpreter, text):
        return exec(interpreter, text)  # an exception is returned
except ImportError:
    from _xxsubinterpreters import create, destroy, run_string
    def run(interpreter, text):
        try:
            run_string(interpreter, text)
        except Exception as error:
            return error
"""


@pytest.mark.parametrize("first", ["main", "other"])
def test_a_subinterpreter_is_refused(first):
    out = run(
        INTERPRETER
        + f"""
if {first == "main"}:
    import pydevtensor as torch
for _ in range(3):  # a new interpreter may get the address of the one before
    other = create()
    for _ in range(2):
        error = run(other, "import pydevtensor")
        assert "ImportError" in str(error), error
        assert "main interpreter" in str(error), error
    destroy(other)
import pydevtensor as torch
x = torch.ones(3, requires_grad=True)
x.register_hook(lambda g: g * 2)
(x * 2).sum().backward()
print(x.grad)
""",
    )
    assert out == "tensor([4., 4., 4.])\n"


REIMPORT = """
import gc, importlib, pickle, sys
import pydevtensor as torch
old = torch
x = torch.ones(3, requires_grad=True)
layer = torch.nn.Linear(3, 2)
{again}
gc.collect()
import pydevtensor as torch
assert torch.Tensor is old.Tensor and torch.float32 is old.float32
assert type(pickle.loads(pickle.dumps(x))) is torch.Tensor
y = (x + torch.ones(3)).std() + x.kron(x).sum()
torch.optim.SGD([x], lr=0.5)
y.backward()
other = torch.nn.Linear(3, 2)
other.load_state_dict(layer.state_dict())
assert torch.equal(other(x), layer(x))
try:
    torch.nn.Sequential(layer, other)
except TypeError as error:
    print(error)
repr(x), x.numpy if 0 else x.tolist()
"""


@pytest.mark.parametrize(
    "again",
    [
        "importlib.reload(torch._C); importlib.reload(torch)",
        "del sys.modules['pydevtensor._C']",
        "del sys.modules['pydevtensor']",
        "[sys.modules.pop(k) for k in [*sys.modules] if k.startswith('pydevtensor')]",
    ],
)
def test_tensors_survive_another_import(again):
    out = run(REIMPORT.format(again=again))
    # Only what Python defines is defined anew.
    assert out == "" or "not a Module" in out


def test_a_package_that_is_hidden_names_what_is_missing():
    out = run("""
        import sys
        import pydevtensor as torch
        x = torch.ones(3)
        sys.modules['pydevtensor'] = None
        for use in (repr, torch.Tensor.std, torch.Tensor.tolist, lambda x: x.kron(x),
                    lambda x: torch.cuda, lambda x: x.backward()):
            try:
                print(use(x) is None)
            except (ImportError, RuntimeError, ValueError) as error:
                print(type(error).__name__)
    """)
    assert len(out.splitlines()) == 6


def test_threads_that_import_at_once():
    out = run("""
        import sys, threading
        sys.setswitchinterval(1e-6)
        found = []
        def work():
            import pydevtensor as torch
            found.append(torch.ones(3).kron(torch.ones(2)).sum().item())
        threads = [threading.Thread(target=work) for _ in range(16)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(set(found), len(found))
    """)
    assert out == "{6.0} 16\n"


# --- exit ---------------------------------------------------------------------------

# Each of the two GPUs has work queued, on its own stream and on another one.
QUEUED = """
import atexit, os, signal, sys, threading, time
import pydevtensor as torch
kept = []
for i in range(2):
    x = torch.ones(1000, device=f"cuda:{i}")
    with torch.cuda.stream(torch.cuda.Stream(i)):
        kept += [x + 1, x.to(f"cuda:{1 - i}", non_blocking=True) * 2]
        torch.cuda.Event().record()
    kept += [x, torch.ones(1000).pin_memory().to(x.device, non_blocking=True)]
w = torch.ones(1000, device="cuda:0", requires_grad=True)
y = (w * 2).sin()

class Stop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, gradient):
        sys.exit(3)
"""


@pytest.mark.parametrize("schedule", ["lazy", "random:1", "eager"])
@pytest.mark.parametrize(
    "code, status",
    [
        ("", 0),
        ("sys.exit(7)", 7),
        ("os._exit(5)", 5),
        ("raise ValueError(kept)", 1),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
        ("y.register_hook(lambda g: sys.exit(4)); y.sum().backward()", 4),
        ("y.register_hook(lambda g: os._exit(6)); y.sum().backward()", 6),
        ("Stop.apply(y).sum().backward()", 3),
    ],
)
def test_exit_status_with_work_queued(code, status, schedule):
    run(QUEUED + code, status=status, PYDEVTENSOR_SIM_SCHEDULE=schedule)


@pytest.mark.parametrize("schedule", ["lazy", "random:1"])
def test_tensors_work_until_the_end(schedule):
    """In atexit, in __del__ and in generators, whatever modules are gone by then."""
    out = run(
        QUEUED
        + """
def total(x):
    x = (x * 2).sum()
    x.backward()
    return x.item()

class Late:
    def __init__(self, device):
        self.x = torch.ones(5, device=device, requires_grad=True)
    def __del__(self):
        print("del", total(self.x))

def suspended():
    x = torch.ones(3, device="cuda:1", requires_grad=True)
    try:
        yield x
    finally:
        print("generator", x.sum().item())

late = Late("cuda:0")
generator = suspended()
next(generator)
y.register_hook(lambda g: y * g)
w.itself = w
atexit.register(lambda: print("atexit", total(y), torch.rand(99, 99).sort()[0].shape))
""",
        PYDEVTENSOR_SIM_SCHEDULE=schedule,
    )
    said = sorted(line.split()[0] for line in out.splitlines())
    assert said == ["atexit", "del", "generator"]


def test_what_outlives_every_module():
    run(
        QUEUED
        + """
import builtins
class Late:
    def __del__(self):
        (self.x * 2).sum().item()
builtins.late = sys.late = Late()
torch.cycle = sys.late.itself = sys.late
sys.late.x = w
w.itself = y.itself = w
y.register_hook(lambda g: y * g)
sys.local = threading.local()
sys.local.x = y
waits = threading.Event()
def wait():
    sys.local.x = torch.ones(3, device="cuda:1")
    waits.wait()
threading.Thread(target=wait, daemon=True).start()
sys.exported = memoryview(torch.ones(9)), torch.ones(9).__dlpack__()
"""
    )


def test_imported_at_exit():
    out = run("""
        import atexit
        @atexit.register
        def late():
            import pydevtensor as torch
            print(torch.ones(300_000).sort()[0].sum().item())
            print(torch.ones(3, device='cuda').sum().item())
    """)
    assert out == "300000.0\n3.0\n"


EXITS = int(os.environ.get("PYDEVTENSOR_TEST_EXITS", "20"))


COMPUTING = {
    "BLAS": "x = torch.rand(1500, 1500)\n    while True: x @ x",
    "pool": "x = torch.rand(400_000)\n    while True: x.sin().sort()",
    "small": "x = torch.rand(5)\n    while True: (x * 2).sum().item()",
    "backward": """x = torch.rand(300_000, requires_grad=True)
    x.register_hook(lambda g: g * 2)
    while True: (x * 2).sin().sum().backward()""",
    "cuda": """x = torch.rand(9000, device="cuda:1", requires_grad=True)
    while True: (x * 2).sin().sum().backward(); x.grad.sum().item()""",
}


# Holds exit() for half a second after the libraries have cleaned up: it flushes a FILE
# into a pipe that is full, until the last reader is gone.
SLOW_EXIT = """
import ctypes, os, subprocess
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
reading, writing = os.pipe()
os.set_blocking(writing, False)
try:
    while True:
        os.write(writing, bytes(4096))
except BlockingIOError:
    os.set_blocking(writing, True)
sleep = subprocess.Popen(["sleep", "0.5"], pass_fds=[reading])
os.close(reading)
libc.fputs(b"late", ctypes.c_void_p(libc.fdopen(writing, b"w")))
"""


@pytest.mark.parametrize("computing", COMPUTING)
def test_exit_while_daemon_threads_compute(computing):
    code = f"""
import sys, threading, time
import pydevtensor as torch
torch.set_num_threads(2)
def compute():
    {COMPUTING[computing]}
for _ in range(3):
    threading.Thread(target=compute, daemon=True).start()
time.sleep(0.1)
{SLOW_EXIT}
sys.exit(9)
"""
    for _ in range(-(-EXITS // 20)):
        run(code, status=9)


def test_exits_are_clean():
    for i in range(EXITS):
        run("import pydevtensor as torch; x = torch.ones(3)", PYTHONHASHSEED=str(i))


# --- interrupts ---------------------------------------------------------------------

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
        x, out = torch.ones(100_000_000, dtype=torch.bool), torch.zeros(0, 1).long()
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
        x, factors = torch.rand(3000, 120, 120), torch.zeros(3000, 120)
        assert interrupt(lambda: torch._C._lapack("geqrf", [x, factors], 120, 120))
        assert not factors[-1].any(), "it did not stop"
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
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
x = torch.rand(30, 100_000, dtype=torch.float64)
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


# --- messages between processes -----------------------------------------------------


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_tensors_travel_through_queues_and_pools(method, device, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""
import multiprocessing
import pydevtensor as torch

def double(x):
    return x.detach() * 2, x.requires_grad, str(x.device)

def answer(inbox, outbox):
    outbox.put(double(inbox.get()))

if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(inbox, outbox))
    process.start()
    with context.Pool(1) as pool:
        x = torch.arange(20_000.0, device={device!r}, requires_grad=True)
        inbox.put(x)
        for y, *about in (outbox.get(), *pool.map(double, [x])):
            print(y.sum().item() == 2 * x.sum().item(), about)
        pool.close()
        pool.join()
    process.join()
    print(process.exitcode)
""")
    out = python(None, arguments=[str(script)], PYDEVTENSOR_SIM_GPUS="2")
    assert out == f"True [True, {device!r}]\n" * 2 + "0\n"


def test_a_gpu_tensor_for_a_child_of_a_user_of_gpus():
    out = run("""
        import multiprocessing
        import pydevtensor as torch
        def child(receiving):
            try:
                receiving.recv()
            except RuntimeError as error:
                print(error, flush=True)
        receiving, sending = multiprocessing.get_context("fork").Pipe(False)
        x = torch.ones(3, device="cuda")
        process = multiprocessing.get_context("fork").Process(target=child, args=(receiving,))
        process.start()
        sending.send(x)
        process.join()
    """)
    assert "fork" in out and "spawn" in out


def test_what_has_a_history_is_not_sent():
    out = run("""
        import multiprocessing
        import pydevtensor as torch
        receiving, sending = multiprocessing.Pipe(False)
        try:
            sending.send(torch.ones(3, requires_grad=True) * 2)
        except RuntimeError as error:
            print(error)
    """)
    assert "detach" in out
