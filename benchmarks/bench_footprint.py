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
from timeit import Timer

from compare import libraries, rounds

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


def additions(modules, elements, count):
    """Nanoseconds of a + b, by module."""
    timers = {}
    for module, library in libraries(*modules).items():
        a, b = (library.ones(elements, dtype=library.float32) for _ in range(2))
        timers[module] = Timer("a + b", globals={"a": a, "b": b})
    calls = max(1, min(20_000, 30_000_000 // elements))
    best = {}
    for _ in range(count):
        for module, timer in timers.items():
            taken = timer.timeit(calls) / calls * 1e9
            best[module] = min(taken, best.get(module, taken))
    return best


def main():
    modules = [module for module in MODULES if find_spec(module)]
    count = rounds(10)
    took = imports(modules, count)
    rows = {
        "MB installed": {module: megabytes(MODULES[module]) for module in modules},
        "ms to import": took,
    }
    for elements in ELEMENTS:
        computing = [module for module in modules if module != "cupy"]
        rows[f"ns: a + b of {elements}"] = additions(computing, elements, count)
    print("".ljust(22), *(f"{module:>14}" for module in modules))
    for label, values in rows.items():
        cells = (f"{values[m]:.4g}" if m in values else "-" for m in modules)
        print(label.ljust(22), *(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main()
