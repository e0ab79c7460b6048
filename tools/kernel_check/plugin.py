"""What `make kernel-check` adds to pytest and to families.py: it tells the simulator
where the library's own kernels have shared memory, and collects what the checks find.

The package that is imported has a `_cuda_sim.so` with checked kernels.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("csrc/cuda/kernels", "csrc/cuda/runtime", "csrc/ops", "csrc/sim")
# Kernel, kind and line of what is meant to be so; comments at these lines say why.
EXPECTED = (
    ("index_words", "race", "*(Word *)e.entries[k] = words[k];"),
    ("index_rows", "race", "*(T *)at = pack.get(k);"),
    ("index_rows", "race", "*(decltype(pack.words) *)at = pack.words;"),
    (
        "fold_kernel",
        "uninitialized",
        ": parts.sums[(int64_t)entry * c.width + column];",
    ),
)
found: list[str] = []


def note(number: int) -> None:
    """Keeps a finding unless it is expected; in the place of the warning."""
    from pydevtensor import _C
    from pydevtensor.cuda import _kernel_checks

    known = _C._sim_control(f"finding {number}")
    if not known:
        return
    finding = _kernel_checks._Finding(json.loads(known))
    kernel, kind = finding.found["kernel"], finding.found["kind"]
    line = finding._source(finding.file, finding.line)
    for name, of_kind, text in EXPECTED:
        if name in kernel and kind == of_kind and text in line:
            return
    if "KERNEL_MUTANT" in os.environ:  # one finding suffices
        print(finding.text(), flush=True)
        os._exit(1)
    found.append(finding.text())


def register() -> None:
    """Before the first launch: the checks look at all kernels from then on."""
    import pydevtensor
    from pydevtensor import _C
    from pydevtensor.cuda import _kernel_checks, _kernel_object

    pydevtensor.cuda.device_count()  # loads the library
    path = Path(pydevtensor.__file__).parent / "_cuda_sim.so"
    library = _kernel_object.Object(path.read_bytes())
    handle = ctypes.CDLL(str(path))._handle
    sources = {
        each.relative_to(ROOT).as_posix(): each.read_text()
        for folder in FOLDERS
        for each in sorted((ROOT / folder).rglob("*"))
        if each.suffix in (".cu", ".h", ".def")
    }
    module = _kernel_checks._Module(library, "", sources, [])
    _kernel_checks._modules[handle] = module
    # Static variables of functions: __shared__ ones, and the host's, which kernels do
    # not use.
    rows = [
        f"{symbol.low} {symbol.low + symbol.bytes} 1 {symbol.name[-500:]}"
        for symbol in library.variables()
        if symbol.name.startswith("_ZZ")
    ]
    _C._sim_control(" ".join(["checked", f"{handle:#x}", str(library.end), *rows]))
    _C._sim_control("reductions shuffled")  # as a GPU does them
    _C._sim_control("checks warn")
    _kernel_checks.warn = note


def pytest_configure() -> None:
    register()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Iterator[Any]:
    found.clear()
    outcome = yield
    if found and not outcome.excinfo:
        pytest.fail("\n".join(dict.fromkeys(found)), pytrace=False)
