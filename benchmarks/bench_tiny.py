"""Tiny operations: nanoseconds a call, beside NumPy and PyTorch where installed.

Runs of the libraries are interleaved, so that a machine that slows down slows all of
them; the ratios compare minima. `python benchmarks/bench_tiny.py [rounds]`
"""

import importlib
import statistics
import sys
import timeit

# A label, and the expression for each library (None: it has no such thing).
CASES = [
    ("a + b", "a + b", "a + b"),
    ("a + 1.0", "a + 1.0", "a + 1.0"),
    ("x.sum()", "a.sum()", "a.sum()"),
    ("x.exp()", "a.exp()", "np.exp(a)"),
    ("reshape(3, 1)", "a.reshape(3, 1)", "a.reshape(3, 1)"),
    ("x[0]", "a[0]", "a[0]"),
    ("float(x[0])", "float(a[0])", "float(a[0])"),
    ("4x4 matmul", "m @ m", "m @ m"),
    ("ones(2, 3)", "lib.ones(2, 3)", "np.ones((2, 3))"),
    ("tensor([1, 2, 3])", "lib.tensor([1, 2, 3])", "np.array([1, 2, 3])"),
    ("x.to('cpu')", "a.to('cpu')", None),
    ("x.shape", "a.shape", "a.shape"),
    ("a += b", "a.add_(b)", "np.add(a, b, a)"),
    ("max(x, dim=0)", "a.max(dim=0)", "a.max(axis=0)"),
]


def subjects():
    """(name, globals for its expressions, which column of CASES)."""
    for name in ("pydevtensor", "torch"):
        try:
            lib = importlib.import_module(name)
        except ImportError:
            continue
        scope = {"lib": lib, "a": lib.ones(3), "b": lib.zeros(3), "m": lib.ones(4, 4)}
        yield name, scope, 1
    try:
        np = importlib.import_module("numpy")
    except ImportError:
        return
    one = np.float32
    scope = {"np": np, "a": np.ones(3, one), "b": np.zeros(3, one)}
    yield "numpy", {**scope, "m": np.ones((4, 4), one)}, 2


def main(rounds):
    found = list(subjects())
    if not found or found[0][0] != "pydevtensor":
        sys.exit("bench_tiny: pydevtensor is not installed; run `make build` first")
    names = [name for name, _, _ in found]
    others = names[1:]
    print(
        "ns a call: minimum (median)".ljust(26),
        *[name.rjust(16) for name in names],
        *[f"{o}/ours".rjust(14) for o in others],
    )
    for case in CASES:
        timers = [
            timeit.Timer(case[column], globals=scope) if case[column] else None
            for _, scope, column in found
        ]
        counts = [
            timer and max(200, int(2e-3 / (timer.timeit(200) / 200)))
            for timer in timers
        ]
        seen = [[] for _ in timers]
        for _ in range(rounds):
            for timer, count, times in zip(timers, counts, seen, strict=True):
                if timer:
                    times.append(timer.timeit(count) / count * 1e9)
        cells = [
            f"{min(t):.0f} ({statistics.median(t):.0f})" if t else "-" for t in seen
        ]
        ratios = [f"{min(t) / min(seen[0]):.1f}" if t else "-" for t in seen[1:]]
        print(
            case[0].ljust(26),
            *[c.rjust(16) for c in cells],
            *[r.rjust(14) for r in ratios],
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 25)
