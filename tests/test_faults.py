"""What fails on demand: memory, devices, disks, pipes, the process itself.

tools/faults/run.py fails every allocation, copy, launch and event in turn; here some
thousands of them, in the fast lane some hundreds. `make faults` fails them all.
"""

import gc
import io
import itertools
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import SIMULATED
from isolated import environment

import pydevtensor as torch

RUN = Path(__file__).resolve().parents[1] / "tools" / "faults" / "run.py"


def saved(value, path):
    torch.save({"w": value}, path)


def saved_tensors(value, path):
    torch.safetensors.save_file({"w": value}, path)


LOADS = {saved: torch.load, saved_tensors: torch.safetensors.load_file}


# --- memory and devices


ALL = [pytest.mark.slow, pytest.mark.core]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("every", [15, pytest.param(1, marks=ALL)])
def test_some_of_all_faults(device, every):
    done = subprocess.run(
        [sys.executable, "-P", str(RUN), "--quick", f"--every={every}", "-d", device],
        env={**os.environ, **environment(), "LD_PRELOAD": os.getenv("LD_PRELOAD", "")},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert int(done.stdout.split(" faults:")[0].split()[-1]) > 900 / every, done.stdout


def test_a_failed_product_leaves_no_error(gpu):
    if not SIMULATED:
        pytest.skip("needs simulated GPUs")
    x = torch.ones(3, 3, device=gpu)
    x @ x
    torch.cuda.sim_fail("launch:1")
    with pytest.raises(RuntimeError, match="cuBLAS"):
        x @ x
    assert (x + 1).sum().item() == 18


def test_all_calls_fail_from_one_on(gpu):
    if not SIMULATED:
        pytest.skip("needs simulated GPUs")
    x = torch.ones(3, device=gpu)
    torch.cuda.sim_fail("launch:2+")
    y = x + 1
    for _ in range(3):
        with pytest.raises(RuntimeError, match="cuda"):
            x + 1
    torch.cuda.sim_fail("")
    assert (x + y).tolist() == [3] * 3


def test_a_loss_leaves_nothing():
    x = torch.rand(4).requires_grad_()

    def objects(times):
        for _ in range(times):
            torch.nn.functional.mse_loss(x, x.detach())
        gc.collect()
        return sys.getallocatedblocks()

    objects(100)
    before = objects(10)
    assert objects(1000) - before < 500  # its name was kept, once for each call


# --- disks and pipes


@pytest.mark.parametrize("save", LOADS)
def test_a_full_disk(save, tmp_path):
    path = tmp_path / "x"
    save(torch.zeros(5), path)
    old = path.read_bytes()
    with pytest.raises(OSError, match="No space left"):
        save(torch.ones(100_000), "/dev/full")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(torch.ones(100_000), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["x"]


class Partial(io.RawIOBase):
    """Takes at most 1000 bytes at a time, as a pipe or a full disk may."""

    def __init__(self, limit=None):
        self.data, self.limit = bytearray(), limit

    def writable(self):
        return True

    def write(self, data):
        if self.limit is not None and len(self.data) >= self.limit:
            return 0
        part = bytes(memoryview(data).cast("B")[:1000])
        self.data += part
        return len(part)


def test_short_writes():
    x = torch.arange(3000)
    file = Partial()
    torch.save(x, file)
    assert torch.load(io.BytesIO(file.data)).tolist() == list(range(3000))
    with pytest.raises(OSError, match="took no byte"):
        torch.save(x, Partial(limit=5000))


def test_a_file_that_does_not_block():
    class Full(Partial):
        def write(self, data):
            return None

    with pytest.raises(BlockingIOError):
        torch.save(torch.ones(3), Full())


def test_a_file_whose_write_says_nothing():
    parts = []
    file = type("Writes", (), {"write": lambda self, data: parts.append(bytes(data))})
    torch.save(torch.arange(5), file())
    assert torch.load(io.BytesIO(b"".join(parts))).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("save", LOADS)
def test_a_reader_that_goes_away(save, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def reader():
        with open(path, "rb") as file:
            file.read(1000)

    thread = threading.Thread(target=reader)
    thread.start()
    with pytest.raises(BrokenPipeError):
        save(torch.ones(1_000_000), path)
    thread.join()


@pytest.mark.parametrize("save", LOADS)
def test_a_failing_file_keeps_its_error(save, tmp_path, monkeypatch):
    """An error of the disk is not called a damaged file."""
    path = tmp_path / "x"
    save(torch.ones(50_000), path)

    class Failing(io.BufferedReader):
        def readinto(self, target):
            raise self.error

    for error in (MemoryError("none left"), OSError(5, "Input/output error")):
        Failing.error = error
        with monkeypatch.context() as patch:
            if save is saved:
                patch.setattr(io, "BufferedReader", Failing)
            else:
                opened = lambda *args: Failing(io.FileIO(path))
                patch.setattr("builtins.open", opened)
            with pytest.raises(type(error), match=str(error.args[-1])):
                LOADS[save](path)


# --- signals and the end of the process


@pytest.mark.parametrize("save", LOADS)
def test_interrupted_calls_go_on(save, tmp_path):
    """EINTR, again and again, while a slow reader empties the pipe."""
    path, got, signals = tmp_path / "pipe", bytearray(), []
    os.mkfifo(path)

    def reader():
        with open(path, "rb", buffering=0) as file:
            while part := file.read(50_000):
                got.extend(part)
                time.sleep(0.002)

    thread = threading.Thread(target=reader)
    thread.start()
    old = signal.signal(signal.SIGALRM, lambda *_: signals.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        save(torch.arange(200_000), path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    thread.join()
    assert signals
    (tmp_path / "file").write_bytes(got)
    assert torch.equal(LOADS[save](tmp_path / "file")["w"], torch.arange(200_000))


class Stopped(Exception):
    pass


@pytest.mark.parametrize("save", LOADS)
def test_an_exception_in_the_middle_of_a_save(save, tmp_path):
    def stop(*_):
        raise Stopped

    path, stopped = tmp_path / "x", 0
    save(torch.zeros(300_000), path)
    old = signal.signal(signal.SIGALRM, stop)
    try:
        for k in range(1, 40):
            try:
                signal.setitimer(signal.ITIMER_REAL, k * 1e-4)
                for n in itertools.count(100 * k):
                    save(torch.full((300_000,), n), path)
            except Stopped:
                stopped += 1
            values = LOADS[save](path)["w"]
            assert values.numel() == 300_000 and (values == values[0]).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert stopped == 39
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize(
    "save", ["save(dict(w=x), p)", "safetensors.save_file(dict(w=x), p)"]
)
def test_a_kill_in_the_middle_of_a_save(save, tmp_path):
    path = tmp_path / "x"
    code = f"""
import sys, itertools, pydevtensor as torch
p = sys.argv[1]
for n in itertools.count():
    x = torch.full((1_000_000,), n)
    torch.{save}
    if n == 1: print("going", flush=True)
"""
    load = torch.load if save.startswith("save") else torch.safetensors.load_file
    for k in range(4):
        command = [sys.executable, "-c", code, str(path)]
        child = subprocess.Popen(
            command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE
        )
        child.stdout.readline()
        time.sleep(0.007 * k)
        child.kill()
        child.communicate()
        values = load(path)["w"]
        assert values.numel() == 1_000_000 and (values == values[0]).all()
