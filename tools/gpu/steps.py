"""The steps of gpu-check, in order. docs/gpu-unchecked.md says what each one checks."""

from __future__ import annotations

import importlib.util
import os
import re

from .kernels import missing_in
from .runner import Step, on_a_real_gpu, tests_on_a_real_gpu, without_hazards

LIBRARY = "{work}/pydevtensor/{library}"
CHECKER = ("{work}/cuda_backend_test", LIBRARY)
PROGRAMS = "{root}/tools/gpu"
QUICK = ("{python}", f"{PROGRAMS}/short.py", "--quick")
BUILT = ("machine", "install")
CHECKED = ("machine", "install", "checker-build")
# The parts of the checker with kernels of ours that use shared memory.
SHARED = ("reductions", "extremes", "integer-products")
# What a rehearsal runs of the checker.
PARTS = ("constants", "transfers")


def _gpu_is_listed(log: str) -> str | None:
    listed = any(line.startswith("GPU 0: ") for line in log.splitlines())
    return None if listed else "nvidia-smi lists no GPU"


def _kind_is_real(log: str) -> str | None:
    rows = [line.split() for line in log.splitlines()]
    real = any(row[:1] == ["cuda:0"] and row[-1] == "real" for row in rows)
    if not real:
        return "python -m pydevtensor shows no real GPU"
    for library in ("cuBLAS", "cuSOLVER"):
        opened = re.search(rf"^ *{library} +[1-9]", log, re.M)
        if not opened or not re.search(rf"^ *{library} is from +\S", log, re.M):
            return f"python -m pydevtensor shows no {library} that was opened"
    return None


def _kernels_were_profiled(log: str) -> str | None:
    missing = missing_in(log)
    return on_a_real_gpu(log) or (
        f"ncu has not measured {', '.join(missing)}" if missing else None
    )


def _goals_are_reached(log: str) -> str | None:
    missed = sum(line.startswith("missed: ") for line in log.splitlines())
    if not re.search(r"^goals: \d+ of [1-9]", log, re.M):
        return on_a_real_gpu(log) or "no case was compared with its goal"
    return on_a_real_gpu(log) or (f"{missed} goals are missed" if missed else None)


def _sanitizer(tool: str, limit: int, *parts: str) -> Step:
    program = (*CHECKER, "--packages={packages}")
    return Step(
        tool,
        3,
        limit,
        f"compute-sanitizer's {tool} over the checker",
        (*program, *parts),
        wrapper=_options(tool),
        rehearsal=(*program, "--simulated", *(parts or PARTS)),
        needs=CHECKED,
        tool="compute-sanitizer",
        environment=UNCACHED,
        evidence=without_hazards,
    )


# Each block is an allocation of its own, so that an access past its end is one past an
# allocation.
UNCACHED = {"PYDEVTENSOR_NO_CACHE": "1"}


def _options(tool: str) -> tuple[str, ...]:
    # cuBLAS probes for functions that a driver may not have.
    quiet = ("--report-api-errors", "no", "--error-exitcode", "9")
    return ("compute-sanitizer", "--tool", tool, *quiet)


def _pytest(*more: str) -> tuple[str, ...]:
    return ("{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", *more)


KERNELS = tuple(
    f"tests/test_{name}.py"
    for name in (
        "kernel_raw",
        "kernels",
        "kernel_errors",
        "kernel_halves",
        "kernel_groups",
    )
)


def _plugins() -> tuple[str, ...]:
    """Several processes, and a limit for a test that hangs, where pytest has these."""
    cores = len(os.sched_getaffinity(0))
    parallel = cores > 1 and importlib.util.find_spec("xdist")
    limited = importlib.util.find_spec("pytest_timeout")
    return (
        *(("-n", str(min(14, cores))) if parallel else ()),
        *(("--timeout", "60") if limited else ()),
    )


def _real(step: str, which: str = "real") -> dict[str, str]:
    return {
        "PYDEVTENSOR_TEST_GPUS": which,
        "PYDEVTENSOR_TEST_FAILURES": f"{{results}}/{step}.failures",
    }


