"""The host's own time of operations on a GPU: `python benchmarks/bench_host_time.py`

The CUDA backend is built by nvcc and linked with a CUDA runtime whose functions do
nothing, in no time (free_runtime.cpp). So no GPU is needed, and what is timed is this
library alone. The last column counts the calls of the runtime in one operation.
"""

import ctypes
import sys
import timeit
from pathlib import Path

from compare import rounds

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools" / "build"))
import cuda
import objects
import products

# A label, and a statement.
CASES = [
    ("a + b", "a + b"),
    ("a.add_(b)", "a.add_(b)"),
    ("a + 1.0", "a + 1.0"),
    ("a.exp()", "a.exp()"),
    ("a.sum()", "a.sum()"),
    ("a.copy_(b)", "a.copy_(b)"),
    ("empty(3)", "torch.empty(3, device='cuda')"),
    ("empty_like(a)", "torch.empty_like(a)"),
    ("event.record()", "event.record()"),
    ("a + b of 1e6", "large + large"),
    ("a + row", "large + row"),
    ("a + b on another stream", "with stream: a + b"),
]


def free_backend():
    """A `_cuda.so` with the runtime that does nothing; None without nvcc."""
    plan = products.Plan.from_environment()
    nvcc, why = cuda.choose(plan.settings)
    if not nvcc:
        print(f"not run, as it needs nvcc: {why}")
        return None
    (library,) = objects.build([plan.cuda(nvcc, free=True)], print)
    return library


def calls_of(library):
    """How often each function of the runtime was called so far."""
    found = {}
    form = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int64)
    library.dt_free_runtime_visit(form(lambda n, c: found.update({n.decode(): c})))
    return found


def main():
    path = free_backend()
    if not path:
        return
    import pydevtensor as torch

    torch._C._find_libraries(str(path.parent), "")
    scope = {
        "torch": torch,
        "a": torch.ones(3, device="cuda"),
        "b": torch.ones(3, device="cuda"),
        "large": torch.empty(1000, 1000, device="cuda"),
        "row": torch.empty(1000, device="cuda"),
        "event": torch.cuda.Event(),
        "stream": torch.cuda.Stream(),
    }
    library = ctypes.CDLL(str(path))
    for label, code in CASES:
        timer, times = timeit.Timer(code, globals=scope), []
        timer.timeit(100)
        before = calls_of(library)
        timer.timeit(1)
        after = calls_of(library)
        for _ in range(rounds(50)):
            times.append(timer.timeit(2000) / 2000 * 1e9)
        counted = {k: after[k] - before[k] for k in after if after[k] > before[k]}
        names = ", ".join(
            f"{n} {name}" if n > 1 else name for name, n in counted.items()
        )
        print(f"{label:26}{min(times):8.0f} ns   {names}", flush=True)


if __name__ == "__main__":
    main()
