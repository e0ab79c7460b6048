"""float16 and bfloat16 on one thread, beside PyTorch: conversions, sums, products.

python benchmarks/bench_half.py
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
        for dtype in (torch.float16, torch.bfloat16):
            wide = torch.rand(1_000_000)
            x = wide.to(dtype)
            a = torch.rand(256, 256).to(dtype)
            calls = {
                "narrow": lambda w=wide, d=dtype: w.to(d),
                "widen": lambda x=x: x.float(),
                "a + b": lambda x=x: x + x,
                "exp": lambda x=x, t=torch: t.exp(x),
                "sum": lambda x=x: x.sum(),
                "256 cubed": lambda a=a: a @ a,
            }
            row = "   ".join(f"{k} {best(call):7.1f} us" for k, call in calls.items())
            print(f"{name:12} {dtype!s:15} {row}")


if __name__ == "__main__":
    main()
