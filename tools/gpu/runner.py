"""Runs steps: each a program with a time limit, a log and a result that is kept.

A step passes if its program exits with 0 and its log shows that it ran on a real GPU.
NAME.log and NAME.json in the folder of results hold what it said and the verdict; the
report is made of these files, so it can be made of several runs.

In a rehearsal steps run on simulated GPUs. Their verdicts are other words, so that
nothing takes them for a check.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
REHEARSED = {
    PASSED: "rehearsed",
    FAILED: "failed in the rehearsal",
    NOT_RUN: "not rehearsed",
}
# A step is not begun with fewer seconds than this left of a piece's time.
LEAST = 10

RAN_ON = re.compile(r"^ran on (cuda:\d+) (.*) \((real|simulated)\)", re.M)
# What compute-sanitizer's tools end with; racecheck counts warnings, which are races.
SUMMARY = re.compile(
    r"^========= (?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)", re.M
)
COUNTED = re.compile(r"^ran on (cuda:\d+).*: (\d+) of (\d+) tests$", re.M)


def on_a_real_gpu(log: str) -> str | None:
    """Why a log does not show a run on a real GPU; None if it does."""
    found = RAN_ON.findall(log)
    if not found:
        return "its log does not say that it ran on a GPU"
    if any(kind == "simulated" for _, _, kind in found):
        return "it ran on a simulated GPU"
    return None


def tests_on_a_real_gpu(log: str) -> str | None:
    """The same for pytest, of whose tests few may be left out on the first GPU.

    Those that need a simulator are not counted. The fast tests leave the second GPU to
    tests that need two.
    """
    why = on_a_real_gpu(log)
    if why:
        return why
    for device, ran, collected in COUNTED.findall(log):
        wanted = 1 if device == "cuda:1" else max(1, 0.95 * int(collected))
        if int(ran) < wanted:
            return f"only {ran} of {collected} tests ran on {device}"
    return None


def on_a_simulated_gpu(log: str) -> str | None:
    """Why a log does not show a rehearsal; None if it does."""
    found = RAN_ON.findall(log)
    if not found:
        return "its log does not say that it ran on a GPU"
    if any(kind == "real" for _, _, kind in found):
        return "it ran on a real GPU"
    return None


def without_hazards(log: str) -> str | None:
    """The same for a sanitizer, which has to say that it watched and found nothing.

    Its exit status is 0 where it did not attach, and where it found warnings alone.
    """
    why = on_a_real_gpu(log)
    if why:
        return why
    counts = [int(errors or hazards) for errors, hazards in SUMMARY.findall(log)]
    if not counts:
        return "its log has no summary of the sanitizer"
    return f"the sanitizer found {sum(counts)} faults" if any(counts) else None


@dataclass(frozen=True)
class Step:
    name: str
    piece: int  # of the four, each of less than nine minutes
    limit: int  # seconds
    what: str
    # {python} is that of the environment that the step `install` makes, {base} the one
    # that runs this, {packages} where its packages are; the rest are folders.
    command: Sequence[str]
    needs: tuple[str, ...] = ("machine",)
    tool: str = ""  # a program on PATH, without which the step is not run
    modules: tuple[str, ...] = ()  # the same, packages of Python
    environment: dict[str, str] = field(default_factory=dict)
    evidence: Callable[[str], str | None] | None = on_a_real_gpu
    product: str = ""  # what it makes for other steps; made again where it is missing
    always: bool = False  # run it each time
    wrapper: tuple[str, ...] = ()  # the tool with its options, before the command
    on_gpu: bool = True  # its program uses one, and its log says which
    # In a rehearsal: another, shorter command; None for the same.
    rehearsal: Sequence[str] | None = None
    shown: int = 25  # lines of the log in the report


@dataclass(frozen=True)
class Place:
    root: Path
    results: Path
    work: Path
    commit: str
    rehearsal: bool = False

    def limit(self, step: Step) -> int:
        """Seconds. A machine without a GPU may be slow otherwise too."""
        return 10 * step.limit if self.rehearsal else step.limit

    def word(self, verdict: str) -> str:
        return REHEARSED[verdict] if self.rehearsal else verdict

    def fill(self, text: str) -> str:
        return text.format(
            base=sys.executable,
            python=self.work / "venv" / "bin" / "python",
            root=self.root,
            results=self.results,
            work=self.work,
            library="_cuda_sim.so" if self.rehearsal else "_cuda.so",
            packages=":".join(path for path in sys.path if "-packages" in path),
        )


# --- results -------------------------------------------------------------------------


def result_of(step: Step, place: Place) -> dict | None:
    try:
        return json.loads((place.results / f"{step.name}.json").read_text())
    except (OSError, ValueError):
        return None


def passed(step: Step, place: Place) -> bool:
    found = result_of(step, place)
    return bool(found) and found["verdict"] == place.word(PASSED)


def finished(step: Step, place: Place) -> bool:
    """Whether it has run to its end here, and need not run again."""
    found = result_of(step, place)
    if not found or found["verdict"] == place.word(NOT_RUN) or step.always:
        return False
    product = place.fill(step.product)
    failed = found["verdict"] == place.word(FAILED)
    return not product or failed or os.path.exists(product)


def log_of(step: Step, place: Place) -> str:
    try:
        path = place.results / f"{step.name}.log"
        return path.read_text(errors="replace")
    except OSError:
        return ""


# --- running -------------------------------------------------------------------------


def environment(step: Step, place: Place) -> dict[str, str]:
    """Without the choices of simulated or virtual GPUs that may be set outside."""
    chosen = {k: place.fill(v) for k, v in step.environment.items()}
    if place.rehearsal:
        chosen["PYDEVTENSOR_SIM_GPUS"] = chosen["GPU_CHECK_REHEARSAL"] = "1"
        chosen["PYDEVTENSOR_SIM_CUDNN"] = "0"  # the kernels are looked for
        if "PYDEVTENSOR_TEST_GPUS" in chosen:
            chosen["PYDEVTENSOR_TEST_GPUS"] = "rehearsal"
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYDEVTENSOR_")}
    # The source tree has a folder pydevtensor without the extension module.
    kept["PYTHONSAFEPATH"] = "1"
    kept["PYTHONUNBUFFERED"] = "1"
    return {**kept, **chosen}


def command_of(step: Step, place: Place) -> list[str]:
    words = (*step.wrapper, *step.command)
    if place.rehearsal:
        words = step.command if step.rehearsal is None else step.rehearsal
    return [place.fill(word) for word in words]


def evidence_of(step: Step, place: Place) -> Callable[[str], str | None] | None:
    if not place.rehearsal:
        return step.evidence
    return on_a_simulated_gpu if step.on_gpu else None


def _marked(mark: bytes) -> tuple[list[int], bool]:
    """The processes that have a variable of the environment, given as NAME=VALUE; and
    whether some have no environment, as one that is just becoming another program."""
    found, changing = [], False
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            pid = int(folder.name) if folder.name.isdigit() else 0
            if not pid:
                continue
            variables = (folder / "environ").read_bytes()
            if mark in variables.split(b"\0"):
                found.append(pid)
            elif not variables:
                # Zombies and threads of the kernel have no program: an OSError.
                changing |= bool(os.readlink(folder / "exe"))
    return found, changing


def _stop(process: subprocess.Popen, mark: str) -> None:
    """Ends a program and all that it has started, in whatever group or session. What
    hangs in the driver cannot be ended, and is left behind."""
    quiet = time.monotonic()
    end = quiet + 10
    while (now := time.monotonic()) < end:
        left, changing = _marked(mark.encode())
        if left:
            quiet = now
        elif not changing or now > quiet + 0.2:
            break
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
    process.poll()


def _execute(step: Step, place: Place, limit: float) -> tuple[str, str]:
    command = command_of(step, place)
    evidence = evidence_of(step, place)
    mark = "GPU_CHECK_STEP", f"{step.name}-{os.getpid()}-{time.monotonic_ns()}"
    with open(place.results / f"{step.name}.log", "wb") as log:
        try:
            process = subprocess.Popen(
                command,
                cwd=place.root,
                env={**environment(step, place), mark[0]: mark[1]},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            return FAILED, f"{command[0]} does not start: {error.strerror}"
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            if limit < place.limit(step):
                return NOT_RUN, f"stopped: only {limit:.0f} s of the piece were left"
            return FAILED, f"stopped after its limit of {place.limit(step)} s"
        finally:
            _stop(process, "=".join(mark))
    if status:
        return FAILED, f"exit status {status}"
    why = evidence(log_of(step, place)) if evidence else None
    return (FAILED, why) if why else (PASSED, "")


def missing(step: Step, steps: Sequence[Step], place: Place) -> str:
    """Why the step cannot run here, or ''."""
    by_name = {other.name: other for other in steps}
    for name in step.needs:
        if not passed(by_name[name], place):
            return f"{name} has not passed"
    if place.rehearsal:
        return ""
    if step.tool and not shutil.which(step.tool):
        return f"{step.tool} is not on PATH"
    for name in step.modules:
        if importlib.util.find_spec(name) is None:
            return f"Python has no module {name}"
    return ""


def run(step: Step, steps: Sequence[Step], place: Place, left: float) -> str:
    """Runs a step that is not finished, stores its result and returns the verdict."""
    began = time.monotonic()
    verdict, why = NOT_RUN, missing(step, steps, place)
    if not why and left < LEAST:
        why = "the piece's time is over"
    if why:
        # A log of an earlier run would look like one of this.
        (place.results / f"{step.name}.log").unlink(missing_ok=True)
    else:
        verdict, why = _execute(step, place, min(place.limit(step), left))
    result = {
        "verdict": place.word(verdict),
        "why": why,
        "seconds": round(time.monotonic() - began, 1),
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "commit": place.commit,
    }
    text = json.dumps(result, indent=1) + "\n"
    (place.results / f"{step.name}.json").write_text(text)
    return result["verdict"]


def with_needs(chosen: Sequence[Step], steps: Sequence[Step]) -> list[Step]:
    """The chosen steps and what they need, in order."""
    names = {step.name for step in chosen}
    for step in reversed(steps):
        if step.name in names:
            names.update(step.needs)
    return [step for step in steps if step.name in names]
