"""Whole programs, the files of tests/programs, run by PyTorch and by pydevtensor.

A program takes a device as its argument and prints a line for each step: numbers, and
texts. It draws random numbers on the CPU, so that all devices compute with the same.
"""

import os
import re
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "programs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
# How far a number may be from PyTorch's: absolutely, or as a share of it.
OFF = 1e-3
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)\b")


def printed(interpreter, name, device, folder=None):
    """The lines that a program prints; interpreter: the words of the command."""
    done = subprocess.run(
        [*interpreter, str(FOLDER / f"{name}.py"), device],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
    )
    if done.returncode:
        raise RuntimeError(f"{name} on {device}: {done.stdout}{done.stderr}")
    return done.stdout.splitlines()


def difference(found, wanted, off=OFF):
    """Where two programs' lines differ; None where they do not."""
    if len(found) != len(wanted):
        return f"{len(found)} lines and not {len(wanted)}"
    for mine, theirs in zip(found, wanted, strict=True):
        if _NUMBER.sub("#", mine) != _NUMBER.sub("#", theirs):
            return f"printed {mine!r}, expected {theirs!r}"
        pairs = zip(_NUMBER.findall(mine), _NUMBER.findall(theirs), strict=True)
        for a, b in ((float(a), float(b)) for a, b in pairs):
            if not abs(a - b) <= off * max(1.0, abs(b)) and repr(a) != repr(b):
                return f"printed {mine!r}, expected {theirs!r}, which is off at {a}"
    return None
