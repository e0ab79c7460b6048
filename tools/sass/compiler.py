"""Compiles kernels and disassembles them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import cuda  # noqa: E402

from sass.machine_code import Kernel, read_code, read_resources  # noqa: E402

KERNELS = ROOT / "csrc" / "cuda" / "kernels"
ARCH = 90


def find_nvdisasm() -> str | None:
    """nvdisasm from PATH, beside nvcc, or in the package that Python may have of it."""
    folders = [Path(p, "nvidia") for p in sys.path]
    packaged = [str(p) for f in folders for p in f.glob("*/bin/nvdisasm")]
    nvcc = cuda.find_nvcc()
    beside = Path(os.path.realpath(nvcc.path if nvcc else "")).parent / "nvdisasm"
    named = [shutil.which("nvdisasm"), str(beside), *packaged]
    return next((name for name in named if name and os.access(name, os.X_OK)), None)


class ToolError(Exception):
    """Its text is the sentence that the user reads."""


def output_of(*command: str, text: str = "") -> str:
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def kernels_of(source: str, arch: int = ARCH) -> dict[str, Kernel]:
    """The kernels of a file of csrc/cuda/kernels, by their names in C++."""
    nvcc, nvdisasm = cuda.find_nvcc(), find_nvdisasm()
    if not nvcc or not nvdisasm:
        raise ToolError(
            "this needs nvcc and nvdisasm: install the CUDA toolkit, or "
            "pip install nvidia-cuda-nvdisasm"
        )
    with tempfile.TemporaryDirectory() as folder:
        cubin = str(Path(folder, "kernels.cubin"))
        file = KERNELS / f"{source}.cu"
        once = cuda.ONCE.get(str(file.relative_to(ROOT)))
        suffix = "a" if arch == 90 and once is cuda.WARPGROUPS else ""
        flags = (*nvcc.language, f"-arch=sm_{arch}{suffix}", "-cubin", "-Xptxas", "-v")
        kernels = read_resources(
            output_of(*nvcc.command, *flags, "-o", cubin, str(file))
        )
        read_code(output_of(nvdisasm, "-c", cubin), kernels)
    names = output_of("c++filt", text="\n".join(kernels)).splitlines()
    bare = (name.replace("(anonymous namespace)::", "") for name in names)
    short = (name.split("(")[0].removeprefix("void ") for name in bare)
    return dict(zip(short, kernels.values(), strict=True))
