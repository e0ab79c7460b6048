"""The devices of the tests, and checks after each test.

The suite runs on the CPU and on two simulated GPUs. PYDEVTENSOR_TEST_GPUS=real takes
real GPUs, and runs nothing if there are none; =only leaves out what does not use a GPU
as well; =rehearsal does the same on simulated GPUs; =none runs on the CPU alone. It ends
by saying how many tests ran on which device, of how many that do not need a simulator.
The fast tests (-m "not slow") leave the second GPU to tests that need two.

Simulated GPUs delay work: tests of cuda:0 run under the lazy schedule, all others under
a random one with a seed made from the test's name, so a failing test also fails when it
runs alone. PYDEVTENSOR_SIM_SCHEDULE=eager (or another) replaces both.
"""

import gc
import inspect
import multiprocessing
import os
import time
import zlib
from collections import Counter

import pytest

choice = os.environ.get("PYDEVTENSOR_TEST_GPUS", "simulated")
if choice in ("simulated", "rehearsal"):
    os.environ.setdefault("PYDEVTENSOR_SIM_GPUS", "2")
    os.environ.setdefault("PYDEVTENSOR_SIM_MEMORY", "256M")
    # The kernels are tested; tests/test_cudnn.py has cuDNN.
    os.environ.setdefault("PYDEVTENSOR_SIM_CUDNN", "0")

import pydevtensor as torch  # noqa: E402

GPUS = min(torch.cuda.device_count(), 2) if choice != "none" else 0
SIMULATED = GPUS > 0 and torch.cuda.is_simulated()
if choice in ("real", "only") and (not GPUS or SIMULATED):
    raise pytest.UsageError(
        f"PYDEVTENSOR_TEST_GPUS={choice}, and the GPUs are simulated: unset "
        "PYDEVTENSOR_SIM_GPUS"
        if SIMULATED
        else f"PYDEVTENSOR_TEST_GPUS={choice}: {torch.cuda.why_unavailable()}"
    )
ONLY = choice in ("only", "rehearsal")
if GPUS and not SIMULATED:
    torch.backends.cudnn.allow_tf32 = False  # digits are compared with the CPU's
DEVICES = ["cpu", *(f"cuda:{i}" for i in range(GPUS))]
IN_TURN = [
    *DEVICES[:2],
    *(pytest.param(name, marks=pytest.mark.slow) for name in DEVICES[2:]),
]
# For tests that a CPU's may stand for in the fast run.
ON_A_GPU_SLOWLY = [
    *DEVICES[ONLY:1],
    *(pytest.param(name, marks=pytest.mark.slow) for name in DEVICES[1:]),
]


@pytest.fixture(params=IN_TURN[ONLY:])
def device(request):
    """Each device in turn, as a string."""
    return request.param


@pytest.fixture(params=IN_TURN[1:] or [pytest.param(None, marks=pytest.mark.skip)])
def gpu(request):
    """Each GPU in turn, as a string."""
    return request.param


@pytest.fixture
def here(gpu):
    """Each GPU in turn, made current."""
    torch.cuda.set_device(gpu)
    return gpu


@pytest.fixture(autouse=True, scope="session")
def temporary_files(tmp_path_factory):
    """What tests compile and write is kept with the other files of the run."""
    folder = tmp_path_factory.getbasetemp() / "kernels"
    os.environ["PYDEVTENSOR_KERNEL_CACHE"] = str(folder)
    # A pytest that a test starts keeps its files there too, and removes none of an
    # earlier run.
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder.parent)


@pytest.fixture
def two_gpus():
    """The names of two GPUs."""
    if GPUS < 2:
        pytest.skip("needs two GPUs")
    return DEVICES[1:3]


@pytest.fixture(params=["as it is", "eager", "lazy", "random:5"])
def schedule(request):
    """The schedules of simulated GPUs, one after the other."""
    if request.param == "as it is" or not SIMULATED:
        yield request.param
        return
    before = torch._C._sim_control("schedule")
    torch.cuda.sim_schedule(request.param)
    yield request.param
    torch.cuda.synchronize()
    torch.cuda.sim_schedule(before)


