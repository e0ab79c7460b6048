"""Chains with torch.fused() and without: `python benchmarks/bench_fusion.py [rounds]`

`--card h100` counts instead, on a simulated GPU: kernels that are started, the bytes
that they read and write, and microseconds by the clock of that card (docs/clock.md),
which for a chain knows the bytes, and not what the kernel's steps take.

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


def cases(torch, device="cpu", less=1):
    torch.manual_seed(0)
    a, b, c = (torch.randn(N // less) for _ in range(3))
    images = torch.randint(0, 256, (64, 3, 224, 224 // less), dtype=torch.uint8)
    mean, std = torch.rand(3, 1, 1), torch.rand(3, 1, 1) + 0.5
    x, r = (torch.randn(10_000 // less, 1000) for _ in range(2))
    w = torch.ones(1000)
    scores, mask = torch.randn(16, 8, 256 // less, 256), torch.rand(256 // less, 256)
    a, b, c, images, mean, std, x, r, w, scores, mask = (
        t.to(device) for t in (a, b, c, images, mean, std, x, r, w, scores, mask > 0.5)
    )
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


def gpt_step(torch, device="cpu", words=64, width=64):
    """A training step of a small GPT's block, with the parts that are not products
    written out."""
    torch.manual_seed(0)
    heads = 4
    norm, last = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
    ways = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
    inner = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
    net = torch.nn.ModuleList([norm, last, *ways, *inner]).to(device)
    data = torch.randn(2, words, width).to(device)
    optimizer = torch.optim.AdamW(net.parameters())

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.044715 * x * x * x)))

    def step():
        qkv = ways[0](norm(data)).view(2, words, 3, heads, -1).transpose(1, 3)
        y = torch.nn.functional.scaled_dot_product_attention(
            *qkv.unbind(2), is_causal=True
        )
        x = data + ways[1](y.transpose(1, 2).reshape(2, words, width))
        x = x + inner[1](gelu(inner[0](last(x))))
        loss = ((x - data) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def count(torch, work):
    """Kernels, megabytes, and microseconds of the card and of all, when a function runs
    again."""
    work()
    with torch.profiler.profile() as profile:
        work()
        torch.cuda.synchronize()
    busy = [event for event in profile.events() if event.device_time > 0]
    moved = sum(event.bytes for event in busy) / 1e6
    kernels = torch.cuda.sim_counters()["launches"]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    kernels = torch.cuda.sim_counters()["launches"] - kernels
    time = begin.elapsed_time(end) * 1e3
    return kernels, moved, sum(event.device_time for event in busy), time


def main_of_card(card):
    import pydevtensor as torch

    torch.cuda.simulate(1, card=card, host="fixed")
    print("".ljust(16), *(f"{t:>10}" for t in ("kernels", "MB", "card us", "us") * 2))
    works = [*cases(torch, "cuda", 2), ("GPT block step", gpt_step(torch, "cuda"))]
    for label, work in works:
        numbers = *count(torch, torch.fused()(work)), *count(torch, work)
        print(label.ljust(16), *(f"{number:10.6g}" for number in numbers))


def main():
    if "--card" in sys.argv:
        return main_of_card(sys.argv[sys.argv.index("--card") + 1])
    found = libraries("pydevtensor", "torch")
    ours = found["pydevtensor"]
    clock = time.process_time if "--cpu" in sys.argv else time.perf_counter

    def seconds(work):
        begin = clock()
        work()
        return clock() - begin

    names = ["fused", "limit", "one by one", *[*found][1:]]
    print("ms".ljust(16), *(f"{t:>10}" for t in (*names, "MB", "one by one")))
    by_library = [
        [*cases(torch), ("GPT block step", gpt_step(torch, words=256, width=256))]
        for torch in found.values()
    ]
    for (label, work), *others in zip(*by_library, strict=True):
        fused = ours.fused()(work)
        moved, apart = bytes_of(fused)
        copied = ours.zeros(moved // 8)
        works = fused, copied.clone, work, *(other for _, other in others)
        times = [list(map(seconds, works)) for _ in range(rounds(15))]
        least = [f"{min(column) * 1e3:10.2f}" for column in zip(*times, strict=True)]
        print(label.ljust(16), *least, f"{moved / 1e6:10.0f}", f"{apart / 1e6:10.0f}")


if __name__ == "__main__":
    main()
