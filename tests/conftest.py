"""Devices for the tests, and what has to hold after each of them.

The suite runs on the CPU and on two simulated GPUs, or with PYDEVTENSOR_TEST_GPUS=real
on real ones, with PYDEVTENSOR_TEST_GPUS=none on the CPU alone.

Simulated GPUs put work off: tests of cuda:0 run under the lazy schedule, all others under
a random one whose seed comes from the test's name, so that a test which fails fails again
by itself. PYDEVTENSOR_SIM_SCHEDULE=eager, or another one, holds for all tests instead.
"""

import gc
import os
import zlib

import pytest

choice = os.environ.get("PYDEVTENSOR_TEST_GPUS", "simulated")
if choice == "simulated":
    os.environ.setdefault("PYDEVTENSOR_SIM_GPUS", "2")
    os.environ.setdefault("PYDEVTENSOR_SIM_MEMORY", "256M")

import pydevtensor as torch  # noqa: E402

GPUS = min(torch.cuda.device_count(), 2) if choice != "none" else 0
SIMULATED = GPUS > 0 and torch.cuda.is_simulated()
DEVICES = ["cpu", *(f"cuda:{i}" for i in range(GPUS))]


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device in turn, as a string."""
    return request.param


@pytest.fixture(params=DEVICES[1:] or [pytest.param(None, marks=pytest.mark.skip)])
def gpu(request):
    """Each GPU in turn, as a string."""
    return request.param


@pytest.fixture
def two_gpus():
    """The names of two GPUs."""
    if GPUS < 2:
        pytest.skip("needs two GPUs")
    return DEVICES[1:3]


def schedule_of(item):
    """When the simulated GPUs run their work in this test."""
    chosen = os.environ.get("PYDEVTENSOR_SIM_SCHEDULE")
    if chosen:
        return chosen
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if "cuda:0" in (parameters.get("device"), parameters.get("gpu")):
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
    # What failed keeps its tensors alive through the traceback, which is no leak.
    if report.when == "call":
        item.keeps_tensors = not report.passed
    return report


def pytest_collection_finish():
    """Twenty thousand tests are not what a test's gc.collect() is to look through."""
    gc.collect()
    gc.freeze()


def alive():
    return [torch._C._storage_count(torch.device(name)) for name in DEVICES]


@pytest.fixture(autouse=True)
def nothing_left(request):
    """No storage outlives its test, no GPU is left in error, no default is left changed."""
    if SIMULATED:
        # With a schedule from outside too: each test begins its random order anew.
        torch.cuda.sim_schedule(schedule_of(request.node))
    before = alive()
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    if GPUS:
        torch.cuda.set_device(0)
        for i in range(GPUS):
            torch.cuda.synchronize(i)
    after = alive()
    if any(now > then for now, then in zip(after, before, strict=True)):
        gc.collect()
        gc.freeze()  # the reports of tests gather too
        after = alive()
    if getattr(request.node, "keeps_tensors", False):
        return
    # Fewer is no leak: what an earlier test's traceback held has gone meanwhile.
    assert all(now <= then for now, then in zip(after, before, strict=True)), (
        f"storages alive on {DEVICES}: {before} before, {after} after"
    )
