"""Chains with torch.fused() and without: `python benchmarks/bench_fusion.py [rounds]`

The third time is that of a copy of as many bytes as the fused chain reads and writes:
the memory's limit. Rounds are interleaved; shown are minima in milliseconds.
"""

import timeit

from compare import rounds

import pydevtensor as torch
from pydevtensor import _C

N = 10_000_000


def cases():
    a, b, c = (torch.randn(N) for _ in range(3))
    images = torch.randint(0, 256, (64, 3, 224, 224), dtype=torch.uint8)
    mean, std = torch.rand(3, 1, 1), torch.rand(3, 1, 1) + 0.5
    tanh, sigmoid = torch.tanh, torch.sigmoid
    yield "relu(a*b+a)", lambda: torch.relu(a * b + a)
    yield "gelu", lambda: 0.5 * a * (1 + tanh(0.8 * (a + 0.044715 * a * a * a)))
    yield "swiglu", lambda: a * sigmoid(a) * b
    yield "uint8 images", lambda: (images.float() / 255 - mean) / std
    yield "Adam", lambda: c - 0.1 * (0.9 * a + 0.1 * c) / ((b * b).sqrt() + 1e-8)


def main():
    print("ms".ljust(16), *(f"{t:>10}" for t in ("one by one", "fused", "limit", "MB")))
    for label, work in cases():
        reports = []
        _C._fusion_listen(reports)
        fused = torch.fused()(work)
        kept = fused()
        _C._fusion_listen(None)
        del kept
        moved = sum(report[2] for report in reports)
        copied = torch.zeros(moved // 8)
        works = work, fused, copied.clone
        times = [[timeit.timeit(w, number=1) for w in works] for _ in range(rounds(15))]
        least = [min(column) * 1e3 for column in zip(*times, strict=True)]
        print(label.ljust(16), *(f"{t:10.2f}" for t in least), f"{moved / 1e6:10.0f}")


if __name__ == "__main__":
    main()
