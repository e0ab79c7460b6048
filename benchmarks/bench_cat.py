"""Joining and rearranging: microseconds a call, beside NumPy and PyTorch if installed.

Runs of the libraries are interleaved, so that a machine that slows down slows all of
them; the ratios compare minima. `python benchmarks/bench_cat.py [rounds]`

"copy" is the yardstick: what moves the bytes of the large cases once.
"""

import importlib
import statistics
import sys
import timeit

# A label, the expression in PyTorch's names, and in NumPy's.
CASES = [
    ("copy 4000x5000", "w.clone()", "w.copy()"),
    ("cat 2 of 4000x2500, rows", "lib.cat([a, b])", "np.concatenate([a, b])"),
    ("cat 2 of 4000x2500, columns", "lib.cat([a, b], 1)", "np.concatenate([a, b], 1)"),
    (
        "cat float32 and int32, columns",
        "lib.cat([a, n], 1)",
        "np.concatenate([a, n], 1)",
    ),
    ("stack 64 of 3x224x224", "lib.stack(images)", "np.stack(images)"),
    ("stack 128 of 1x28x28", "lib.stack(digits)", "np.stack(digits)"),
    ("cat 2 of 3", "lib.cat([t, t])", "np.concatenate([t, t])"),
    ("stack 2 of 3", "lib.stack([t, t])", "np.stack([t, t])"),
    ("flip 4000x2500, rows", "a.flip(0)", "np.flip(a, 0).copy()"),
    ("flip 4000x2500, columns", "a.flip(1)", "np.flip(a, 1).copy()"),
    (
        "roll 4000x2500 by 100, 100",
        "a.roll((100, 100), (0, 1))",
        "np.roll(a, (100, 100), (0, 1))",
    ),
    ("repeat 1000x2500, 4 times", "q.repeat(4, 1)", "np.tile(q, (4, 1))"),
    ("repeat_interleave 1000x2500", "q.repeat_interleave(4, 0)", "np.repeat(q, 4, 0)"),
    ("flip of 3", "t.flip(0)", "np.flip(t, 0).copy()"),
    ("diagonal of 4x4", "m.diagonal()", "np.diagonal(m)"),
]


def scope_of(ones, int32):
    """The operands, by a library's own ones(shape)."""
    a = ones((4000, 2500))
    return {
        "a": a,
        "b": ones((4000, 2500)),
        "n": int32(a),
        "w": ones((4000, 5000)),
        "q": ones((1000, 2500)),
        "images": [ones((3, 224, 224)) for _ in range(64)],
        "digits": [ones((1, 28, 28)) for _ in range(128)],
        "t": ones((3,)),
        "m": ones((4, 4)),
    }


def subjects():
    """(name, globals for its expressions, which column of CASES)."""
    for name in ("pydevtensor", "torch"):
        try:
            lib = importlib.import_module(name)
        except ImportError:
            continue
        yield name, {"lib": lib, **scope_of(lib.ones, lambda x: x.int())}, 1
    try:
        np = importlib.import_module("numpy")
    except ImportError:
        return
    scope = scope_of(lambda s: np.ones(s, np.float32), lambda x: x.astype(np.int32))
    yield "numpy", {"np": np, **scope}, 2


def main(rounds):
    found = list(subjects())
    if not found or found[0][0] != "pydevtensor":
        sys.exit("bench_cat: pydevtensor is not installed; run `make build` first")
    names = [name for name, _, _ in found]
    print(
        "us a call: minimum (median)".ljust(32),
        *[name.rjust(18) for name in names],
        *[f"{name}/ours".rjust(14) for name in names[1:]],
    )
    for case in CASES:
        timers = [
            timeit.Timer(case[column], globals=scope) for _, scope, column in found
        ]
        counts = [max(1, int(2e-3 / timer.timeit(1))) for timer in timers]
        seen: list[list[float]] = [[] for _ in timers]
        for _ in range(rounds):
            for timer, count, times in zip(timers, counts, seen, strict=True):
                times.append(timer.timeit(count) / count * 1e6)
        print(
            case[0].ljust(32),
            *[f"{min(t):.2f} ({statistics.median(t):.2f})".rjust(18) for t in seen],
            *[f"{min(t) / min(seen[0]):.1f}".rjust(14) for t in seen[1:]],
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
