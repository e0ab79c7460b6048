"""Training steps of small networks on a simulated GPU and on the CPU: milliseconds.

python benchmarks/bench_simulator.py [seconds a case]

A step gives its loss back, so nothing is left in the queue. Rounds of both devices are
interleaved, and the least time counts.
"""

import os
import time

os.environ.setdefault("PYDEVTENSOR_SIM_GPUS", "1")

from bench_programs import lenet_of
from compare import rounds

import pydevtensor as torch

nn = torch.nn


def block(channels, out):
    return nn.Conv2d(channels, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def lenet():
    return lenet_of(nn)


def convolutions():
    layers = (*block(3, 16), *block(16, 16), *block(16, 16))
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)
    )


def encoder():
    return nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)


# The most that the simulated GPU's time may be of the CPU's, by what we aim at.
CASES = [
    ("MLP 784-256-10, batch 256", mlp, (256, 784), 2.5),
    ("LeNet, batch 64, 28 x 28", lenet, (64, 1, 28, 28), 4),
    ("3 convolutions, batch norm, batch 16, 32 x 32", convolutions, (16, 3, 32, 32), 5),
    ("Transformer encoder layer of 64, batch 16, 32 tokens", encoder, (16, 32, 64), 8),
]


def learner(make, shape, device):
    torch.manual_seed(0)
    net, x = make().to(device), torch.randn(shape).to(device)
    classes = torch.zeros(shape[0], dtype=torch.int64, device=device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        found = net(x)
        if found.ndim == 2:
            loss = nn.functional.cross_entropy(found, classes)
        else:
            loss = found.square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def main():
    limit = rounds(3)
    print(f"{torch.get_num_threads()} threads; {limit} seconds a case\n")
    for title, make, shape, goal in CASES:
        steps = {name: learner(make, shape, name) for name in ("cpu", "cuda")}
        best = dict.fromkeys(steps, float("inf"))
        end = time.perf_counter() + limit
        while time.perf_counter() < end:
            for name, step in steps.items():
                start = time.perf_counter()
                step()
                best[name] = min(best[name], time.perf_counter() - start)
        ratio = best["cuda"] / best["cpu"]
        row = "  ".join(f"{name} {t * 1e3:7.2f} ms" for name, t in best.items())
        print(f"{title:54} {row}  ratio {ratio:4.1f}  goal {goal}")


if __name__ == "__main__":
    main()
