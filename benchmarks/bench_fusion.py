"""Chains with torch.fused() and without: `python benchmarks/bench_fusion.py [rounds]`

The limit is the time of a copy of as many bytes as the fused chain reads and writes. MB
are those bytes, and those of the operations one by one. PyTorch runs the operations one
by one too, where it is installed. Rounds are interleaved; shown are minima in
milliseconds: of the clock, or with `--cpu` of all threads together, which other
programs on the machine change less.
"""

import sys
import time

from compare import libraries, rounds

from pydevtensor import _C

N = 10_000_000


def cases(torch):
    torch.manual_seed(0)
    a, b, c = (torch.randn(N) for _ in range(3))
    images = torch.randint(0, 256, (64, 3, 224, 224), dtype=torch.uint8)
    mean, std = torch.rand(3, 1, 1), torch.rand(3, 1, 1) + 0.5
    x, r, w = torch.randn(10_000, 1000), torch.randn(10_000, 1000), torch.ones(1000)
    scores, mask = torch.randn(16, 8, 256, 256), torch.rand(256, 256) > 0.5
    tanh, sigmoid, inf = torch.tanh, torch.sigmoid, float("inf")
    layer_norm = torch.nn.functional.layer_norm

    def gelu(a):
        return 0.5 * a * (1 + tanh(0.8 * (a + 0.044715 * a * a * a)))

    yield "relu(a*b+a)", lambda: torch.relu(a * b + a)
    yield "gelu", lambda: gelu(a)
    yield "swiglu", lambda: a * sigmoid(a) * b
    yield "uint8 images", lambda: (images.float() / 255 - mean) / std
    yield "Adam", lambda: c - 0.1 * (0.9 * a + 0.1 * c) / ((b * b).sqrt() + 1e-8)
    yield "layer norm", lambda: layer_norm(x + r, (1000,), w, w)
    yield "gelu, sum", lambda: gelu(a).sum()
    yield "masked softmax", lambda: (scores * 0.125).masked_fill(mask, -inf).softmax(-1)
    yield "mse loss", lambda: ((a - b) ** 2).mean()
    yield "norm", lambda: (a - b).norm()


def bytes_of(fused):
    """Megabytes that the chains of a function move, and the steps one by one."""
    reports = []
    _C._fusion_listen(reports)
    kept = fused()
    _C._fusion_listen(None)
    del kept
    return sum(report[2] for report in reports), sum(report[3] for report in reports)


def main():
    found = libraries("pydevtensor", "torch")
    ours = found["pydevtensor"]
    clock = time.process_time if "--cpu" in sys.argv else time.perf_counter

    def seconds(work):
        begin = clock()
        work()
        return clock() - begin

    names = ["fused", "limit", "one by one", *[*found][1:]]
    print("ms".ljust(16), *(f"{t:>10}" for t in (*names, "MB", "one by one")))
    for (label, work), *others in zip(*map(cases, found.values()), strict=True):
        fused = ours.fused()(work)
        moved, apart = bytes_of(fused)
        copied = ours.zeros(moved // 8)
        works = fused, copied.clone, work, *(other for _, other in others)
        times = [list(map(seconds, works)) for _ in range(rounds(15))]
        least = [f"{min(column) * 1e3:10.2f}" for column in zip(*times, strict=True)]
        print(label.ljust(16), *least, f"{moved / 1e6:10.0f}", f"{apart / 1e6:10.0f}")


if __name__ == "__main__":
    main()
