"""A copy of the sources to change, and a package with what is built of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pydevtensor

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(pydevtensor.__file__).parent


def copy_sources(folder):
    """What the build reads; with the objects that a build left, only what a change
    reaches is compiled."""
    for part in ("csrc", "tools", "pydevtensor"):
        shutil.copytree(ROOT / part, folder / part)
    for part in ("pyproject.toml", "setup.py"):
        shutil.copy2(ROOT / part, folder / part)
    if (ROOT / "build" / "objects").exists():
        shutil.copytree(ROOT / "build" / "objects", folder / "build" / "objects")
    return folder


def package_of(sources, folder, *libraries, **switches):
    """Builds the copy without nvcc, with switches of the build, and returns a folder to put
    on PYTHONPATH, in which the named libraries (patterns) of the installed package are the
    copy's."""
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith("PYDEVTENSOR_")
    }
    environment["PYDEVTENSOR_CUDA"] = "0"
    # As strict as the build that left the objects, or none of them would do.
    environment["PYDEVTENSOR_WERROR"] = os.environ.get("PYDEVTENSOR_WERROR", "0")
    environment.update(switches)
    built = subprocess.run(
        [sys.executable, "tools/build/products.py"],
        cwd=sources,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    shutil.copytree(PACKAGE, folder / "pydevtensor")
    for pattern in libraries:
        (library,) = (sources / "build" / "products").glob(f"*/{pattern}")
        shutil.copy2(library, folder / "pydevtensor" / library.name)
    return folder
