"""Runs programs and tests of libraries, and says what they print and count."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

from catalogue import ROOT, Library

sys.path.append(str(ROOT / "tests"))
from golden.programs import difference

GOLDEN = ROOT / "tests" / "golden" / "libraries.json"
US = [sys.executable, "-P", "-m", "pydevtensor"]
SECONDS = 600
# Nothing is loaded from a network, and sums are in one order.
SETTINGS = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
SETTINGS |= {"WANDB_MODE": "disabled", "CUDA_VISIBLE_DEVICES": ""}
# Tests start `python`.
SETTINGS["PATH"] = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))


def wanted() -> dict[str, list[str]]:
    return json.loads(GOLDEN.read_text())["programs"] if GOLDEN.exists() else {}


def name(program: Path) -> str:
    return f"{program.parent.name}/{program.stem}"


def is_launched(program: Path) -> bool:
    """Whether it is one of several ranks, each with a simulated GPU."""
    return program.stem == "two_gpus"


def run(command: list[str], program: Path, theirs: bool = False) -> tuple[int, str]:
    """Exit status, and what it printed, or wrote to stderr where it failed."""
    chosen = {**os.environ, **SETTINGS}
    if theirs:
        chosen["PYTHONPATH"] = sysconfig.get_paths()["purelib"]
    if is_launched(program):
        chosen["PYDEVTENSOR_SIM_GPUS"] = "2"
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [*command, str(program)],
                cwd=folder,
                env=chosen,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return 1, f"no end in {SECONDS} s"
    return done.returncode, done.stderr if done.returncode else done.stdout


def problem(program: Path) -> str:
    """Why it does not run as it does with PyTorch; empty where it does."""
    way = ["launch", "--nproc-per-node", "2"] if is_launched(program) else ["run"]
    status, text = run([*US, *way], program)
    if status:
        return (text.strip().splitlines() or [f"exit status {status}"])[-1][:200]
    lines = wanted().get(name(program))
    return "" if lines is None else difference(text.splitlines(), lines) or ""


def tests(library: Library, source: Path) -> dict[str, object]:
    """Counts of outcomes, and the names of the tests that failed."""
    counted: Counter[str] = Counter()
    failures = []
    for file in sorted({path for word in library.tests for path in source.glob(word)}):
        command = [*US, "run", "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run(
                [*command, *library.options, str(file)],
                cwd=source,
                env={**os.environ, **SETTINGS, **library.environment},
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
            out = done.stdout
        except subprocess.TimeoutExpired:
            out = f"ERROR {file.name}: no end in {SECONDS} s\n1 error"
        last = (out.strip().splitlines() or [""])[-1]
        for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", last):
            counted["failed" if word == "error" else word] += int(number)
        found = re.findall(r"^(?:FAILED|ERROR) (\S+)", out, re.M)
        failures += [entry.rpartition("/")[2] for entry in found]
    return {**counted, "failures": sorted(failures)}
