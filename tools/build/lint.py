"""Runs the formatters, linters and type checkers that pyproject.toml pins.

python tools/build/lint.py [--fix]

Every tool runs; the exit status is 1 if any of them reports something. --fix formats
the sources instead.
"""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
import time
from pathlib import Path

import objects
import products
import toolchain
from objects import BUILD, ROOT

BIN = Path(sys.executable).parent
SUFFIXES = ("c", "h", "cpp", "cu", "cuh", "inc", "def")
C_FILES = tuple(f"csrc/**/*.{suffix}" for suffix in SUFFIXES)
TEST_FILES = tuple(f"tests/core/*.{suffix}" for suffix in SUFFIXES)
PYTHON_ROOTS = ("pydevtensor", "tests", "tools", "benchmarks", "setup.py")


def tool(name: str, *arguments: str, cwd: Path = ROOT) -> tuple[bool, str]:
    done = subprocess.run(
        [str(BIN / name), *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return done.returncode == 0, done.stdout


def python_roots() -> list[str]:
    return [root for root in PYTHON_ROOTS if (ROOT / root).exists()]


def types() -> tuple[bool, str]:
    """Of the installed package, which has stubs for its C functions."""
    config = ("--config-file", str(ROOT / "pyproject.toml"))
    return tool("mypy", *config, "--python-executable", sys.executable, cwd=BUILD)


def clang_format(fix: bool) -> tuple[bool, str]:
    mode = ("-i",) if fix else ("--dry-run", "-Werror")
    return tool("clang-format", *mode, *products.sources(*C_FILES, *TEST_FILES))


def _tidy(source: str, flags: tuple[str, ...]) -> tuple[bool, str]:
    # With assertions, which tell clang-tidy what holds; without gcc's own flags, and
    # without errors for warnings, which are the compiler's to give.
    others = ("-Wno-unused-command-line-argument", "-Wno-ignored-optimization-argument")
    ours = ("-UNDEBUG", "-Wno-error", *others)
    # The analyzer walks each instance of a template: half of all its time, for kernels
    # that have hardly a path.
    less = "--checks=-clang-analyzer-*,-clang-diagnostic-*"
    chosen = (less,) if source.endswith(".cpp") else ()
    fine, said = tool("clang-tidy", "--quiet", *chosen, source, "--", *flags, *ours)
    # "N warnings generated." counts those of system headers, which are not shown.
    lines = [line for line in said.splitlines() if "warnings generated" not in line]
    return fine, "\n".join(lines)


def clang_tidy() -> tuple[bool, str]:
    """Of the C sources; one of the instruction-set variants stands for all."""
    plan = products.Plan.from_environment()
    units = [unit for unit in plan.core() if unit.suffix in (".o", ".avx2.o")]
    units += [plan.binding(source) for source in products.sources("csrc/python/**/*.c")]
    units += [plan.c(s, "-Itests/core") for s in products.sources("tests/core/*.c")]
    given = len(plan.cc.command)
    with concurrent.futures.ThreadPoolExecutor(objects.job_count()) as pool:
        jobs = [pool.submit(_tidy, u.source, u.command[given:]) for u in units]
        results = [job.result() for job in jobs]
    return all(fine for fine, _ in results), "".join(f"{s}\n" for _, s in results if s)


def main() -> int:
    os.chdir(ROOT)
    try:
        toolchain.find_cc()
    except toolchain.BuildError as error:
        sys.exit(f"pydevtensor: {error}")
    roots = python_roots()
    if "--fix" in sys.argv:
        steps = {
            "clang-format": lambda: clang_format(True),
            "ruff check": lambda: tool("ruff", "check", "-q", "--fix", *roots),
            "ruff format": lambda: tool("ruff", "format", "-q", *roots),
        }
    else:
        steps = {
            "clang-format": lambda: clang_format(False),
            "ruff check": lambda: tool("ruff", "check", "-q", *roots),
            "ruff format": lambda: tool("ruff", "format", "-q", "--check", *roots),
            "mypy": types,
            "clang-tidy": clang_tidy,
        }
    failed = []
    for name, step in steps.items():
        start = time.monotonic()
        fine, said = step()
        verdict = "ok" if fine else "FAILED"
        print(f"{name}: {verdict}, {time.monotonic() - start:.1f} s", flush=True)
        if not fine:
            failed.append(name)
            print(said, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
