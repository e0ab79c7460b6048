"""cat, stack, flip, roll, repeat: microseconds a call.

"copy" is the yardstick: it moves the bytes of the large cases once.
`python benchmarks/bench_cat.py [rounds]`
"""

from compare import compare, libraries

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


def main():
    scopes = {}
    for name, lib in libraries().items():
        cast = "astype" if name == "numpy" else "to"
        scope = scope_of(
            lambda shape, lib=lib: lib.ones(shape, dtype=lib.float32),
            lambda x, lib=lib, cast=cast: getattr(x, cast)(lib.int32),
        )
        scopes[name] = {"lib": lib, "np": lib, **scope}
    compare(CASES, scopes)


if __name__ == "__main__":
    main()
