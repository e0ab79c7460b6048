"""`make kernel-check`: the library's own kernels under the checks of kernels.

python -P tools/kernel_check           families.py, and the tests on cuda:0
python -P tools/kernel_check --short   families.py alone
python -P tools/kernel_check --mutate NUMBER [--seed SEED] [--only FILE[:LINE],...]
    [--families NAME,...]
    whether kernels with a safeguard less are found: mutate.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import mutate

import build

# Tests of the kernels; others launch the same ones.
TESTS = (
    "elementwise reduce scan sort indexing indexing_advanced scatter statistics "
    "movement cat create random half half_computing nn normalization losses conv "
    "pooling resampling embedding attention recurrent optim linalg"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -P tools/kernel_check")
    parser.add_argument("--short", action="store_true", help="families.py alone")
    parser.add_argument("tests", nargs="*", help="files of tests, in place of all")
    parser.add_argument("--mutate", type=int, metavar="NUMBER")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="such as sort.cu,radix.h:318")
    parser.add_argument("--families", help="these alone, such as sorting,extremes")
    given = parser.parse_args()
    if given.mutate:
        return mutate.run(given.mutate, given.seed, given.only, given.families)
    environment = build.environment(build.package(build.library()))
    own = [sys.executable, "-P", str(build.ROOT / "tools/kernel_check/families.py")]
    # Hopper has kernels of its own for attention.
    for more in ([], ["--card", "h100", "attention_of_halves"]):
        if status := subprocess.run([*own, *more], env=environment).returncode:
            return status
    if given.short:
        return 0
    files = given.tests or [f"tests/test_{name}.py" for name in TESTS.split()]
    pytest = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "plugin"]
    chosen = ["-k", "cuda:0", "-m", "not slow", *files]
    return subprocess.run(
        [*pytest, *chosen], env=environment, cwd=build.ROOT
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
