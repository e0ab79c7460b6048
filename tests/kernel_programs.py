"""A kernel in CUDA C, and programs that compile it, for the tests of kernels."""

import os
import subprocess
import sys

import pytest

import pydevtensor as torch

simulated = pytest.mark.skipif(
    not torch.cuda.is_simulated(), reason="needs simulated GPUs"
)


def compiled(source, name=None, **options):
    return torch.cuda.compile_kernel(source, name, **options)


ADD = r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}"""


def run(program, **environment):
    """A program in a process of its own: its output, and what it wrote to stderr."""
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            f"import pydevtensor as torch\nADD = r'''{ADD}'''\n{program}",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYDEVTENSOR_SIM_GPUS": "2", **environment},
    )
    return done.stdout, done.stderr
