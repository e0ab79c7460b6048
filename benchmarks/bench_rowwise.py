"""Operations on rows: milliseconds a call, beside PyTorch where it is installed.

Runs of the libraries are interleaved, and minima and medians are shown.
`python benchmarks/bench_rowwise.py [rounds]`
"""

import importlib
import statistics
import sys
import time

SETUP = """
F = torch.nn.functional
x = torch.randn(10000, 1000)
y = torch.softmax(x, 1)
tall = torch.randn(1000, 10000)
"""
CASES = [
    ("softmax 10000 x 1000", "torch.softmax(x, 1)"),
    ("log_softmax 10000 x 1000", "torch.log_softmax(x, 1)"),
    ("logsumexp 10000 x 1000", "torch.logsumexp(x, 1)"),
    ("softmax of columns, 1000 x 10000", "torch.softmax(tall, 0)"),
    ("copy 10000 x 1000", "x.clone()"),
]


def scopes():
    for name in ("pydevtensor", "torch"):
        try:
            torch = importlib.import_module(name)
        except ImportError:
            continue
        scope = {"torch": torch}
        exec(SETUP, scope)
        yield name, scope


def main(rounds):
    found = list(scopes())
    if not found or found[0][0] != "pydevtensor":
        sys.exit("bench_rowwise: pydevtensor is not installed; run `make build` first")
    print("ms a call: minimum (median)".ljust(40), *[n.rjust(18) for n, _ in found])
    for label, source in CASES:
        code = compile(source, label, "exec")
        times = [[] for _ in found]
        for _ in range(rounds):
            for (_, scope), into in zip(found, times, strict=True):
                start = time.perf_counter()
                exec(code, scope)
                into.append(1e3 * (time.perf_counter() - start))
        cells = [f"{min(t):.3f} ({statistics.median(t):.3f})" for t in times]
        print(label.ljust(40), *[cell.rjust(18) for cell in cells])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
