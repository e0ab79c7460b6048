"""Many programs, and what is printed when one fails."""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import gc
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pydevtensor as torch

from . import gradients, known
from .generate import Generator
from .gradients import Checks, Gradients
from .machines import Torch
from .play import Mismatch, Session, generate, replay
from .shrink import shrink

TOOLS = Path(__file__).resolve().parents[1]
HANGS = 300  # seconds that no program needs


def schedule_of(seed):
    """The schedule of simulated GPUs for the program of a seed."""
    return ("lazy", f"random:{seed}", "eager")[seed // 2 % 3]


def session_of(chosen, seed, trace=None):
    """The machines for the program of a seed."""
    gpus = [d for d in chosen.devices.split(",") if d != "cpu"]
    devices = gpus[seed % len(gpus) :][:1] if gpus else []
    if devices and torch.cuda.is_simulated():
        torch.cuda.sim_schedule(schedule_of(seed))
    if chosen.hostile:
        leader = ("cpu", *devices)[seed % (1 + len(devices))]
        return Session(known=known.is_known, leader=leader, trace=trace)
    followers = []
    if chosen.against == "torch":
        followers.append(Torch())
    elif chosen.gradients and chosen.against == "numpy":
        followers.append(Checks())
    elif chosen.against == "numpy":
        from .mirror import NumPy

        followers.append(NumPy())
    judge = gradients.is_known if chosen.gradients else known.is_known
    return Session(followers, devices, judge, trace=trace)


def text_of(statements, device="cpu", schedule=None):
    """A program as a file that runs; schedule: of simulated GPUs."""
    head = ["import pydevtensor as torch"]
    if any("hostile." in s for s in statements):
        head = ["import sys", f"sys.path.insert(0, {str(TOOLS)!r})", *head]
        head.append("from fuzz import hostile")
    if device != "cpu":
        if schedule and torch.cuda.is_simulated():
            made = 'os.environ.setdefault("PYDEVTENSOR_SIM_GPUS", "2")'
            head = ["import os", made, *head]
            head.append(f"torch.cuda.sim_schedule({schedule!r})")
        head.append(f"torch.set_default_device({device!r})")
    return "\n".join([*head, "", *statements])


def report(chosen, seed, statements, failure):
    """Prints a failure: its seed and a program that still fails."""

    def fails(candidate):
        try:
            again = replay(candidate, session_of(chosen, seed))
        except Exception:
            return False
        return again is not None and again.key == failure.key

    print(f"\n# seed {seed}: {failure.kind}: {failure.detail}")
    print(f"#   {failure.statement}")
    session = session_of(chosen, seed)
    small = shrink(statements, fails)
    again = replay(small, session) or failure
    print(f"# shrunk: {again.kind}: {again.detail}")
    # What differs between devices shows on the other one.
    device = again.device or session.leader.device
    print(text_of(small, str(device), schedule_of(seed)), flush=True)


def alive():
    devices = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    return [torch._C._storage_count(torch.device(name)) for name in devices]


def play(chosen, seed, trace=None):
    """Plays the program of a seed: the number of its calls, and the statements and the
    Mismatch if it failed."""
    before = alive()
    session = session_of(chosen, seed, trace)
    failure = None
    try:
        writer = Gradients if chosen.gradients else Generator
        generate(seed, session, chosen.length, chosen.hostile, writer)
    except Mismatch as found:
        failure = found.with_traceback(None)
    for machine in (session.leader, *session.followers):
        machine.clear()
    session.errors.clear()
    if failure is None and any(a > b for a, b in zip(alive(), before, strict=True)):
        gc.collect()
        if any(a > b for a, b in zip(alive(), before, strict=True)):
            failure = Mismatch(
                "leak", session.statements[-1], f"{before} then {alive()}"
            )
    return session.statements, failure


@contextlib.contextmanager
def limited_memory(more=2 << 30):
    """Lets the process take so many bytes more: a product of three large tensors fails
    instead of taking the machine's memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + more, hard)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def campaign(chosen, trace=None):
    """Plays programs until there are enough calls; gives the number of failures."""
    torch.ones(1 << 20).sum().item()  # starts the threads before memory is limited
    for device in chosen.devices.split(","):
        torch.ones(1, device=device).sum().item()
    with limited_memory(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return played(chosen, trace)


def played(chosen, trace):
    started, seed, calls = time.monotonic(), chosen.seed, 0
    seen = collections.Counter()
    while calls < chosen.calls and time.monotonic() - started < chosen.seconds:
        faulthandler.dump_traceback_later(HANGS, exit=True)
        statements, failure = play(chosen, seed, trace)
        if failure is not None:
            seen[failure.key] += 1
            if seen[failure.key] == 1:
                report(chosen, seed, statements, failure)
                if len(seen) >= chosen.failures:
                    break
        calls += len(statements)
        seed += 1
    faulthandler.cancel_dump_traceback_later()
    spent = time.monotonic() - started
    programs = seed - chosen.seed
    failed = sum(seen.values())
    print(f"{calls} calls, {programs} programs, {failed} failures, {spent:.1f} s")
    for key, count in seen.most_common():
        print("  ", count, *key)
    return len(seen)


def watched(arguments, command):
    """Runs a campaign in a process of its own; where that dies, prints a small program
    that kills another."""
    file = Path(os.environ.get("TMPDIR", "/tmp")) / f"fuzz-{os.getpid()}.txt"
    done = subprocess.run([*command, "--trace", str(file), *arguments])
    if done.returncode < 0 and file.exists():
        statements = file.read_text().splitlines()
        print(f"\n# the process ended with {done.returncode} in this program:")

        def fails(candidate):
            text = text_of(candidate)
            ended = subprocess.run(
                [sys.executable, "-P", "-c", text], capture_output=True
            )
            return ended.returncode < 0

        if fails(statements):
            statements = shrink(statements, fails, budget=200)
        print(text_of(statements))
    file.unlink(missing_ok=True)
    return done.returncode
