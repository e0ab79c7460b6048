"""Declarations of NVIDIA's libraries, which the sources repeat, beside NVIDIA's headers:
csrc/cuda/runtime/*_check.cpp, which a build with nvcc compiles too."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[1] / "csrc" / "cuda" / "runtime"

# The headers, and changes of ours that the check has to notice: of a function and, where
# there are numbers, of one of them.
LIBRARIES = {
    "cublas": (
        ["cublas_v2.h"],
        [
            ("int n, int k,", "long n, int k,"),
            ("cublasCtrsm_v2", "cublasZtrsm_v2"),
            ("DT_CUBLAS_64C = 5", "DT_CUBLAS_64C = 6"),
        ],
    ),
    "cufft": (
        ["cufft.h"],
        [("int type, long long batch", "int type, int batch"), ("= 0x6c", "= 0x6d")],
    ),
    "cusolver": (
        ["cusolverDn.h"],
        [
            (
                "int n, void *a, int lda, void *tau",
                "int n, void *a, long lda, void *tau",
            ),
            ("cusolverDnCheevd,", "cusolverDnZheevd,"),
            ("DT_CUSOLVER_VECTORS = 1", "DT_CUSOLVER_VECTORS = 2"),
        ],
    ),
    "nccl": (
        ["nccl.h"],
        [
            ("int ranks, dt_nccl_id id", "long ranks, dt_nccl_id id"),
            ("DT_NCCL_BFLOAT16 = 9", "DT_NCCL_BFLOAT16 = 10"),
        ],
    ),
    "nvrtc": (
        ["nvrtc.h", "cuda.h"],
        [("const char *source", "char *source"), ("unsigned gx", "int gx")],
    ),
}


def folder_of(header):
    homes = [os.environ.get("NCCL_HOME"), os.environ.get("CUDA_HOME")]
    homes += ["/usr/local/cuda", "/usr"]
    for folder in sys.path:  # of the packages nvidia-cublas, nvidia-nccl-cu13, ...
        homes += [os.path.join(folder, "nvidia", name) for name in ("cu13", "nccl")]
    folders = (os.path.join(home, "include") for home in homes if home)
    return next((f for f in folders if os.path.isfile(os.path.join(f, header))), None)


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARIES)
def test_our_declarations_are_nvidias(name, tmp_path):
    headers, changes = LIBRARIES[name]
    compiler = shutil.which("c++")
    found = {folder_of(header): header for header in ("cuda_runtime.h", *headers)}
    if not compiler or None in found:
        pytest.skip(f"needs a C++ compiler, CUDA's headers and {', '.join(headers)}")
    command = [compiler, "-std=c++17", "-fsyntax-only"]
    folders = [f"-I{folder}" for folder in (RUNTIME.parents[1], *found)]
    check = RUNTIME / f"{name}_check.cpp"

    def compiled(*before):
        return subprocess.run(
            [*command, *before, *folders, check], capture_output=True, text=True
        )

    done = compiled()
    assert not done.returncode, done.stderr
    header = check.with_name(f"{name}.h").read_text()
    for before, after in changes:
        assert before in header
        wrong = tmp_path / "cuda" / "runtime" / f"{name}.h"
        wrong.parent.mkdir(parents=True, exist_ok=True)
        wrong.write_text(header.replace(before, after))
        done = compiled(f"-I{tmp_path}")
        assert done.returncode and "static assertion failed" in done.stderr, before
