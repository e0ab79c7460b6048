"""Saving and loading 100 MiB in 100 tensors, beside PyTorch: milliseconds.

python benchmarks/bench_checkpoint.py [rounds]
"""

import os
import tempfile

from compare import compare, libraries

CASES = [("save", "torch.save(value, path)"), ("load", "torch.load(path)")]


def main():
    with tempfile.TemporaryDirectory() as folder:
        scopes = {}
        for name, torch in libraries("pydevtensor", "torch").items():
            value = {f"w{i}": torch.ones(1 << 18) for i in range(100)}
            path = os.path.join(folder, f"{name}.pt")
            scopes[name] = {"torch": torch, "value": value, "path": path}
        compare(CASES, scopes, "ms", 5)


if __name__ == "__main__":
    main()