STEPS = (
    # --- 1: builds, and runs everything once
    Step(
        "machine",
        1,
        20,
        "the GPU, its driver, and the versions of all programs",
        ("{base}", f"{PROGRAMS}/machine.py"),
        needs=(),
        evidence=_gpu_is_listed,
        on_gpu=False,
        rehearsal=("{base}", f"{PROGRAMS}/machine.py", "--no-gpu"),
        always=True,
        shown=60,
    ),
    Step(
        "build",
        1,
        200,
        "a wheel with kernels for this GPU: one that was carried here, or a new one",
        ("{base}", f"{PROGRAMS}/install.py", "wheel", "{results}", "{work}"),
        evidence=None,
        on_gpu=False,
        product="{results}/wheel",
    ),
    Step(
        "checker-build",
        1,
        80,
        "the checker: the C++ test of the backend, which needs no Python",
        ("{base}", f"{PROGRAMS}/install.py", "checker", "{results}", "{work}"),
        evidence=None,
        on_gpu=False,
        product=CHECKER[0],
    ),
    Step(
        "install",
        1,
        30,
        "an environment with the wheel and the packages of the interpreter",
        ("{base}", f"{PROGRAMS}/install.py", "environment", "{results}", "{work}"),
        needs=("machine", "build"),
        evidence=None,
        on_gpu=False,
        product=LIBRARY,
    ),
    Step(
        "facts",
        1,
        30,
        "what pydevtensor finds: device, driver; cuBLAS and cuSOLVER, which it opens",
        ("{python}", f"{PROGRAMS}/facts.py"),
        needs=BUILT,
        evidence=_kind_is_real,
        shown=60,
    ),
    Step(
        "checker",
        1,
        60,
        "the checker, against plain loops on the host",
        (*CHECKER, "--packages={packages}"),
        rehearsal=(*CHECKER, "--simulated", *PARTS),
        needs=CHECKED,
    ),
    Step(
        "short",
        1,
        40,
        "each kind of kernel once, beside the CPU",
        ("{python}", f"{PROGRAMS}/short.py"),
        rehearsal=QUICK,
        needs=BUILT,
    ),
    Step(
        "kernels",
        1,
        60,
        "kernels in CUDA C of the program's own, by NVRTC",
        _pytest(*KERNELS),
        rehearsal=_pytest("-m", "not slow", *KERNELS[:1]),
        needs=BUILT,
        modules=("pytest",),
        environment=_real("kernels"),
        evidence=tests_on_a_real_gpu,
    ),
    # --- 2: the tests
    Step(
        "tests",
        2,
        250,
        "the fast tests that use a GPU, which is there as two virtual ones",
        _pytest(
            *_plugins(),
            *("-m", "not slow", "--maxfail=200", "--tb=short"),
            "--junitxml={results}/tests.xml",
            *("--ignore=tests/tools", "--ignore=tests/test_core.py", "tests"),
        ),
        rehearsal=_pytest(
            "-m", "not slow", "tests/test_streams.py", "tests/test_cat.py"
        ),
        needs=BUILT,
        modules=("pytest", "hypothesis"),
        environment={**_real("tests", "only"), "PYDEVTENSOR_VIRTUAL_GPUS": "2"},
        evidence=tests_on_a_real_gpu,
        shown=150,
    ),
    Step(
        "large",
        2,
        60,
        "sizes of real programs: long attention, several waves, 2^31 elements",
        ("{python}", f"{PROGRAMS}/large.py"),
        needs=BUILT,
    ),
    Step(
        "libraries",
        2,
        60,
        "memory shared with PyTorch and CuPy, and the order of their streams",
        _pytest("tests/test_dlpack.py"),
        needs=BUILT,
        modules=("pytest", "torch", "cupy"),
        environment=_real("libraries"),
        evidence=tests_on_a_real_gpu,
    ),
    Step(
        "nccl",
        2,
        50,
        "calls of torch.distributed by NCCL: of one rank, and of two with two GPUs",
        ("{python}", f"{PROGRAMS}/nccl.py"),
        needs=BUILT,
    ),
    Step(
        "memcheck-short",
        2,
        110,
        "compute-sanitizer's memcheck over the short program",
        QUICK,
        wrapper=_options("memcheck"),
        needs=BUILT,
        tool="compute-sanitizer",
        environment=UNCACHED,
        evidence=without_hazards,
    ),
    # --- 3: compute-sanitizer
    _sanitizer("memcheck", 150),
    _sanitizer("racecheck", 100, *SHARED),
    _sanitizer("synccheck", 100, *SHARED),
    _sanitizer("initcheck", 100, *SHARED, "constants", "random", "transfers", "peers"),
    Step(
        "racecheck-short",
        3,
        80,
        "compute-sanitizer's racecheck over the short program: scans, sorts, rows",
        (*QUICK, "--no-products"),
        wrapper=_options("racecheck"),
        needs=BUILT,
        tool="compute-sanitizer",
        evidence=without_hazards,
    ),
    # --- 4: speed
    Step(
        "benchmarks",
        4,
        380,
        "each family of kernels beside PyTorch, CuPy and a plain copy",
        (
            *("{python}", "{root}/benchmarks/bench_gpu.py"),
            *("--out", "{results}", "--seconds", "340"),
        ),
        rehearsal=(
            *("{python}", "{root}/benchmarks/bench_gpu.py"),
            *("--out", "{results}", "--simulated"),
        ),
        needs=BUILT,
        evidence=_goals_are_reached,
        shown=0,
    ),
    Step(
        "profile",
        4,
        130,
        "ncu on one launch of each kind of kernel",
        ("{python}", f"{PROGRAMS}/kernels.py"),
        wrapper=(
            *("ncu", "--clock-control", "none", "--section", "SpeedOfLight"),
            *("--section", "MemoryWorkloadAnalysis", "--section", "Occupancy"),
            *("--section", "LaunchStats", "--section", "WarpStateStats"),
        ),
        needs=BUILT,
        tool="ncu",
        evidence=_kernels_were_profiled,
        shown=400,
    ),
    Step(
        "clock",
        4,
        25,
        "what the clock of a simulated card predicts, beside what this one takes",
        ("{python}", "{root}/benchmarks/bench_clock.py", "--seconds", "8"),
        rehearsal=(
            *("{python}", "{root}/benchmarks/bench_clock.py"),
            *("--seconds", "2", "--card", "T4"),
        ),
        needs=BUILT,
        shown=60,
    ),
)
