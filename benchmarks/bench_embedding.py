"""Choosing 1600 rows of 64 from a table of 10000, one thread, beside PyTorch.

python benchmarks/bench_embedding.py
"""

import importlib
import time


def best(call, times=7):
    """Microseconds of one call: the best of several rounds of some 50 ms."""
    call()
    found = []
    for _ in range(times):
        start, calls = time.perf_counter(), 0
        while time.perf_counter() - start < 0.05:
            call()
            calls += 1
        found.append((time.perf_counter() - start) / calls)
    return min(found) * 1e6


def main():
    for name in ("pydevtensor", "torch"):
        try:
            torch = importlib.import_module(name)
        except ImportError:
            continue
        torch.set_num_threads(1)
        embedding = torch.nn.functional.embedding
        weight = torch.randn(10000, 64)
        numbers = torch.randint(0, 10000, (32, 50))
        few, small = torch.tensor([1, 2]), torch.randn(10, 4)
        forward = best(lambda e=embedding, n=numbers, w=weight: e(n, w))
        tiny = best(lambda e=embedding, n=few, w=small: e(n, w))
        weight.requires_grad_()

        def learn(e=embedding, n=numbers, w=weight):
            w.grad = None
            e(n, w).sum().backward()

        both = best(learn)
        print(
            f"{name:12} forward {forward:7.1f} us   with backward {both:7.1f} us   "
            f"2 rows of 4 {tiny:5.2f} us"
        )


if __name__ == "__main__":
    main()
