"""Sizes of real programs, too large for a simulator and for tests on the CPU: long
attention, grids of several waves, and more than 2^31 elements where there is memory.

Results are known from a formula, or compared with the same in other operations. On a
simulated GPU the sizes are small.
"""

import sys

import pydevtensor as torch

F = torch.nn.functional


def free_bytes():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


def near(theirs, ours, tolerance, what=""):
    """Of all elements together: ||theirs - ours|| <= tolerance * ||ours||."""
    off = (theirs.double() - ours.double()).norm() / ours.double().norm()
    assert off.item() <= tolerance, f"{what}: off by {off.item()} of the norm"


def plain_attention(q, k, v, causal):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        n = q.shape[-2]
        later = torch.ones(n, n, device=q.device, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    return scores.softmax(-1) @ v


def attention(length):
    """Forwards and backwards beside products with a softmax between."""
    for causal in (False, True):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2)):
            made = [
                torch.randn(1, 2, length, 64, device="cuda").to(dtype) for _ in "qkv"
            ]
            given = [x.requires_grad_() for x in made]
            wide = [x.detach().double().requires_grad_() for x in made]
            y = F.scaled_dot_product_attention(*given, is_causal=causal)
            expected = plain_attention(*wide, causal)
            weights = torch.randn(y.shape, device="cuda").to(dtype)
            (y * weights).sum().backward()
            (expected * weights.double()).sum().backward()
            what = f"attention of {length} words, {dtype}, causal={causal}"
            near(y, expected, tolerance, what)
            for name, x, w in zip("qkv", given, wide, strict=True):
                near(x.grad, w.grad, tolerance, f"{what}: gradient of {name}")


def waves(n):
    """Grids of more blocks than run at once."""
    i = torch.arange(n, device="cuda")
    assert i.sum().item() == n * (n - 1) // 2
    assert i.argmax().item() == n - 1 and (-i).argmin().item() == n - 1
    x = (i % 1000).float()
    assert (x + x).max().item() == 2 * min(999, n - 1)
    near(x.mean().reshape(1), x.double().mean().reshape(1), 1e-6)
    ones = torch.ones(n, device="cuda")
    assert ones.cumsum(0, dtype=torch.float64)[-1].item() == n
    order = (i * 7919 % n).int().sort().values
    assert (order[1:] >= order[:-1]).all().item()
    assert (i % 1000 == 7).nonzero().shape[0] == (n - 8) // 1000 + 1
    rows = x[: n // 1000 * 1000].reshape(-1, 1000)
    near(rows.softmax(-1).sum(-1), torch.ones(rows.shape[0], device="cuda"), 1e-5)
    assert torch.equal(rows.mT.contiguous().mT, rows)
    assert torch.equal(rows.index_select(0, i[: len(rows)].flip(0)).flip(0), rows)
    table = torch.zeros(100, device="cuda").index_add_(0, i % 100, ones)
    assert abs(table.sum().item() - n) <= 1e-6 * n


def beyond(n):
    """More elements than an int counts."""
    last = n - 1
    x = torch.zeros(n, dtype=torch.int8, device="cuda")
    places = torch.tensor([0, n // 2, last], device="cuda")
    x[places] = 1
    assert x.sum().item() == 3 and x[last].item() == 1
    assert x.argmax().item() == 0 and x[1:].argmax().item() == n // 2 - 1
    assert (x + x).sum().item() == 6
    assert x.index_select(0, places).tolist() == [1, 1, 1]
    assert x.bool().nonzero().flatten().tolist() == places.tolist()
    assert x.half().sum().item() == 3
    square = x[: last // 8 * 8].reshape(8, -1)
    assert square.mT.contiguous()[-1].tolist() == square[:, -1].tolist()
    ones, channels = square.sum().item(), square[None]
    assert F.max_pool1d(channels.float(), 2).sum().item() == ones
    pairs = torch.ones(8, 1, 2, dtype=torch.half, device="cuda")
    y = F.conv1d(channels.half(), pairs, stride=2, groups=8)
    assert y.sum().item() == ones and y.max().item() == 1
    assert torch.cat((x[last:], x))[n].item() == 1
    torch.use_deterministic_algorithms(True)
    x[places[[0, 2, 2]]] = torch.tensor([3, 4, 5], dtype=torch.int8, device="cuda")
    torch.use_deterministic_algorithms(False)
    assert x[places].tolist() == [3, 1, 5]
    x.fill_(2)
    assert x[places].tolist() == [2, 2, 2]
    assert x.sum().item() == 2 * n


def main():
    if not torch.cuda.is_available():
        sys.exit(f"large.py: {torch.cuda.why_unavailable()}")
    simulated = torch.cuda.is_simulated()
    kind = "simulated" if simulated else "real"
    print(f"ran on cuda:0 {torch.cuda.get_device_name(0)} ({kind})", flush=True)
    torch.manual_seed(0)
    for length in (70, 130) if simulated else (1000, 4096, 8192):
        attention(length)
    for n in (5003,) if simulated else (1_000_003, 100_000_007):
        waves(n)
    n = 10_007 if simulated else (1 << 31) + 4099
    if free_bytes() < 12 * n:
        print(f"{n} elements: {free_bytes()} bytes are too few")
    else:
        beyond(n)
    torch.cuda.synchronize()
    print("large program: fine")


if __name__ == "__main__":
    main()
