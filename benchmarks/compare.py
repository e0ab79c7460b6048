"""Times the same work in pydevtensor, PyTorch and NumPy: those that are installed.

Rounds of the libraries are interleaved, so that a machine that slows down slows all of
them. Shown are minimum and median; ratios compare minima.
"""

import importlib
import statistics
import sys
import timeit

UNITS = {"ns": 1e9, "us": 1e6, "ms": 1e3}


def libraries(*names):
    """The modules by name; the first one has to be there."""
    found = {}
    for name in names or ("pydevtensor", "torch", "numpy"):
        try:
            found[name] = importlib.import_module(name)
        except ImportError:
            if not found:
                sys.exit(
                    f"{sys.argv[0]}: {name} is not installed; run `make build` first"
                )
    return found


def scopes_of(setup, **names):
    """The names of each library after running setup with torch and names."""
    scopes = {}
    for name, torch in libraries("pydevtensor", "torch").items():
        scopes[name] = {"torch": torch, **names}
        exec(setup, scopes[name])
    return scopes


def rounds(default):
    """The first argument of the program, if it is a number."""
    return int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else default


def compare(cases, scopes, unit="us", repeat=15, least=2e-3):
    """Prints a table: a row for each case, a column for each library.

    cases: (label, work) or (label, work, work in NumPy; None: NumPy has no such thing).
    Work is code, or a function that takes a scope and returns what to call.
    scopes: by library, the names that the code uses, or what the functions take.
    least: seconds of a round.
    """
    width = max(28, *(len(case[0]) + 2 for case in cases))
    titles = [*scopes, *(f"{name}/ours" for name in [*scopes][1:])]
    print(
        f"{unit} a call: minimum (median)".ljust(width), *(f"{t:>18}" for t in titles)
    )
    for label, *works in cases:
        work = {
            name: works[0] if name != "numpy" else (*works, None)[1] for name in scopes
        }
        seen = measure(work, scopes, repeat, least)
        times = [[t * UNITS[unit] for t in seen.get(name, ())] for name in scopes]
        cells = [
            f"{min(t):.4g} ({statistics.median(t):.4g})" if t else "-" for t in times
        ]
        cells += [f"{min(t) / min(times[0]):.2f}" if t else "-" for t in times[1:]]
        print(label.ljust(width), *(f"{cell:>18}" for cell in cells), flush=True)


def measure(works, scopes, repeat=15, least=2e-3):
    """The seconds of a call in each round, by library; works: None has none."""
    timers = {}
    for name, work in works.items():
        if callable(work):
            timers[name] = timeit.Timer(work(scopes[name]))
        elif work:
            timers[name] = timeit.Timer(work, globals=scopes[name])
    counts = {}
    for name, timer in timers.items():
        once = min(timer.timeit(1), timer.timeit(1))
        counts[name] = max(1, int(least / max(once, 1e-7)))
    seen = {name: [] for name in timers}
    for _ in range(rounds(repeat)):
        for name, timer in timers.items():
            seen[name].append(timer.timeit(counts[name]) / counts[name])
    return seen
