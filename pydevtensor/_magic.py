"""The cell magic %%cuda of Jupyter and IPython: a whole CUDA program in a cell."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_SETTINGS = {"--card": "PYDEVTENSOR_SIM_CARD", "--gpus": "PYDEVTENSOR_SIM_GPUS"}


def load_ipython_extension(shell: Any) -> None:
    """Give shell, a session of IPython, the cell magic %%cuda.

    `%load_ext pydevtensor` calls this.

    %%cuda [--card h100] [--gpus 2] [options of pydevtensor nvcc] compiles the cell, a
    whole CUDA program, and runs it on simulated GPUs.
    """
    shell.register_magic_function(_cuda, "cell", "cuda")


def _cuda(line: str, cell: str) -> None:
    import shlex

    from pydevtensor import _nvcc

    words = shlex.split(line)
    chosen: dict[str, str] = {}
    for name, variable in _SETTINGS.items():
        for word in [word for word in words if word.partition("=")[0] == name]:
            at = words.index(word)
            value = word.partition("=")[2] or "".join(words[at + 1 : at + 2])
            if not value:
                raise ValueError(f"%%cuda: {name} needs a value, such as --card t4")
            del words[at : at + (1 if "=" in word else 2)]
            chosen[variable] = value
    with tempfile.TemporaryDirectory(prefix="pydevtensor-") as folder:
        # The line of the magic is the cell's first.
        Path(folder, "cell.cu").write_text(f"\n{cell}")
        if _nvcc.main(["cell.cu", "-o", "cell", *words], folder):
            return
        done = subprocess.run(
            [os.path.join(folder, "cell")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, **chosen},
        )
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    if done.returncode:
        ended = f"was ended by signal {-done.returncode}"
        if done.returncode > 0:
            ended = f"ended with exit status {done.returncode}"
        print(f"the program {ended}", file=sys.stderr)
