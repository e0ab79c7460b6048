"""One launch of each kind of kernel, for a profiler. The inputs are copies from
the host, which launch none."""

import sys

import numpy as np

import pydevtensor as torch

N = 1 << 24  # elements: 64 MiB of float32


def main():
    if not torch.cuda.is_available():
        sys.exit(f"kernels.py: {torch.cuda.why_unavailable()}")
    kind = "simulated" if torch.cuda.is_simulated() else "real"
    print(f"ran on cuda:0 {torch.cuda.get_device_name(0)} ({kind})", flush=True)
    n = 1 << 12 if kind == "simulated" else N
    source = np.random.default_rng(0).random(n, dtype=np.float32)
    x = torch.from_numpy(source).to("cuda")
    m, row = x.reshape(-1, 1024), x[:1024]
    index = torch.from_numpy(np.arange(n // 1024)[::-1].copy()).to("cuda")
    names = {
        "add": lambda: x + x,
        "add a row": lambda: m + row,
        "add a tail": lambda: x[: n - 3] + x[: n - 3],
        "transpose": lambda: m.t().contiguous(),
        "to half": lambda: x.half(),
        "sum": lambda: x.sum(),
        "sum of rows": lambda: m.sum(1),
        "argmax of rows": lambda: m.argmax(1),
        "softmax": lambda: m.softmax(-1),
        "layer norm": lambda: torch.nn.functional.layer_norm(m, (1024,)),
        "cumsum": lambda: m.cumsum(-1),
        "sort": lambda: m.sort(),
        "index_select": lambda: m.index_select(0, index),
        "rand": lambda: torch.rand(n, device="cuda"),
        "gcd": lambda: index.gcd(index + 6),
        "digamma": lambda: x.digamma(),
        "dropout": lambda: torch.nn.functional.dropout(x),
    }
    for name, launch in names.items():
        print(f"--- {name}", flush=True)
        launch()
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
