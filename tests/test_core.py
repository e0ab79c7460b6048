"""Builds and runs the C tests of the core, which need no Python.

    tests/core/NAME_test.c    linked with every floor below the binding, and with
                              NAME_reference.cpp, where there is one
    tests/core/sim_NAME.cpp   linked with the simulated CUDA runtime
    tests/core/cuda_NAME.cpp  linked with the CUDA backend on the simulated runtime

A program passes by returning 0, and says on its output what went wrong. Under
`make asan` they are built with the sanitizers, and leaks count.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import objects  # noqa: E402
import products  # noqa: E402

PROGRAMS = products.sources(
    "tests/core/*_test.c", "tests/core/sim_*.cpp", "tests/core/cuda_*.cpp"
)
# Asserts are the tests' own language, so they stay on here.
FLAGS = ("-UNDEBUG", "-g1", "-Itests/core")
ASAN = (
    "detect_leaks=1:detect_stack_use_after_return=0:allocator_may_return_null=1:"
    "max_allocation_size_mb=65536"
)


def linked(source):
    """The program that a test's source becomes, with what it is linked to."""
    plan = products.Plan.from_environment()
    name = Path(source).stem
    if source.endswith(".c"):
        more = products.sources(source.replace("_test.c", "_reference.cpp"))
        units = [*plan.core(), *(plan.kernels(reference) for reference in more)]
        return plan.program(name, plan.c(source, *FLAGS), units)
    units = [*plan.simulator(), *plan.base()]
    if name.startswith("cuda_"):
        units += [plan.sim(source) for source in plan.cuda_sources()]
    return plan.program(name, plan.sim(source, *FLAGS), units)


def test_programs_are_found():
    assert any(program.endswith(".c") for program in PROGRAMS)


@pytest.mark.parametrize("source", PROGRAMS)
def test_core(source, tmp_path):
    (program,) = objects.build([linked(source)])
    environment = {
        # The programs choose their own simulated GPUs.
        **{
            k: v
            for k, v in os.environ.items()
            if k != "LD_PRELOAD" and not k.startswith("PYDEVTENSOR_SIM")
        },
        "ASAN_OPTIONS": ASAN,
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    done = subprocess.run(
        [program],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=300,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}"
