"""Functions that run in torch.fused() and without it, for comparison bit for bit."""

from contextlib import contextmanager

import pytest
from conftest import IN_TURN, ONLY
from hypothesis import strategies as st

import pydevtensor as torch
from pydevtensor import _C

F = torch.nn.functional
N = 20_011  # no multiple of a tile


def line(n=N, device="cpu"):
    return torch.linspace(-3, 3, n, device=device)


def by_device(cpu, gpu):
    """Parameters, device first: some cases for the CPU, others for each GPU."""
    cpu, gpu, found = [*cpu], [*gpu], []
    for device in IN_TURN[ONLY:]:
        plain = isinstance(device, str)
        name, marks = (device, ()) if plain else (*device.values, device.marks)
        cases = cpu if name == "cpu" else gpu
        found += [pytest.param(name, *case, marks=marks) for case in cases]
    return found


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


def launches(f, *args):
    """How many kernels f starts in fused() on simulated GPUs."""
    with torch.fused():
        before = torch.cuda.sim_counters()["launches"]
        kept = f(*args)
    del kept
    return torch.cuda.sim_counters()["launches"] - before


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


# --- reductions and operations on rows, by the names that chains have them by ---

WHOLE = {
    "sum": lambda t: t.sum(),
    "mean": lambda t: t.mean(),
    "amax": lambda t: t.max(),
    "amin": lambda t: t.amin(),
    "prod": lambda t: t.prod(),
    "any": lambda t: t.any(),
    "all": lambda t: t.all(),
    "norm_2": lambda t: t.norm(),
    "norm_1": lambda t: torch.linalg.vector_norm(t, 1),
    "norm_max": lambda t: t.norm(float("inf")),
    "var": lambda t: t.var(),
}
ROWS = {
    "sum": lambda t: t.sum(-1),
    "mean": lambda t: t.mean(-1, keepdim=True),
    "amax": lambda t: t.amax(-1),
    "norm_2": lambda t: t.norm(dim=-1),
    "var": lambda t: t.var(-1, correction=0),
    "softmax": lambda t: t.softmax(-1),
    "log_softmax": lambda t: F.log_softmax(t, -1),
    "logsumexp": lambda t: t.logsumexp(-1),
    "layer_norm": lambda t: F.layer_norm(t, t.shape[-1:]),
}
ENDS = [*WHOLE.values(), *ROWS.values()]

STEPS = {
    "sin": torch.sin,
    "double": lambda t: t * 2,
    "offset": lambda t: 1 - t,
    "wide": lambda t: t.double(),
    "half": lambda t: t.half(),
    "whole": lambda t: (t * 5).int(),
    "positive": lambda t: t > 0,
    "row": lambda t: t + t[0].clone().float(),
}


def mixed_program(x, steps, ends):
    """Steps by name, after each of which come ends by number: (number, kept). What they
    give, and what they say."""
    kept, notes = [], []
    for name in steps:
        x = STEPS[name](x if name == "positive" or x.is_floating_point() else x + 0.5)
        for end, keeps in ends:
            try:
                made = ENDS[end](x)
            except (RuntimeError, NotImplementedError) as error:
                notes.append(str(error))
            else:
                kept += [made] if keeps else []
    return kept, notes


# Random programs on rows of a random length, for check_program().
PROGRAMS = {
    "row": st.integers(2, 3000),
    "steps": st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    "ends": st.lists(
        st.tuples(st.integers(0, len(ENDS) - 1), st.booleans()), min_size=1, max_size=6
    ),
}


def check_program(x, steps, ends, threads=None):
    """threads: how many compute the program in fused()."""
    before = torch.get_num_threads()
    want, said = mixed_program(x, steps, ends)
    try:
        torch.set_num_threads(threads or before)
        with torch.fused():
            got, told = mixed_program(x, steps, ends)
    finally:
        torch.set_num_threads(before)
    assert told == said
    assert same(got, want)