@pytest.fixture
def no_process_is_left():
    """A test ends the processes that it starts, and closes descriptors."""
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    yield
    gc.collect()
    assert not multiprocessing.active_children()
    # spawn keeps one for its resource tracker
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def devices_of(item):
    """The devices that the fixtures give to a test."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    named = {parameters.get("device"), parameters.get("gpu")}
    if "two_gpus" in item.fixturenames:
        named.update(DEVICES[1:])
    return [name for name in DEVICES if name in named]


def uses_a_gpu(item):
    """By its fixtures, or by itself."""
    if devices_of(item):
        return True
    function = getattr(item, "function", None)
    return function is not None and "cuda" in inspect.getsource(function)


def pytest_collection_modifyitems(config, items):
    if ONLY:
        kept = [item for item in items if uses_a_gpu(item)]
        config.hook.pytest_deselected(items=[i for i in items if i not in set(kept)])
        items[:] = kept
    # Files that build for minutes come first, so that no process waits for them at the end.
    items.sort(key=lambda item: item.path.parent.name != "tools")


def schedule_of(item):
    """The simulator's schedule for a test."""
    chosen = os.environ.get("PYDEVTENSOR_SIM_SCHEDULE")
    if chosen:
        return chosen
    if "two_gpus" not in item.fixturenames and "cuda:0" in devices_of(item):
        return "lazy"
    return f"random:{zlib.crc32(item.nodeid.encode())}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and SIMULATED:
        schedule = schedule_of(item)
        report.sections.append(
            ("simulated GPUs", f"started with PYDEVTENSOR_SIM_SCHEDULE={schedule}")
        )
    # The traceback of a failure keeps tensors alive: not a leak.
    if report.when == "call":
        item.keeps_tensors = not report.passed
    # Properties, since they reach the process that writes the summary.
    if report.when == "call":
        report.user_properties.append(("devices", devices_of(item)))
    elif not report.passed:
        report.user_properties.append(("not run on", devices_of(item)))
    return report


# A file that gets each failure at once, since a run that is stopped shows none. Of the
# processes of a run, the one that sees all reports writes.
FAILURES = os.environ.get("PYDEVTENSOR_TEST_FAILURES")
if "PYTEST_XDIST_WORKER" in os.environ:
    FAILURES = None
if FAILURES:
    open(FAILURES, "w").close()


def pytest_runtest_logreport(report):
    if FAILURES and report.failed:
        with open(FAILURES, "a") as file:
            file.write(f"{report.nodeid} ({report.when})\n{report.longreprtext}\n\n")


def pytest_terminal_summary(terminalreporter):
    ran, left_out = Counter(), Counter()
    for outcome in ("passed", "failed", "skipped", "error"):
        for report in terminalreporter.stats.get(outcome, ()):
            # A file that was skipped as a whole has none.
            said = dict(getattr(report, "user_properties", ()))
            if outcome in ("passed", "failed"):
                ran.update(said.get("devices", ()))
            elif "simulat" not in str(report.longrepr):
                left_out.update(said.get("devices") or said.get("not run on", ()))
    for name in DEVICES:
        what = name
        if name != "cpu":
            kind = "simulated" if SIMULATED else "real"
            what += f" {torch.cuda.get_device_name(name)} ({kind})"
        terminalreporter.write_line(
            f"ran on {what}: {ran[name]} of {ran[name] + left_out[name]} tests"
        )


def pytest_collection_finish():
    """Freeze the collected tests, so that each gc.collect() stays fast."""
    gc.collect()
    gc.freeze()


def alive():
    return [torch._C._storage_count(torch.device(name)) for name in DEVICES]


def settle():
    """Put defaults back, and wait for all GPUs."""
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    if GPUS:
        torch.cuda.set_device(0)
        for i in range(GPUS):
            torch.cuda.synchronize(i)


def left_behind(before):
    """Settle, and say which storages are new."""
    settle()
    after = alive()
    if any(now > then for now, then in zip(after, before, strict=True)):
        gc.collect()
        gc.freeze()  # the reports of tests accumulate too
        after = alive()
    # Fewer is fine: the traceback of an earlier test has been freed.
    if any(now > then for now, then in zip(after, before, strict=True)):
        return f"storages alive on {DEVICES}: {before} before, {after} after"
    return None


@pytest.fixture(autouse=True)
def nothing_left(request):
    """No storage outlives its test, no GPU keeps an error, no default stays changed."""
    if SIMULATED:
        # Each test starts its own random order, also of a schedule from outside.
        torch.cuda.sim_schedule(schedule_of(request.node))
    before = alive()
    yield
    left = left_behind(before)
    if left is None or getattr(request.node, "keeps_tensors", False):
        return
    # A thread that exchanges with other ranks may be about to drop what it has sent.
    end = time.monotonic() + 2
    while (left := left_behind(before)) and time.monotonic() < end:
        time.sleep(0.01)
    assert left is None, left
