"""What each library takes: megabytes, milliseconds to import, nanoseconds an addition.

The figures of README.md's table. CuPy's additions need a GPU.

    python benchmarks/bench_footprint.py [rounds] [--write]

The libraries may be in several environments, whose folders PYTHONPATH has. --write:
also to results/footprint-cpu.md.
"""

import os
import platform
import re
import resource
import subprocess
import sys
from datetime import date
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from bench_summary import machine, table
from compare import libraries, measure, rounds

RESULTS = Path(__file__).parent / "results"

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
    """Milliseconds of the processor that imports take, less an empty program's."""
    programs = {"": "pass"} | {module: f"import {module}" for module in modules}
    best = {}
    for _ in range(count):
        for module, code in programs.items():
            begin = children_time()
            subprocess.run(
                [sys.executable, "-W", "ignore", "-P", "-c", code], check=True
            )
            taken = (children_time() - begin) * 1e3
            best[module] = min(taken, best.get(module, taken))
    return {module: best[module] - best[""] for module in modules}


def children_time():
    """Seconds of the processor that ended children have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def additions(modules):
    """Nanoseconds of additions, by module and number of elements."""
    found = libraries(*(module for module in modules if module != "cupy"))
    scopes = {
        name: {f"x{n}": library.ones(n, dtype=library.float32) for n in ELEMENTS}
        for name, library in found.items()
    }
    for n in ELEMENTS:
        seen = measure(dict.fromkeys(scopes, f"x{n} + x{n}"), scopes, 10)
        yield n, {name: min(times) * 1e9 for name, times in seen.items()}


def number(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def main():
    modules = [module for module in MODULES if find_spec(module)]
    rows = {
        "installed, with all it needs, MB": {m: megabytes(MODULES[m]) for m in modules},
        "import, ms of the processor": imports(modules, rounds(10)),
    }
    rows |= {f"`a + b` of {n} floats, ns": each for n, each in additions(modules)}
    versions = [
        f"{distribution.name} {distribution.version}"
        for module in modules
        for distribution in installed(MODULES[module])
        if distribution.name in MODULES[module]
    ]
    about = [str(date.today()), f"{machine()} with a load of {os.getloadavg()[1]:.0f}"]
    about.append(f"Python {platform.python_version()}")
    cells = [
        [label, *(number(values[m]) if m in values else "-" for m in modules)]
        for label, values in rows.items()
    ]
    lines = [
        "# Size, import and small operations, beside other libraries",
        "",
        ", ".join([*about, *versions]) + "; `bench_footprint.py`.",
        "",
        *table(["", *modules], cells),
        "",
        "Sizes are those of the files of a distribution and of those that it requires, "
        "in MB of 10^6",
        "bytes. Times are minima over all rounds, an import's without that of an empty "
        "program.",
    ]
    print("\n".join(lines))
    if "--write" in sys.argv:
        (RESULTS / "footprint-cpu.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
