"""The environment variables that pydevtensor, its build and its tests read."""

from __future__ import annotations

import os
import warnings

PREFIX = "PYDEVTENSOR_"

LIBRARY: tuple[str, ...] = ("BLAS", "COMPILE_AFTER", "CPU_CACHE", "CPU_ISA")
LIBRARY += ("KERNEL_CACHE", "KERNEL_CHECKS", "NO_CACHE", "NUM_THREADS")
LIBRARY += ("SIM_CARD", "SIM_CUDNN", "SIM_CUFFT", "SIM_FAIL", "SIM_GPUS", "SIM_HOST")
LIBRARY += ("SIM_LINK", "SIM_MEMORY", "SIM_PEER")
LIBRARY += ("SIM_RACES", "SIM_RECORD_STREAM", "SIM_REDUCTIONS", "SIM_SCHEDULE")
LIBRARY += ("SIM_STICKY",)
LIBRARY += ("TRANSFER_GUARD", "VIRTUAL_GPUS")

BUILD: tuple[str, ...] = ("CUDA", "CUDA_ARCHS", "JOBS", "QUICK", "SANITIZE", "WERROR")

# For the tests and the tools beside the library.
TOOLS: tuple[str, ...] = (
    "ARRAY_API_TESTS",
    "EMULATOR",
    "FAULTS",
    "NOTEBOOK_GPUS",
    "SOAK",
    "SOURCES",
)
TOOLS += ("TEST_EXITS", "TEST_FAILURES", "TEST_GPUS", "TEST_PACKAGES")


def warn_of_unknown() -> None:
    """Warn of variables with our prefix that nothing reads, which are misspelt."""
    known = (*LIBRARY, *BUILD, *TOOLS)
    ours = sorted(name for name in os.environ if name.startswith(PREFIX))
    for name in (each.removeprefix(PREFIX) for each in ours):
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1)
            hint = f"did you mean {PREFIX}{near[0]}?" if near else "unset it"
            warnings.warn(
                f"{PREFIX}{name} is set, and pydevtensor has no such variable; {hint}",
                stacklevel=3,
            )
