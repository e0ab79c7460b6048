"""What each library takes: megabytes, milliseconds to import, nanoseconds an addition.

The table of README.md. CuPy's additions need a GPU.
`python benchmarks/bench_footprint.py [rounds]`
"""

import re
import subprocess
import sys
import time
from importlib import metadata
from importlib.util import find_spec

from compare import compare, libraries, rounds

# The module, and what a distribution of it is called.
MODULES = {
    "pydevtensor": ["pydevtensor"],
    "torch": ["torch"],
    "cupy": ["cupy", "cupy-cuda12x", "cupy-cuda13x"],
    "numpy": ["numpy"],
}
ELEMENTS = 3, 10_000_000


def needs(distribution):
    """The names of what a distribution requires here, without its extras."""
    for line in distribution.requires or ():
        if "extra ==" not in line:
            yield re.match(r"[\w.-]+", line)[0]


def installed(names):
    """The distributions of these names that are installed, with all that they need."""
    found, waiting = {}, list(names)
    while waiting:
        try:
            distribution = metadata.distribution(waiting.pop())
        except metadata.PackageNotFoundError:  # for another platform, or another name
            continue
        if distribution.name not in found:
            found[distribution.name] = distribution
            waiting += needs(distribution)
    return found.values()


def megabytes(names):
    """The size of the files of these distributions and of all that they need."""
    paths = {
        file.locate()
        for distribution in installed(names)
        for file in distribution.files or ()
        if "__pycache__" not in file.parts
    }
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6


def imports(modules, count):
    """Milliseconds of an import, by module, less those of a process without one."""
    programs = {"": "pass"} | {module: f"import {module}" for module in modules}
    best = {}
    for _ in range(count):
        for module, code in programs.items():
            begin = time.perf_counter()
            subprocess.run(
                [sys.executable, "-W", "ignore", "-P", "-c", code], check=True
            )
            taken = (time.perf_counter() - begin) * 1e3
            best[module] = min(taken, best.get(module, taken))
    return {module: best[module] - best[""] for module in modules}


def main():
    modules = [module for module in MODULES if find_spec(module)]
    rows = {
        "MB installed": {module: megabytes(MODULES[module]) for module in modules},
        "ms to import": imports(modules, rounds(10)),
    }
    print("".ljust(28), *(f"{module:>18}" for module in modules))
    for label, values in rows.items():
        print(label.ljust(28), *(f"{values[module]:>18.4g}" for module in modules))
    print()
    scopes = {}
    for name, library in libraries(*(m for m in modules if m != "cupy")).items():
        scopes[name] = {
            f"x{n}": library.ones(n, dtype=library.float32) for n in ELEMENTS
        }
    cases = [(f"a + b of {n}", *[f"x{n} + x{n}"] * 2) for n in ELEMENTS]
    compare(cases, scopes, "ns", 10)


if __name__ == "__main__":
    main()
