"""The virtual environment of the Makefile: made once, filled from pyproject.toml."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import toolchain
from toolchain import ROOT, BuildError


def requirements(group: str) -> list[str]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)
    groups = {
        "build": project["build-system"]["requires"],
        **project["project"]["optional-dependencies"],
        **project["dependency-groups"],
    }
    if group not in groups:
        raise BuildError(f"There is no group {group!r}; give {', '.join(groups)}.")
    wanted = []
    for word in groups[group]:
        if isinstance(word, dict):
            wanted += requirements(word["include-group"])
        elif extra := re.fullmatch(r"pydevtensor\[(\w+)\]", word):
            wanted += requirements(extra[1])  # of this tree, not of a registry
        else:
            wanted.append(word)
    return wanted


def _base_version(python: Path) -> str:
    """The version of the Python a virtual environment was made from."""
    code = "import sys; print(sys.version, sys.base_prefix)"
    return toolchain.output_of(str(python), "-c", code)


def _make(venv: Path) -> None:
    python = venv / "bin" / "python"
    if python.exists():
        if _base_version(python) == f"{sys.version} {sys.base_prefix}\n":
            return
        print(f"{venv}: it was made by another Python; making it again", flush=True)
        shutil.rmtree(venv)
    toolchain.check_compilers()
    toolchain.python_include()
    print(f"making {venv} with Python {sys.version.split()[0]}", flush=True)
    done = subprocess.run([sys.executable, "-m", "venv", str(venv)])
    if done.returncode:
        shutil.rmtree(venv, ignore_errors=True)
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise BuildError(
            f"The virtual environment {venv} could not be made; its message is above. "
            f"On Debian and Ubuntu: sudo apt-get install python{version}-venv"
        )


def _fill(venv: Path, group: str) -> None:
    wanted = requirements(group)
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
    stamp = venv / f".{group}-installed"
    if stamp.exists() and stamp.read_text() == digest:
        return
    print(f"installing what {group} needs: {', '.join(wanted)}", flush=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-q"]
    done = subprocess.run([*pip, "--disable-pip-version-check", *wanted])
    if done.returncode:
        raise BuildError(
            f"pip could not install {', '.join(wanted)}; its message is above. On a "
            "machine without a network, install pydevtensor into a Python that has "
            "NumPy 2 and setuptools with: pip install --no-build-isolation --no-deps ."
        )
    stamp.write_text(digest)


def prepare(folder: str, groups: list[str]) -> int:
    """Exit status 0, or 1 after one sentence that says what to do."""
    venv = Path(os.path.abspath(folder))
    try:
        # Cheap, and a compiler may be gone since the environment was made.
        toolchain.find_cc()
        toolchain.find_cxx()
        toolchain.python_include()
        _make(venv)
        for group in groups:
            _fill(venv, group)
    except BuildError as error:
        print(f"pydevtensor: {error}", file=sys.stderr)
        return 1
    return 0
