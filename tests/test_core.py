"""Builds and runs the C tests of the core, which need no Python.

    tests/core/NAME_test.c    linked with every floor below the binding, and with
                              NAME_reference.cpp, where there is one
    tests/core/null_NAME      linked with null_backend.c too, a third type of devices
    tests/core/sim_NAME.cpp   linked with the simulated CUDA runtime
    tests/core/cuda_NAME.cpp  linked with the CUDA backend on the simulated runtime

A program passes by returning 0, and says on its output what went wrong. Under
`make asan` they are built with the sanitizers, and leaks count. With CC and CXX for
another processor, PYDEVTENSOR_EMULATOR is the command that runs them.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import objects  # noqa: E402
import products  # noqa: E402

PROGRAMS = products.sources(
    *("tests/core/*_test.c", "tests/core/null_*.cpp"),
    *("tests/core/sim_*.cpp", "tests/core/cuda_*.cpp"),
)
ASAN = (
    "detect_leaks=1:detect_stack_use_after_return=0:allocator_may_return_null=1:"
    "max_allocation_size_mb=65536"
)


def test_programs_are_found():
    assert any(program.endswith(".c") for program in PROGRAMS)


# Of every row, type and layout, which tests in Python also go through.
LONG = (
    "cpu_copy_test",
    "cpu_elementwise_test",
    "cpu_matmul_test",
    "cpu_reduce_test",
    "cuda_backend_test",
    "null_backend_test",
)


def program_of(source):
    marks = [pytest.mark.core]
    if Path(source).stem in LONG:
        marks.append(pytest.mark.slow)
    return pytest.param(source, marks=marks, id=source)


@pytest.mark.parametrize("source", [*map(program_of, PROGRAMS)])
def test_core(source, tmp_path):
    (program,) = objects.build([products.Plan.from_environment().test(source)])
    run([program], tmp_path)


@pytest.mark.slow
def test_the_checker_opens_a_library(tmp_path):
    """As on a machine with a GPU, where it opens the backend that nvcc has built."""
    plan = products.Plan.from_environment()
    program, library = objects.build([plan.checker(), plan.cuda_sim()])
    # A simulated GPU does not pass for a real one.
    said = run([program, library, "transfers"], tmp_path, status=1)
    assert "ran on cuda:0 Simulated GPU (virtual GPU 1 of 2) (simulated)" in said
    assert "needs a real GPU" in said
    said = run([program, library, "--simulated"], tmp_path)
    assert said.count(": passed") == 10 and "FAILED" not in said
    said = run([program, library, "--simulated", "peers", "random"], tmp_path)
    assert re.findall("(.*): passed", said) == ["random", "peers"]
    said = run([program, library, "--simulated", "everything"], tmp_path, status=2)
    assert "no part is called everything" in said
    assert "nothing.so" in run([program, "nothing.so"], tmp_path, status=1)


def run(command, tmp_path, status=0):
    environment = {
        # The programs choose their own simulated GPUs.
        **{
            k: v
            for k, v in os.environ.items()
            if k != "LD_PRELOAD" and not k.startswith("PYDEVTENSOR_SIM_")
        },
        "ASAN_OPTIONS": ASAN,
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    emulator = shlex.split(os.environ.get("PYDEVTENSOR_EMULATOR", ""))
    done = subprocess.run(
        [*emulator, *command],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=3000 if emulator else 300,
    )
    assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}"
    return done.stdout
