"""The process around the library: imports, interpreters, exits, interrupts, messages.

Each test runs in a process of its own; isolated.python() checks its exit status, which
a crash changes, and that no process outlives it.
"""

import os
import signal

import pytest
from isolated import python, run

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


def test_importing_nn_stays_light():
    out = run("""
        import sys
        before = {*sys.modules}
        import pydevtensor.nn
        slow = {"ctypes", "inspect", "json", "pathlib", "pickle", "subprocess"}
        print(sorted(slow & ({*sys.modules} - before)))
    """)
    assert out == "[]\n"


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


# Holds exit() for a quarter of a second after the libraries have cleaned up: it flushes a FILE
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
sleep = subprocess.Popen(["sleep", "0.25"], pass_fds=[reading])
os.close(reading)
libc.fputs(b"late", ctypes.c_void_p(libc.fdopen(writing, b"w")))
"""


@pytest.mark.parametrize(
    "computing",
    [
        "pool",
        "cuda",
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ("BLAS", "small", "backward")
        ),
    ],
)
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


@pytest.mark.slow
def test_exits_are_clean():
    for i in range(EXITS):
        run("import pydevtensor as torch; x = torch.ones(3)", PYTHONHASHSEED=str(i))


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
