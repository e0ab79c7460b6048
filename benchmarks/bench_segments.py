"""The memory that training reserves on a GPU, by ordinary and by expandable segments.

The figures of docs/devices.md ("Settings of the allocator").
`python benchmarks/bench_segments.py`; on a machine without a GPU a T4 is simulated.
"""

import os
import random
import subprocess
import sys

import pydevtensor as torch
from pydevtensor import nn

STEPS = 15
T4 = {"PYDEVTENSOR_SIM_GPUS": "1", "PYDEVTENSOR_SIM_CARD": "t4"}


def train(kind):
    """One line: what tensors had at most, and what was reserved at most, in MiB."""
    layers = [m for _ in range(6) for m in (nn.Linear(64, 64), nn.GELU())]
    net = nn.Sequential(*layers).to("cuda")
    optimizer = torch.optim.Adam(net.parameters())
    draw = random.Random(3)
    for step in range(STEPS):
        growing = 20_000 + 4_000 * step
        rows = growing if kind == "growing" else draw.randrange(1_000, 80_000)
        optimizer.zero_grad()
        net(torch.ones(rows, 64, device="cuda")).square().mean().backward()
        optimizer.step()
    stats = torch.cuda.memory_stats()
    peaks = (stats[f"{what}_bytes.all.peak"] for what in ("allocated", "reserved"))
    print(*(f"{peak / 2**20:12.0f}" for peak in peaks))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        train(sys.argv[1])
        sys.exit()
    simulated = {} if torch.cuda.is_available() else T4
    print(f"{'batches':10} {'segments':10} {'allocated':>12} {'reserved':>12}   (MiB)")
    for kind in ("growing", "random"):
        for name, grow in (("ordinary", False), ("growing", True)):
            print(f"{kind:10} {name:10} ", end="", flush=True)
            subprocess.run(
                [sys.executable, __file__, kind],
                env={
                    **os.environ,
                    **simulated,
                    "PYTORCH_ALLOC_CONF": f"expandable_segments:{grow}",
                },
                check=True,
            )
