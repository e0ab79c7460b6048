"""Softmax, norms and losses of rows wherever kernels keep them."""

import pytest

import pydevtensor as torch

F = torch.nn.functional

# Where kernels keep a row: registers of a warp up to 256, and 1024 of many rows; of a
# block up to 8192, which has 64 threads up to 2048 and 128 up to 4096 for many rows of
# 16 bits; shared memory, up to 2048 of a warp, if a row starts or ends between vectors,
# but for softmax in 16 bits, or of a block that is longer, of which it holds some 57,000
# elements. Five rows start at each alignment.
KEPT = [(5, 257), (5, 1025), (5, 8192), (5, 8193), (5, 20001), (2, 60001), (2, 60004)]
MANY = [(2050, 260), (2050, 1001), (2050, 1024), (2050, 1026), (2050, 2051)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("rows", "n"), KEPT + MANY)
def test_rows_wherever_kernels_keep_them(device, rows, n, dtype):
    torch.manual_seed(n)
    x, g = (torch.randn(rows, n).to(dtype) for _ in "xg")
    weight = (torch.rand(n) + 0.5).to(dtype)
    # Of the ends, where elements may be no part of a vector, and within.
    target = torch.tensor([0, n - 1, 1, n - 2, n // 2] * rows)[:rows]
    runs = {
        "softmax": lambda x, g, w, t: (x.softmax(1) * g).sum(1),
        "layer_norm": lambda x, g, w, t: (F.layer_norm(x, (n,), w, w) * g).sum(1),
        "cross_entropy": lambda x, g, w, t: F.cross_entropy(
            x, t, w, reduction="none", label_smoothing=0.1
        ),
    }
    bound = 1e-5 if dtype == torch.float32 else 1e-2
    for name, run in runs.items():
        found = []
        for place, wide in ((device, dtype), ("cpu", torch.float64)):
            given = x.to(place).to(wide).detach().requires_grad_()
            out = run(
                given, *(v.to(place).to(wide) for v in (g, weight)), target.to(place)
            )
            out.sum().backward()
            found.append([v.detach().cpu().double() for v in (out, given.grad)])
        for ours, exact in zip(*found, strict=True):
            largest = exact.abs().max() + (n**0.5 if exact.ndim == 1 else 0)
            assert ((ours - exact).abs() <= bound * largest).all(), name
