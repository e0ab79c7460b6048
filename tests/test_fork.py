"""A forked child computes on the CPU and learns why it cannot use its parent's GPU."""

import pytest
from isolated import python

CHILD = """
import os, sys
import pydevtensor as torch
{before}
child = os.fork()
if child == 0:
    try:
{inside}
    except BaseException as error:
        print(type(error).__name__, error, flush=True)
        os._exit(1)
    os._exit(0)
_, status = os.waitpid(child, 0)
print("child", os.waitstatus_to_exitcode(status))
{after}
"""


def fork(before, inside, after="", **chosen):
    inside = "\n".join(" " * 8 + line for line in inside.splitlines())
    return python(CHILD.format(before=before, inside=inside, after=after), **chosen)


def test_the_cpu_works_on():
    printed = fork(
        "x = torch.rand(2000, 2000); y = x @ x  # its threads are not the child's",
        "z = x @ x\nassert torch.equal(z, y)\nassert (x + 1).sum().item() > 0",
        "assert torch.equal(x @ x, y)",
    )
    assert printed == "child 0\n"


def test_a_gpu_in_use_is_not_the_childs():
    printed = fork(
        "x = torch.ones(3, device='cuda')",
        "x + 1",
        "assert (x + 1).tolist() == [2, 2, 2]",
        PYDEVTENSOR_SIM_GPUS="1",
    )
    name, rest = printed.split(" ", 1)
    assert name in ("RuntimeError", "AcceleratorError") and "fork" in rest
    assert rest.endswith("child 1\n")


def test_counting_before_a_fork_is_no_use():
    printed = fork(
        "assert torch.cuda.is_available() and torch.cuda.device_count() == 2",
        "assert (torch.ones(3, device='cuda:1') + 1).tolist() == [2, 2, 2]",
        PYDEVTENSOR_SIM_GPUS="2",
    )
    assert printed == "child 0\n"


def test_backward_in_a_child():
    printed = fork(
        "w = torch.ones(5, requires_grad=True); (w * 2).sum().backward()",
        "(w * 2).sum().backward()\nassert w.grad.tolist() == [4] * 5",
        "assert w.grad.tolist() == [2] * 5",
    )
    assert printed == "child 0\n"


WORKERS = """
import os, signal, threading, time
devices = ["cpu", "cuda:0", "cuda:1"]
kept = [torch.ones(300, device=d) for d in devices] + [torch.ones(300).pin_memory()]
stop = threading.Event()


def compute(device):
    while not stop.is_set():
        x = torch.rand(30_000, device=device)
        [(x + 1).sum() for _ in range(3)], x.cpu()


def copy():
    while not stop.is_set():
        torch.zeros(2000).pin_memory().to("cuda:0", non_blocking=True)
        torch.ones(40_000, device="cuda:0").to("cuda:1")


def child():
    kept.clear()
    x, y = torch.rand(40_000), torch.ones(64, 64)
    assert 19_000 < x.sum().item() < 21_000 and (y @ y).sum().item() == 64**3
    try:
        torch.ones(3, device="cuda:0")
    except torch.AcceleratorError as error:
        assert "fork" in str(error), error
    else:
        raise AssertionError("the child used its parent's GPU")


def ended(process, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "hung"


threads = [threading.Thread(target=compute, args=(d,)) for d in devices * 2]
threads.append(threading.Thread(target=copy))
[t.start() for t in threads]
results = []
while len(results) < TIMES and "hung" not in results:
    process = os.fork()
    if not process:
        try:
            child()
            os._exit(0)
        finally:
            os._exit(1)
    results.append(ended(process, 30))
stop.set()
[t.join() for t in threads]
print(set(results), len(results))
"""


LONG = [pytest.mark.slow, pytest.mark.core]


@pytest.mark.parametrize("times", [15, pytest.param(60, marks=LONG)])
def test_forks_while_other_threads_compute(times):
    printed = python(
        f"import pydevtensor as torch\nTIMES = {times}\n{WORKERS}",
        PYDEVTENSOR_SIM_GPUS="2",
        PYDEVTENSOR_SIM_MEMORY="256M",
    )
    assert printed == f"{{0}} {times}\n"
