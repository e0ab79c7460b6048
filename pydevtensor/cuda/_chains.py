"""Compiles kernels for the chains of torch.compile that run often.

Until a chain has a kernel of its own, and where there is no compiler, a machine runs it
(csrc/cuda/kernels/chain.cu). Values are the same, bit for bit.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydevtensor import _C, version

HEADER = Path(__file__).parents[1] / "_chain.h"
# Headers of the system's that the kernels include. Simulated GPUs have declared what
# the first one would, and for NVRTC csrc/cuda/kernels/standard_names.h does.
EMPTY = ("cuda_runtime.h", "stdbool.h", "stdint.h", "string.h", "type_traits")
# As the library's own kernels are compiled, so that values are the same.
OPTIONS = ("-fmad=false", "-default-device")


def compile_later(device: int, number: int, source: str, exact: bool) -> None:
    """Compile a chain of a GPU beside the program, which goes on.

    On a simulated GPU, whose compiler takes longer than most programs, if the user has
    chosen the number of runs.
    """
    if not _is_simulated(device) or "PYDEVTENSOR_COMPILE_AFTER" in os.environ:
        chosen = (device, number, source, exact)
        threading.Thread(target=compile_now, args=chosen).start()


def compile_now(device: int, number: int, source: str, exact: bool) -> None:
    """Compile a chain, of the source that csrc/cuda/kernels/chain_compiled.h wrote.

    exact: versions of CUDA agree on its values.
    """
    with suppress(RuntimeError):  # without a compiler, the machine goes on
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

        headers |= dict.fromkeys(EMPTY[:1], "")
        return Library(source, "chain", ("chain",), OPTIONS, headers)
    from pydevtensor.cuda._kernel_nvrtc import Cubin, architecture_of

    headers |= dict.fromkeys(EMPTY, "")
    architecture = architecture_of(device)
    return Cubin(architecture, source, "chain", ("chain",), OPTIONS, headers)
