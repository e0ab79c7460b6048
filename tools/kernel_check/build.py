"""A package whose simulated GPUs have kernels that are compiled with checks."""

from __future__ import annotations

import ast
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import objects  # noqa: E402
import products  # noqa: E402

PACKAGE = ROOT / "build" / "kernel-check"


def product() -> Any:
    """`_cuda_sim.so` of the sources that are there, with checked kernels."""
    plan = products.Plan.from_environment()
    path = ROOT / "pydevtensor" / "cuda" / "_kernel_compiler.py"
    tree = ast.parse(path.read_text())
    tree.body = [
        each
        for each in tree.body
        if isinstance(each, ast.Assign) and "CHECKED" in ast.unparse(each.targets[0])
    ]
    flags: dict[str, tuple[str, ...]] = {}
    exec(compile(tree, str(path), "exec"), flags)
    own = flags["CHECKED_CLANG" if plan.cxx.is_clang else "CHECKED_GCC"]
    return plan.cuda_sim((*flags["CHECKED"], *own))


def library() -> Path:
    return objects.build([product()], lambda line: print(line, flush=True))[0]


def package(made: Path, folder: Path = PACKAGE) -> Path:
    """A copy of the installed package with the library; a folder for PYTHONPATH."""
    shutil.rmtree(folder, ignore_errors=True)
    installed = Path(sysconfig.get_path("platlib")) / "pydevtensor"
    shutil.copytree(installed, folder / "pydevtensor")
    shutil.copy2(made, folder / "pydevtensor" / "_cuda_sim.so")
    return folder


def environment(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYDEVTENSOR_")}
    own = ROOT / "tools" / "kernel_check"
    kept["PYDEVTENSOR_SIM_CUDNN"] = "0"
    return {**kept, "PYTHONPATH": os.pathsep.join((str(folder), str(own)))}
