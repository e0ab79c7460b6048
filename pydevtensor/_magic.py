"""The cell magic %%cuda of Jupyter and IPython: a whole CUDA program in a cell."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydevtensor import _nvcc

_SETTINGS = {"--card": "PYDEVTENSOR_SIM_CARD", "--gpus": "PYDEVTENSOR_SIM_GPUS"}


def load_ipython_extension(shell: Any) -> None:
    """Give shell, a session of IPython, the cell magic %%cuda.

    `%load_ext pydevtensor` calls this.

    %%cuda [--card h100] [--gpus 2] [options of pydevtensor nvcc] [-- arguments]
    compiles the cell, a whole CUDA program, and runs it on simulated GPUs. Paths are
    relative to the folder of the notebook.
    """
    shell.register_magic_function(_cuda, "cell", "cuda")


def _cuda(line: str, cell: str) -> None:
    import shlex

    from pydevtensor import _nvcc

    words = shlex.split(line)
    at = words.index("--") if "--" in words else len(words)
    words, arguments = words[:at], words[at + 1 :]
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
        try:
            _nvcc.build(_for_cell(_nvcc.parse(words)), folder)
        except (_nvcc.Wrong, RuntimeError) as error:
            _nvcc.report(error)
            return
        done = subprocess.run(
            [os.path.join(folder, "cell"), *arguments],
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


def _for_cell(command: _nvcc.Command) -> _nvcc.Command:
    """The command with the cell as its first source, for the cell's folder."""
    if command.output or command.objects_only or command.runs:
        raise ValueError(
            "%%cuda: a cell is compiled and run, so it takes no -o, -c, -dc and -run; "
            "write the program to a file and use python -m pydevtensor nvcc"
        )
    return command._replace(
        sources=["cell.cu", *map(os.path.abspath, command.sources)],
        output="cell",
        flags=_absolute(command.flags, "-I"),
        linked=_absolute(command.linked, "-L"),
    )


def _absolute(flags: Sequence[str], option: str) -> list[str]:
    """The flags, those of an option with an absolute path."""
    return [
        option + os.path.abspath(flag[len(option) :])
        if flag.startswith(option)
        else flag
        for flag in flags
    ]
