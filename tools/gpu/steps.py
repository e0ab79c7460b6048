"""The steps of gpu-check, in order. docs/gpu-unchecked.md says what each one checks."""

from __future__ import annotations

import importlib.util
import os

from .runner import Step, on_a_real_gpu, tests_on_a_real_gpu, without_hazards

LIBRARY = "{work}/pydevtensor/_cuda.so"
CHECKER = ("{work}/cuda_backend_test", LIBRARY)
PROGRAMS = "{root}/tools/gpu"
BUILT = ("machine", "install")
CHECKED = ("machine", "install", "checker-build")
# The parts of the checker with kernels of ours that use shared memory.
SHARED = ("reductions", "extremes", "integer-products")


def _gpu_is_listed(log: str) -> str | None:
    listed = any(line.startswith("GPU 0: ") for line in log.splitlines())
    return None if listed else "nvidia-smi lists no GPU"


def _kind_is_real(log: str) -> str | None:
    rows = [line.split() for line in log.splitlines()]
    real = any(row[:1] == ["cuda:0"] and row[-1] == "real" for row in rows)
    return None if real else "python -m pydevtensor shows no real GPU"


def _kernels_were_profiled(log: str) -> str | None:
    why = on_a_real_gpu(log)
    return why or (None if "Speed Of Light" in log else "ncu has measured no kernel")


def _sanitizer(tool: str, limit: int, *parts: str) -> Step:
    return Step(
        tool,
        3,
        limit,
        f"compute-sanitizer's {tool} over the checker",
        (
            *_options(tool),
            *CHECKER,
            "--packages={packages}",
            *parts,
        ),
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


def _plugins() -> tuple[str, ...]:
    """Several processes, and a limit for a test that hangs, where pytest has these."""
    cores = len(os.sched_getaffinity(0))
    parallel = cores > 1 and importlib.util.find_spec("xdist")
    limited = importlib.util.find_spec("pytest_timeout")
    return (
        *(("-n", str(min(8, cores))) if parallel else ()),
        *(("--timeout", "60") if limited else ()),
    )


def _real(step: str) -> dict[str, str]:
    return {
        "PYDEVTENSOR_TEST_GPUS": "real",
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
        always=True,
        shown=60,
    ),
    Step(
        "build",
        1,
        240,
        "a wheel with kernels for this GPU: one that was carried here, or a new one",
        ("{base}", f"{PROGRAMS}/install.py", "wheel", "{results}", "{work}"),
        evidence=None,
        product="{results}/wheel",
    ),
    Step(
        "checker-build",
        1,
        80,
        "the checker: the C++ test of the backend, which needs no Python",
        ("{base}", f"{PROGRAMS}/install.py", "checker", "{results}", "{work}"),
        evidence=None,
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
        product=LIBRARY,
    ),
    Step(
        "facts",
        1,
        20,
        "what pydevtensor finds: device, driver, cuBLAS, cuSOLVER",
        ("{python}", "-m", "pydevtensor"),
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
        needs=CHECKED,
    ),
    Step(
        "short",
        1,
        40,
        "each kind of kernel once, beside the CPU",
        ("{python}", f"{PROGRAMS}/short.py"),
        needs=BUILT,
    ),
    Step(
        "virtual",
        1,
        40,
        "the same with two virtual GPUs",
        ("{python}", f"{PROGRAMS}/short.py"),
        needs=BUILT,
        environment={"PYDEVTENSOR_VIRTUAL_GPUS": "2"},
    ),
    # --- 2: the tests
    Step(
        "tests",
        2,
        330,
        "the fast tests, on the GPU as two virtual ones",
        _pytest(
            *_plugins(),
            *("-m", "not slow", "--maxfail=200", "--tb=short"),
            "--junitxml={results}/tests.xml",
            *("--ignore=tests/tools", "--ignore=tests/test_core.py", "tests"),
        ),
        needs=BUILT,
        modules=("pytest", "hypothesis"),
        environment={**_real("tests"), "PYDEVTENSOR_VIRTUAL_GPUS": "2"},
        evidence=tests_on_a_real_gpu,
        shown=150,
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
        "memcheck-short",
        2,
        130,
        "compute-sanitizer's memcheck over the short program",
        (
            *_options("memcheck"),
            *("{python}", f"{PROGRAMS}/short.py", "--quick"),
        ),
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
        (
            *_options("racecheck"),
            *("{python}", f"{PROGRAMS}/short.py", "--quick", "--no-products"),
        ),
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
        needs=BUILT,
        shown=0,
    ),
    Step(
        "profile",
        4,
        130,
        "ncu on one launch of each kind of kernel",
        (
            *("ncu", "--clock-control", "none", "--section", "SpeedOfLight"),
            *("--section", "MemoryWorkloadAnalysis", "--section", "Occupancy"),
            *("--section", "LaunchStats", "--section", "WarpStateStats"),
            *("{python}", f"{PROGRAMS}/kernels.py"),
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
        needs=BUILT,
        shown=60,
    ),
)
