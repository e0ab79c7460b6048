"""Saving and loading 100 MiB in 100 tensors, beside PyTorch where it is installed.

python benchmarks/bench_checkpoint.py [folder for the file]
"""

import importlib
import os
import sys
import tempfile
import time


def best(call, times=5):
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds) * 1e3


def main():
    folder = next(filter(os.path.isdir, sys.argv[1:]), None)
    for name in ("pydevtensor", "torch"):
        try:
            torch = importlib.import_module(name)
        except ImportError:
            continue
        value = {f"w{i}": torch.ones(1 << 18) for i in range(100)}
        with tempfile.TemporaryDirectory(dir=folder) as place:
            path = os.path.join(place, "x.pt")
            save = best(lambda value=value, path=path, t=torch: t.save(value, path))
            load = best(lambda path=path, t=torch: t.load(path))
        print(f"{name:12} save {save:6.0f} ms   load {load:6.0f} ms")


if __name__ == "__main__":
    main()
