"""What the clock of a simulated card predicts, beside what a real card takes.

    bench_clock.py [--card NAME] [--seconds N]

Prints microseconds of some thirty programs on the card, by the clock (docs/clock.md).
On a machine with a real GPU the card is that one unless another is named, the programs
are measured too, and the ratio of both is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pydevtensor as torch

F = torch.nn.functional
# What drivers call the cards of the table.
NAMES = {
    r"\bT4\b": "T4",
    r"V100": "V100",
    r"RTX 3090\b": "RTX 3090",
    r"RTX 4090\b": "RTX 4090",
    r"\bA10\b": "A10",
    r"\bL4\b": "L4",
    r"\bL40S\b": "L40S",
    r"A100.*40GB": "A100 40GB",
    r"A100.*80GB": "A100 80GB",
    r"H100 PCIe": "H100 PCIe",
    r"H100.*HBM3": "H100 SXM",
    r"\bH200\b": "H200",
    r"\bB200\b": "B200",
}


def programs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each with its name; a program makes its inputs before it is given."""

    def ones(*shape: int, **more: Any) -> torch.Tensor:
        return torch.ones(*shape, device="cuda", **more)

    for n in (1000, 100_000, 4_000_000):
        x = ones(n)
        yield f"add, {n} elements", lambda x=x: x + x
    x, m = ones(4_000_000), ones(2000, 2000)
    half = x.half()
    yield "add, 4000000 of float16", lambda: half + half
    yield "exp", lambda: x.exp()
    yield "fill", lambda: x.fill_(1)
    yield "copy", lambda: x.clone()
    yield "to float16", lambda: x.half()
    yield "transpose", lambda: m.t().contiguous()
    yield "sum", lambda: x.sum()
    yield "sum of rows", lambda: m.sum(1)
    yield "sum of columns", lambda: m.sum(0)
    yield "softmax of rows", lambda: m.softmax(1)
    yield "layer norm of rows", lambda: F.layer_norm(m, (2000,))
    yield "cumsum of rows", lambda: m.cumsum(1)
    small = ones(256, 1024)
    yield "sort of 256 rows of 1024", lambda: small.sort()
    index = torch.arange(0, 2000, 2, device="cuda")
    yield "index_select of 1000 rows", lambda: m.index_select(0, index)
    yield "rand", lambda: torch.rand(1_000_000, device="cuda")
    for n in (128, 512, 1024):
        a = ones(n, n)
        yield f"product, {n}", lambda a=a: a @ a
    a = ones(1024, 1024, dtype=torch.float16)
    yield "product, 1024 of float16", lambda: a @ a
    b = ones(64, 128, 128)
    yield "64 products of 128", lambda: b @ b
    v = ones(2000)
    yield "matrix by vector, 2000", lambda: m @ v
    image, weight = ones(4, 16, 32, 32), ones(16, 16, 3, 3)
    yield "convolution", lambda: F.conv2d(image, weight, padding=1)
    yield "max pooling", lambda: F.max_pool2d(image, 2)
    q = ones(1, 4, 128, 32)
    yield "attention", lambda: F.scaled_dot_product_attention(q, q, q)
    page = torch.ones(4_000_000)
    pinned, back = page.pin_memory(), page.pin_memory()
    yield "16 MB to the card, pageable", lambda: x.copy_(page)
    yield "16 MB to the card, pinned", lambda: x.copy_(pinned, non_blocking=True)
    yield "16 MB to the host, pinned", lambda: back.copy_(x, non_blocking=True)
    one = ones(1)
    yield "item of one element", lambda: one.item()

    def hundred() -> None:
        y = one
        for _ in range(100):
            y = y + one

    yield "100 additions of one element", hundred


def microseconds(work: Callable[[], Any], rounds: int) -> float:
    """The median of rounds, each from the call to the end of its work."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times)


def times(rounds: int, seconds: float) -> dict[str, float]:
    """The microseconds of each program on cuda:0, as far as the seconds last."""
    limit = time.monotonic() + seconds
    found = {}
    for name, work in programs():
        if time.monotonic() > limit:
            break
        work()
        found[name] = microseconds(work, rounds)
    return found


def predicted(card: str, seconds: float) -> dict[str, float]:
    """By the clock, in a process of its own."""
    chosen = {"PYDEVTENSOR_SIM_GPUS": "1", "PYDEVTENSOR_SIM_CARD": card}
    done = subprocess.run(
        [sys.executable, "-P", __file__, "--times", "--seconds", str(seconds)],
        env={**os.environ, **chosen},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def card_of(name: str) -> str | None:
    """The card of the table that a driver calls so."""
    for pattern, card in NAMES.items():
        if re.search(pattern, name):
            return card
    return None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--card", help="a card of docs/clock.md")
    parser.add_argument("--seconds", type=float, default=60, help="for each of both")
    parser.add_argument("--times", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.times:
        print(json.dumps(times(2, chosen.seconds)))
        return
    real = torch.cuda.is_available() and not torch.cuda.is_simulated()
    card = chosen.card
    if torch.cuda.is_available():
        name = torch.cuda.get_device_name(0)
        print(f"ran on cuda:0 {name} ({'real' if real else 'simulated'})", flush=True)
        card = card or (card_of(name) if real else None)
    if card is None and real:
        print("docs/clock.md has no such card: nothing to compare")
        return
    if card is None:
        sys.exit(
            "bench_clock.py: no card of docs/clock.md is here; name one: --card T4"
        )
    guess = predicted(card, chosen.seconds)
    taken = times(20, chosen.seconds) if real else {}
    print(
        f"{'microseconds on ' + card:32} {'clock':>10} {'real':>10} {'clock/real':>10}"
    )
    for name, value in guess.items():
        line = f"{name:32} {value:10.1f}"
        if name in taken:
            line += f" {taken[name]:10.1f} {value / taken[name]:10.2f}"
        print(line)


if __name__ == "__main__":
    main()
