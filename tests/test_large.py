"""More than 2**31 elements on the CPU: sizes, strides, offsets and indices of 64 bits."""

import os
from pathlib import Path

import pytest

import pydevtensor as torch

HALF = 1 << 31
N = HALF + 101


def available():
    text = Path("/proc/meminfo").read_text()
    lines = dict(line.split(":", 1) for line in text.splitlines())
    return int(lines["MemAvailable"].split()[0]) << 10


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(available() < 8 << 30, reason="needs 8 GB of memory"),
    pytest.mark.skipif(
        bool(os.environ.get("PYDEVTENSOR_SANITIZE")), reason="needs minutes"
    ),
]


def made():
    """Zeros, but for 7 at 2**31 and 5 at the end."""
    x = torch.zeros(N, dtype=torch.int8)
    x[HALF], x[-1] = 7, 5
    return x


def test_elements_and_views():
    x = made()
    assert x.numel() == len(x) == N and x.nbytes == N
    assert x[HALF].item() == 7 and x[N - 1].item() == 5
    assert x[HALF - 3 :].sum().item() == 12
    assert x[:: 1 << 30].tolist() == [0, 0, 7]
    assert x.as_strided((2,), (100,), HALF).tolist() == [7, 5]
    assert x.narrow(0, HALF, 101)[100].item() == 5
    assert x.unfold(0, 101, 1)[HALF][:1].tolist() == [7]
    assert x[-1:].expand(1 << 40).shape == (1 << 40,)
    assert x[1:].reshape(4, -1)[-1, -1].item() == 5
    view = memoryview(x)
    assert view.nbytes == N and view[HALF] == 7
    assert x.numpy()[N - 1] == 5
    rows = x[: N - 1].reshape(2, -1).t()
    assert rows.stride() == (1, (N - 1) // 2) and rows[HALF // 2 - 50, 1].item() == 7


def test_reductions():
    x = made()
    assert x.sum().item() == 12
    assert x.reshape(1, N).sum(1).tolist() == [12]
    assert x.reshape(N, 1).sum(0).tolist() == [12]
    assert x.max().item() == 7 and x.argmax().item() == HALF
    values, at = x[HALF - 9 :].max(0)
    assert (values.item(), at.item()) == (7, 9)
    assert x.expand(2, N).argmax(1).tolist() == [HALF, HALF]


def test_indices():
    x = made()
    at = torch.tensor([N - 1, HALF, -1, 0])
    assert x[at].tolist() == [5, 7, 5, 0]
    assert torch.take(x, at).tolist() == [5, 7, 5, 0]
    assert x.index_select(0, at[:2]).tolist() == [5, 7]
    assert x.gather(0, at[:2]).tolist() == [5, 7]
    x[at[:2]] = torch.tensor([1, 2], dtype=torch.int8)
    x.index_fill_(0, torch.tensor([HALF + 1]), 3)
    x.scatter_(0, torch.tensor([HALF + 2]), torch.tensor([4], dtype=torch.int8))
    assert x[HALF : HALF + 3].tolist() == [2, 3, 4] and x[-1].item() == 1
    mask = torch.zeros(N, dtype=torch.bool)
    mask[HALF], mask[-1] = True, True
    assert x[mask].tolist() == [2, 1]
    assert torch.nonzero(mask).tolist() == [[HALF], [N - 1]]
    x.masked_fill_(mask, 9)
    assert x[HALF:].sum().item() == 9 + 3 + 4 + 9


def test_copies():
    x = made()
    y = x.clone()
    assert torch.equal(x, y)
    y.add_(1)
    assert (y[HALF].item(), y[-1].item(), y[0].item()) == (8, 6, 1)
    del y
    y = torch.cat([x[:HALF], x[:3], x[HALF:]])
    assert y.numel() == N + 3 and (y[HALF + 3].item(), y[-1].item()) == (7, 5)
    del y
    y = torch.flip(x, (0,))
    assert (y[0].item(), y[100].item(), y[-1].item()) == (5, 7, 0)
    del y
    y = x[: N - 1].reshape(2, -1).t().contiguous()
    assert y[HALF // 2 - 50, 1].item() == 7


def test_numbers_beyond_the_half_are_other_ones():
    torch.manual_seed(3)
    x = torch.empty(N, dtype=torch.uint8).random_(0, 200)
    first, last = x[:1000], x[HALF : HALF + 1000][:101]
    assert not torch.equal(first[:101], last)
    part = x[-(1 << 20) :].float()
    assert abs(part.mean().item() - 99.5) < 1 and part.max().item() == 199
