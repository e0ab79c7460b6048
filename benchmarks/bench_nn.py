"""Operations on rows: milliseconds a call, beside PyTorch where it is installed.

Runs of the libraries are interleaved, and minima and medians are shown.
`python benchmarks/bench_nn.py [rounds]`
"""

import importlib
import statistics
import sys
import time

SETUP = """
F = torch.nn.functional
x = torch.randn(10000, 1000)
y = torch.softmax(x, 1)
tall = torch.randn(1000, 10000)
w, b = torch.randn(1000), torch.randn(1000)
layer = torch.randn(10000, 1000, requires_grad=True)
weight, bias = w.clone().requires_grad_(), b.clone().requires_grad_()
few, few_classes = torch.randn(256, 10, requires_grad=True), torch.arange(256) % 10
many, many_classes = torch.randn(8192, 1000, requires_grad=True), torch.arange(8192)
many_classes = many_classes % 1000
images = torch.randn(64, 32, 28, 28, requires_grad=True)
scale, shift = torch.ones(32, requires_grad=True), torch.zeros(32, requires_grad=True)
def learn(loss, *leaves):
    for leaf in leaves:
        leaf.grad = None
    loss.backward()
"""
CASES = [
    ("softmax 10000 x 1000", "torch.softmax(x, 1)"),
    ("log_softmax 10000 x 1000", "torch.log_softmax(x, 1)"),
    ("logsumexp 10000 x 1000", "torch.logsumexp(x, 1)"),
    ("softmax of columns, 1000 x 10000", "torch.softmax(tall, 0)"),
    ("layer_norm 10000 x 1000", "F.layer_norm(x, (1000,), w, b)"),
    (
        "layer_norm, forward and backward",
        "learn(F.layer_norm(layer, (1000,), weight, bias).sum(), layer, weight, bias)",
    ),
    (
        "batch_norm 64 x 32 x 28 x 28, both",
        "y = F.batch_norm(images, None, None, scale, shift, True)\n"
        "learn(y.sum(), images, scale, shift)",
    ),
    ("cross_entropy 256 x 10, both", "learn(F.cross_entropy(few, few_classes), few)"),
    (
        "cross_entropy 8192 x 1000, both",
        "learn(F.cross_entropy(many, many_classes), many)",
    ),
    ("copy 10000 x 1000", "x.clone()"),
]


def scopes():
    for name in ("pydevtensor", "torch"):
        try:
            torch = importlib.import_module(name)
        except ImportError:
            continue
        scope = {"torch": torch}
        exec(SETUP, scope)
        yield name, scope


def main(rounds):
    found = list(scopes())
    if not found or found[0][0] != "pydevtensor":
        sys.exit("bench_nn: pydevtensor is not installed; run `make build` first")
    print("ms a call: minimum (median)".ljust(40), *[n.rjust(18) for n, _ in found])
    for label, source in CASES:
        code = compile(source, label, "exec")
        times = [[] for _ in found]
        for _ in range(rounds):
            for (_, scope), into in zip(found, times, strict=True):
                start = time.perf_counter()
                exec(code, scope)
                into.append(1e3 * (time.perf_counter() - start))
        cells = [f"{min(t):.3f} ({statistics.median(t):.3f})" for t in times]
        print(label.ljust(40), *[cell.rjust(18) for cell in cells])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
