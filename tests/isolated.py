"""Runs code in a new Python process away from the source tree, with GPUs of its choice."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from textwrap import dedent

# A card for simulated GPUs, and a host whose time is the same everywhere.
T4 = {"PYDEVTENSOR_SIM_CARD": "t4", "PYDEVTENSOR_SIM_HOST": "fixed"}


def environment(**chosen):
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith("PYDEVTENSOR_") and k not in ("PYTHONPATH", "PYTHONHOME")
    }
    # PYDEVTENSOR_SIM_GPUS=0 in the environment means real GPUs; hide those as well.
    if chosen.get("PYDEVTENSOR_SIM_GPUS", "0") == "0":
        kept["CUDA_VISIBLE_DEVICES"] = ""
    return {**kept, **chosen}


def python(code, *, fails=False, status=None, timeout=120, arguments=None, **chosen):
    """What code prints; with fails what it writes to stderr. chosen are environment
    variables; status is the exit status that it has to have (negative: a signal).

    It has a session of its own, in which no process may outlive it.
    """
    command = [sys.executable, *(arguments or ["-c", code])]
    with tempfile.TemporaryDirectory() as neutral:
        with interruptible():
            process = subprocess.Popen(
                command,
                cwd=neutral,
                env=environment(**chosen),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        try:
            out, err = process.communicate(timeout=timeout)
            left = wait_for_session(process.pid)
        finally:
            for pid in session(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.wait()
    code = process.returncode
    right = (code != 0) == fails if status is None else code == status
    assert right, f"exit status {code}\n{out}{err}"
    assert not left, f"{left} outlived the process\n{out}{err}"
    return err if fails else out


@contextmanager
def interruptible():
    """A shell's background job ignores Ctrl-C, and so does what it starts.

    A preexec_fn would copy the tables of this process's memory, for 30 ms.
    """
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def run(code, **expected):
    """python() of indented code, with two simulated GPUs."""
    return python(dedent(code), PYDEVTENSOR_SIM_GPUS="2", **expected)


def session(leader):
    """The running processes of a session."""
    found = []
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdigit():
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, *fields = file.read().rpartition(b")")[2].split()
                if int(fields[2]) == leader and state not in (b"Z", b"X"):
                    found.append(int(name))
    return found


def wait_for_session(leader, seconds=20):
    """The processes of a session that do not end."""
    end = time.monotonic() + seconds
    while (left := session(leader)) and time.monotonic() < end:
        time.sleep(0.01)
    return left
