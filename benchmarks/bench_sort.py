"""Sorting, the greatest few, running sums and variances: milliseconds a call.

Runs of pydevtensor, NumPy and PyTorch (those that are installed) are interleaved, so
that a machine that slows down slows all of them; minimum and median are shown.
`python benchmarks/bench_sort.py [rounds]`
"""

import importlib
import statistics
import sys
import time

SHAPES = {"a": (1_000_000,), "m": (1000, 1000), "b": (10_000_000,)}

# A label, and the expression for tensors and for NumPy's arrays.
CASES = [
    ("sort, 1e6", "a.sort()", "np.sort(a, kind='stable')"),
    ("argsort, 1e6", "a.argsort()", "np.argsort(a, kind='stable')"),
    ("sort, 1000 rows of 1000", "m.sort(1)", "np.sort(m, 1, kind='stable')"),
    ("sort, 1000 columns of 1000", "m.sort(0)", "np.sort(m, 0, kind='stable')"),
    ("topk(10) of 1e6", "a.topk(10)", "a[np.argpartition(-a, 10)[:10]]"),
    ("median, 1e6", "a.median()", "np.median(a)"),
    ("unique, 1e6", "i.unique()", "np.unique(i)"),
    ("cumsum, 1e7", "b.cumsum(0)", "np.cumsum(b)"),
    ("cumsum, 1000 columns", "m.cumsum(0)", "np.cumsum(m, 0)"),
    ("var, 1e7", "b.var()", "np.var(b)"),
    ("var, 1000 rows", "m.var(1)", "np.var(m, 1)"),
    ("var, 1000 columns", "m.var(0)", "np.var(m, 0)"),
]


def subjects():
    """(name, globals for its expressions, which column of CASES)."""
    np = importlib.import_module("numpy")
    rng = np.random.default_rng(1)
    data = {k: rng.normal(size=s).astype(np.float32) for k, s in SHAPES.items()}
    data["i"] = rng.integers(0, 1000, size=1_000_000)
    for name in ("pydevtensor", "torch"):
        try:
            lib = importlib.import_module(name)
        except ImportError:
            continue
        yield name, {k: lib.tensor(v) for k, v in data.items()}, 1
    yield "numpy", {"np": np, **data}, 2


def main(rounds):
    found = list(subjects())
    names = [name for name, _, _ in found]
    print("ms a call: minimum (median)".ljust(28), *[name.rjust(18) for name in names])
    for case in CASES:
        codes = [compile(case[column], "case", "eval") for _, _, column in found]
        times = [[] for _ in found]
        for _ in range(rounds):
            for code, (_, scope, _), into in zip(codes, found, times, strict=True):
                start = time.perf_counter()
                eval(code, scope)
                into.append((time.perf_counter() - start) * 1e3)
        shown = [
            f"{min(t):8.2f} ({statistics.median(t):7.2f})".rjust(18) for t in times
        ]
        print(case[0].ljust(28), *shown, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
