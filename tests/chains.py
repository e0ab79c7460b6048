"""Functions that run in torch.fused() and without it, for comparison bit for bit."""

from contextlib import contextmanager

import pydevtensor as torch
from pydevtensor import _C

N = 20_011  # no multiple of a tile


def line():
    return torch.linspace(-3, 3, N)


@contextmanager
def heard():
    """A list to which each chain that runs in the block adds what it was made of."""
    found = []
    _C._fusion_listen(found)
    try:
        yield found
    finally:
        _C._fusion_listen(None)


def chains(f, *args):
    """f's result in fused(), and what was fused: a list of names for each chain."""
    with heard() as found, torch.fused():
        result = f(*args)
    return result, [[step[0] for step in steps] for *_, steps in found]


def reports(f, *args):
    """What each chain says in fused(), where f's result alone is held."""
    with heard() as found:
        with torch.fused():
            kept = f(*args)
        del kept
    return found


def bits(t):
    t = t.detach().cpu().contiguous()
    return (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy().tobytes()


def same(a, b):
    """Bit for bit: zeros have signs, and NaNs payloads."""
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
    return bits(a) == bits(b)


def check(f, *args, fuses=None):
    """args are tensors or numbers, of which each run has its own copies."""
    first, second = (
        [a.clone() if isinstance(a, torch.Tensor) else a for a in args] for _ in "ab"
    )
    want = f(*first)
    got, found = chains(f, *second)
    assert same(got, want)
    assert same(
        [a for a in first if isinstance(a, torch.Tensor)],
        [a for a in second if isinstance(a, torch.Tensor)],
    )
    if fuses is not None:
        assert found == fuses
    return found


def writes(x, y):
    """Writes to tensors that other steps read before and after."""
    a = x * 2
    b = a + 1  # reads a before it is written
    a.add_(y)
    c = a * b
    y.mul_(3)
    x.relu_()
    a[:] = c - x
    return a, b, c
