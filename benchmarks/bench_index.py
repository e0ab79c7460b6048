"""Indexing, ternary functions and einsum: microseconds a call.

python benchmarks/bench_index.py [rounds]
"""

import numpy as np
from compare import compare, libraries

CASES = [
    (
        "index_select, 20000 rows of 64",
        "table.index_select(0, rows)",
        "table.take(rows, 0)",
    ),
    ("table[rows], 20000 rows of 64", "table[rows]", "table[rows]"),
    (
        "gather, 10000 x 32",
        "lib.gather(table, 1, columns)",
        "lib.take_along_axis(table, columns, 1)",
    ),
    (
        "masked_fill, 640000",
        "table.masked_fill(mask, 0.0)",
        "lib.where(mask, lib.float32(0), table)",
    ),
    ("table[mask], 640000", "table[mask]", "table[mask]"),
    ("clamp, 640000", "table.clamp(0.2, 0.8)", "table.clip(0.2, 0.8)"),
    ("lerp, 640000", "lib.lerp(table, other, 0.3)"),
    ("addcmul, 640000", "lib.addcmul(table, other, other)"),
    (
        "einsum bij,bjk->bik, 64 of 32",
        "lib.einsum('bij,bjk->bik', left, right)",
        "lib.einsum('bij,bjk->bik', left, right)",
    ),
]


def main():
    rng = np.random.default_rng(0)
    data = {
        "table": rng.random((10000, 64), dtype=np.float32),
        "other": rng.random((10000, 64), dtype=np.float32),
        "rows": rng.integers(0, 10000, 20000),
        "columns": rng.integers(0, 64, (10000, 32)),
        "mask": rng.random((10000, 64)) < 0.3,
    }
    data["left"] = data["table"][:1024].reshape(64, 32, 32)
    data["right"] = data["other"][:1024].reshape(64, 32, 32)
    scopes = {
        name: {"lib": lib, **{k: lib.from_numpy(v) for k, v in data.items()}}
        for name, lib in libraries("pydevtensor", "torch").items()
    }
    compare(CASES, {**scopes, "numpy": {"lib": np, **data}}, repeat=9, least=0.03)


if __name__ == "__main__":
    main()
