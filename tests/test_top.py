"""python -m pydevtensor top."""

import contextlib
import os
import pty
import subprocess
import sys
import tempfile

import pytest
from isolated import environment, python

import pydevtensor as torch

TOP = ["-m", "pydevtensor", "top"]


@contextlib.contextmanager
def program(code, **chosen):
    """A process that has run the code and waits; its PID."""
    with tempfile.TemporaryDirectory() as neutral:
        process = subprocess.Popen(
            [sys.executable, "-c", f"{code}\nprint('ready', flush=True)\ninput()"],
            cwd=neutral,
            env=environment(**chosen),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout.readline() == "ready\n"
            yield process.pid
        finally:
            process.communicate("\n")


def row_of(text, pid):
    (line,) = [line for line in text.splitlines() if line.startswith(f"{pid} ")]
    return line


def test_simulated_gpus_and_their_memory():
    code = "import pydevtensor as t; x = t.zeros(5, 1 << 20, device='cuda:1')"
    chosen = {"PYDEVTENSOR_SIM_GPUS": "2", "PYDEVTENSOR_SIM_MEMORY": "512M"}
    with program(code, **chosen) as pid:
        row = row_of(python("", arguments=TOP), pid)
    assert "2 simulated" in row
    used, unit = row.split(" of 1.0 GiB")[0].split()[-2:]
    assert unit == "MiB" and 20 <= float(used) < 30  # the cache rounds up
    assert row.endswith("x = t.zeros(5, 1 << 20, device='cuda:1') print('ready', flush=True) input()")  # fmt: skip


@pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.is_simulated(),
    reason="needs a real GPU",
)
def test_real_gpus_and_their_memory():
    code = "import pydevtensor as t; x = t.zeros(256, 1 << 20, device='cuda')"
    with program(code, CUDA_VISIBLE_DEVICES="0") as pid:
        text = python("", arguments=TOP)
        row = row_of(text, pid)
    assert (
        text.startswith("GPU ")
        and torch.cuda.get_device_name(0).partition(" (virtual")[0] in text
    )
    assert "GPU 0" in row
    used = row.split("GPU 0")[1].split()
    assert used[1] == "GiB" and float(used[0]) >= 1


def test_processes_without_gpus_and_without_the_library():
    with program("import pydevtensor") as ours, program("import json") as other:
        text = python("", arguments=TOP)
    assert row_of(text, ours).split()[2:4] == ["-", "-"]
    assert f"\n{other} " not in text


@pytest.mark.slow
def test_several_times_with_the_load():
    code = (
        "import pydevtensor, threading, time\n"
        "def work():\n    while True: pass\n"
        "threading.Thread(target=work, daemon=True).start()"
    )
    with program(code) as pid:
        text = python("", arguments=[*TOP, "-n", "2", "-d", "0.5"])
    first, second = [line for line in text.splitlines() if line.startswith(f"{pid} ")]
    assert "%" not in first.split("import")[0]
    assert int(second.split(" %")[0].split()[-1]) > 0


def test_a_terminal_is_redrawn_until_it_ends():
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *TOP, "-n", "2", "-d", "0.1"],
        stdout=other,
        env=environment(),
        cwd=tempfile.gettempdir(),
    )
    assert process.wait(timeout=60) == 0
    os.close(other)
    text = os.read(main, 1 << 16).decode()
    os.close(main)
    assert text.count("\x1b[H\x1b[J") == 2


@pytest.mark.parametrize("wrong", [["-n", "0"], ["-d", "0"], ["-d", "nan"], ["all"]])
def test_wrong_arguments(wrong):
    assert "usage" in python("", arguments=[*TOP, *wrong], status=2, fails=True)
