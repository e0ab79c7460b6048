"""Choosing elements, and functions of three tensors, beside NumPy and PyTorch.

python benchmarks/bench_index.py
"""

import statistics
import time

import numpy as np

import pydevtensor

LIBRARIES = {"pydevtensor": pydevtensor}
try:
    import torch

    LIBRARIES["torch"] = torch
except ImportError:
    pass

ROUNDS, ROUND = 9, 0.03


def cases(library):
    """name: call, for one of the tensor libraries."""
    generator = np.random.default_rng(0)
    table = library.from_numpy(generator.random((10000, 64), dtype=np.float32))
    rows = library.from_numpy(generator.integers(0, 10000, 20000))
    columns = library.from_numpy(generator.integers(0, 64, (10000, 32)))
    mask = library.from_numpy(generator.random((10000, 64)) < 0.3)
    other = library.from_numpy(generator.random((10000, 64), dtype=np.float32))
    return {
        "index_select, 20000 rows of 64": lambda: table.index_select(0, rows),
        "table[rows], 20000 rows of 64": lambda: table[rows],
        "gather, 10000 x 32": lambda: library.gather(table, 1, columns),
        "masked_fill, 640000": lambda: table.masked_fill(mask, 0.0),
        "table[mask], 640000": lambda: table[mask],
        "clamp, 640000": lambda: table.clamp(0.2, 0.8),
        "lerp, 640000": lambda: library.lerp(table, other, 0.3),
        "addcmul, 640000": lambda: library.addcmul(table, other, other),
        "einsum bij,bjk->bik, 64 of 32": lambda: library.einsum(
            "bij,bjk->bik",
            table[:1024].reshape(64, 32, 32),
            other[:1024].reshape(64, 32, 32),
        ),
    }


def numpy_cases():
    generator = np.random.default_rng(0)
    table = generator.random((10000, 64), dtype=np.float32)
    rows = generator.integers(0, 10000, 20000)
    columns = generator.integers(0, 64, (10000, 32))
    mask = generator.random((10000, 64)) < 0.3
    return {
        "index_select, 20000 rows of 64": lambda: table.take(rows, 0),
        "table[rows], 20000 rows of 64": lambda: table[rows],
        "gather, 10000 x 32": lambda: np.take_along_axis(table, columns, 1),
        "masked_fill, 640000": lambda: np.where(mask, np.float32(0), table),
        "table[mask], 640000": lambda: table[mask],
        "clamp, 640000": lambda: table.clip(0.2, 0.8),
    }


def one_round(call):
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < ROUND:
        call()
        calls += 1
    return (time.perf_counter() - start) / calls * 1e6


def main():
    sets = {"numpy": numpy_cases()}
    sets.update((name, cases(library)) for name, library in LIBRARIES.items())
    print(f"{'us, minimum (median)':34}", *(f"{name:>20}" for name in sets))
    for case in sets["pydevtensor"]:
        calls = {name: each[case] for name, each in sets.items() if case in each}
        times = {name: [] for name in calls}
        for call in calls.values():
            call()
        for _ in range(ROUNDS):
            for name, call in calls.items():
                times[name].append(one_round(call))
        cells = (
            f"{min(times[name]):9.1f} ({statistics.median(times[name]):8.1f})"
            if name in times
            else "-"
            for name in sets
        )
        print(f"{case:34}", *(f"{cell:>20}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
