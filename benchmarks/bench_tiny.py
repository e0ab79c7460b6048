"""Tiny operations: nanoseconds a call. `python benchmarks/bench_tiny.py [rounds]`"""

from compare import compare, libraries

# A label, the expression for tensors, and the one for NumPy.
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


def main():
    scopes = {}
    for name, lib in libraries().items():
        a, b = lib.ones(3, dtype=lib.float32), lib.zeros(3, dtype=lib.float32)
        m = lib.ones((4, 4), dtype=lib.float32)
        scopes[name] = {"lib": lib, "np": lib, "a": a, "b": b, "m": m}
    compare(CASES, scopes, "ns", 25)


if __name__ == "__main__":
    main()
