"""Compiles a kernel for each chain of torch.compile that runs often.

Until a chain has its kernel, and where there is no compiler, one kernel that interprets
chains runs it (csrc/cuda/kernels/chain.cu). Both give the same bits.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydevtensor import _C, version

HEADER = Path(__file__).parents[1] / "_chain.h"
# System headers that the kernels include, empty for NVRTC: standard_names.h has their
# names.
EMPTY = ("cuda_runtime.h", "stdbool.h", "stdint.h", "string.h", "type_traits")
# Macros that users' kernels have on simulated GPUs, and the library's do not.
HOST = "#undef __CUDACC__\n#undef __CUDACC_RTC__\n#undef __CUDA_ARCH__\n"
# The options of the library's own kernels, for the same values.
OPTIONS = ("-fmad=false", "-default-device")


def compile_later(device: int, number: int, source: str, exact: bool) -> None:
    """Compile a chain for a GPU in a thread, while the program goes on.

    For a simulated GPU, whose compiler takes longer than most programs run, only if the
    user has set PYDEVTENSOR_COMPILE_AFTER.
    """
    if not _is_simulated(device) or "PYDEVTENSOR_COMPILE_AFTER" in os.environ:
        chosen = (device, number, source, exact)
        threading.Thread(target=compile_now, args=chosen).start()


def compile_now(device: int, number: int, source: str, exact: bool) -> None:
    """Compile a chain from the source that csrc/cuda/kernels/chain_compiled.h wrote.

    exact: every version of CUDA computes the same values.
    """
    with suppress(RuntimeError):  # without a compiler, chains are interpreted
        library = _library(device, source)
        if exact or _is_simulated(device) or library.version == version.cuda:
            kernel, _ = library.kernel(device, "chain")
            _C._fusion_compiled(number, kernel)


def _is_simulated(device: int) -> bool:
    return bool(_C._device_properties(device)["simulated"])


def _library(device: int, source: str) -> Any:
    headers = {"chain.h": HEADER.read_text()}
    if _is_simulated(device):
        from pydevtensor.cuda._kernel_compiler import Library

        headers["chain.h"] = HOST + headers["chain.h"]
        return Library(source, "chain", ("chain",), OPTIONS, headers)
    from pydevtensor.cuda._kernel_nvrtc import Cubin, architecture_of

    headers |= dict.fromkeys(EMPTY, "")
    architecture = architecture_of(device)
    return Cubin(architecture, source, "chain", ("chain",), OPTIONS, headers)
