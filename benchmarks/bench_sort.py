"""Sorting, topk, cumulative sums, variances: milliseconds a call.

python benchmarks/bench_sort.py [rounds]
"""

import numpy as np
from compare import compare, libraries

SHAPES = {"a": (1_000_000,), "m": (1000, 1000), "b": (10_000_000,)}

# A label, and the expression for tensors and for NumPy.
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


def main():
    rng = np.random.default_rng(1)
    data = {k: rng.normal(size=s).astype(np.float32) for k, s in SHAPES.items()}
    data["i"] = rng.integers(0, 1000, size=1_000_000)
    scopes = {
        name: {k: lib.tensor(v) for k, v in data.items()}
        for name, lib in libraries("pydevtensor", "torch").items()
    }
    compare(CASES, {**scopes, "numpy": {"np": np, **data}}, "ms")


if __name__ == "__main__":
    main()
