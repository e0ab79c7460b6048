"""Reductions and operations on rows at the end of a chain: the bits of the operations
one by one, and what is stored.

tests/test_fusion_ends_gpu.py has what only GPUs have.
"""

import threading
from itertools import product

import pytest
from chains import (
    ENDS,
    PROGRAMS,
    ROWS,
    WHOLE,
    F,
    N,
    by_device,
    check,
    check_program,
    launches,
    line,
    reports,
    same,
)
from conftest import SIMULATED
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch
from pydevtensor import _C


def fates(f, *args):
    """For each chain (what ended it, {name: fate}), where the result alone is held."""
    fate = {(True, True): "stored", (False, True): "passed", (False, False): "dropped"}
    return [
        (why, [(s[0], fate[s[2:]]) for s in steps])
        for why, *_, steps in reports(f, *args)
    ]


# --- what joins, and what is stored ---

JOINED = [name for name in WHOLE if name not in ("any", "all")]  # on GPUs
# Longer rows do not fit the buffer of a thread, or a block.
LONGEST = {"cpu": 16383, "cuda": 8192}
SHAPES = [
    *((200, 17), (200, 101), (40, 104), (3000, 24), (5, 516), (2100, 1024), (3, 1026)),
    *((5, 4099), (3, 8191), (2, 8192), (2, 40_001)),
]


@pytest.mark.parametrize(
    "device, name, n",
    by_device(product(WHOLE, [N]), product(JOINED, [8, 1001, 5003, 131_072, 300_001])),
)
def test_of_everything(device, name, n):
    def f(a):
        return WHOLE[name](a * 2 + 1)

    x = line(n, device)
    check(f, x, fuses=[["mul", "add", name]])
    ((ended, steps),) = fates(f, x)
    assert ended == "the end of the block"
    assert steps == [("mul", "passed"), ("add", "passed"), (name, "stored")]
    if SIMULATED and x.is_cuda:
        # Long sums meet in a second kernel.
        assert launches(f, x) <= (1 if n < 100_000 else 2)


@pytest.mark.parametrize(
    "device, name, shape",
    by_device(
        product(ROWS, [(7000, 3), (200, 101), (5, 4099), (2, 16000), (3, 40_001)]),
        product(ROWS, SHAPES),
    ),
)
def test_of_rows(device, name, shape):
    def f(a):
        return ROWS[name](torch.sin(a) + a)

    x = line(shape[0] * shape[1], device).view(shape)
    fits = shape[1] <= LONGEST[x.device.type]
    assert check(f, x) == [["sin", "add", *[name] * (fits or name in WHOLE)]]
    if SIMULATED and x.is_cuda and fits:
        assert launches(f, x) == 1


HALVES = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize(
    "device, dtype, shape",
    by_device(
        product([*HALVES, torch.float64], [(300, 101), (3, 20_011)]),
        product(HALVES, [(130, 101), (3, 4096), (3, 5003)]),
    ),
)
def test_other_floats(device, dtype, shape):
    x = line(shape[0] * shape[1], device).view(shape).to(dtype)
    for f in ENDS:
        check(lambda a, f=f: f(torch.sin(a) + a), x)
    if x.is_cuda:
        check(lambda a: (a * 2).softmax(-1), x, fuses=[["mul", "softmax"]])


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.int64, torch.bool])
def test_integers_and_bools(dtype):
    x = (torch.arange(6 * 9001) % 7 - 3).view(6, 9001).to(dtype)
    for name in ("sum", "amax", "amin", "any", "all", "prod"):
        check(lambda a, name=name: getattr((a == 1) | (a > 2), name)(), x)
        check(lambda a, name=name: getattr(torch.where(a > 1, a, a), name)(-1), x)
    (names,) = check(lambda a: (a > 1).sum(), x)
    assert names[-2:] == ["gt", "sum"]
    check(lambda a: (a != 0).sum(-1, dtype=torch.int32), x)


def test_nan_infinity_and_signs_of_zero(device):
    x = torch.linspace(-300, 300, 20_000, device=device)
    x[::1000] = float("nan")
    x[1::977] = float("-inf")
    zeros = torch.zeros(20_000, device=device)
    zeros[::3] = -0.0
    for f in ENDS:
        if not x.is_cuda:  # simulated ones choose among NaNs of both signs
            check(lambda a, f=f: f(a.view(20, 1000).exp() * 2), x)
            check(lambda a, f=f: f(a.view(20, 1000) * 2 - a.view(20, 1000)), x)
        for data in (x, zeros):
            check(lambda a, f=f: f(a.view(20, 1000) * 2 + a.view(20, 1000)), data)


def test_a_value_that_is_held_is_stored():
    x = line()

    def f(a):
        b = a * 2
        return b, b.sum()

    assert fates(f, x)[0][1] == [("mul", "stored"), ("sum", "stored")]
    check(f, x)


def test_results_that_nobody_holds_are_not_computed(device):
    x = line(N, device)

    def f(a):
        (a * 2).sum()
        return a + 1

    assert fates(f, x)[0][1] == [
        ("mul", "dropped"),
        ("add", "stored"),
        ("sum", "dropped"),
    ]
    check(f, x)
    if SIMULATED and x.is_cuda:
        assert launches(f, x) == 1


def test_several_ends():
    x = line()

    def f(a):
        b = a * 2
        c = b + 1
        return b.sum(), c.mean(), c.amax(), (b * c).norm(), c

    check(f, x, fuses=[["mul", "add", "mul", "sum", "mean", "amax", "norm_2"]])

    def five(a):
        return [(a * k).sum() for k in range(5)]

    assert [len(names) for names in check(five, x)] == [9]

    def rows_and_all(a):
        b = a[:20000].view(200, 100) * 2
        return b.sum(-1), b.mean(-1), b.softmax(-1), b.amax(-1), b.sum()

    check(rows_and_all, x)
    check(lambda a: [(a * k).view(-1, 20011).softmax(-1) for k in (2, 3)], x)


def test_a_result_that_is_read_ends_the_chain(device):
    x = torch.randn(200, 151, device=device)

    def normalized(a):
        b = a * 2 + 1
        return (b - b.mean(-1, keepdim=True)) / b.std(-1, keepdim=True)

    def sums(a):
        total = (a * 2).sum()
        return total, total * a, a / total, a * total.item()

    check(normalized, x)
    check(lambda a: (a * 2).softmax(-1) * a, x)
    check(sums, x)
    check(lambda a: (a * 2).softmax(-1).sum(-1), x)


@pytest.mark.parametrize("n", [151, 152])
def test_what_an_end_reads_is_not_written_before(device, n):
    x, w = torch.randn(200, n, device=device), torch.randn(n, device=device)

    def f(x, w):
        y = F.layer_norm(x + 1, w.shape, w, w)
        w.mul_(2)
        z = F.layer_norm(x + w, w.shape, w)
        x.zero_()
        return y, z

    def in_place(x):
        y = x * 2
        first = y.sum(-1)
        y.add_(1)
        second = y.sum(-1)
        y.zero_()
        return first, second, y

    check(f, x, w)
    check(in_place, x)


def test_writes_to_given_memory():
    x = line()

    def f(a):
        out = torch.zeros(())
        torch.sum(a * 2, 0, out=out)
        rows = torch.zeros(200, 100)
        rows.copy_(torch.softmax(a[:20000].view(200, 100) * 3, -1))
        return out, out + 1, rows

    check(f, x)


def test_other_layouts_run_as_before(device):
    x = torch.randn(160, 170, device=device)
    for f in (
        lambda a: (a * 2).t().sum(),
        lambda a: (a * 2).view(-1)[:20000].mean(),
        lambda a: (a * 2).view(torch.int32).sum(),
        lambda a: (a * 2).view(16, 10, 170).sum((0, 2)),
        lambda a: (a * 2).view(16, 10, 170).sum((1, 2)),
        lambda a: (a * 2).max(-1),
        lambda a: (a * 2).sum() + (a * 3).sum(),
    ):
        check(f, x)
    for f in (
        *(lambda a: (a * 2).sum(0), lambda a: (a * 2).softmax(0)),
        *(lambda a: (a > 0).sum(), lambda a: (a > 0).any(), lambda a: (a * 2).all(-1)),
        *(lambda a: (a * 2)[:, :7].sum(-1), lambda a: (a * 2)[:, :16].softmax(-1)),
        *(lambda a: (a * 2).t().sum(-1), lambda a: (a * 2)[:, 1:].sum()),
        *(lambda a: (a * 2)[1:].sum(), lambda a: (a * 2).argmax(-1)),
        lambda a: F.cross_entropy(a * 2, torch.zeros_like(a[:, 0]).long()),
    ):
        found = check(f, x)
        if x.is_cuda:
            assert max(map(len, found), default=0) <= 1


def test_memory_of_others():
    x = torch.randn(160, 170)
    weight = torch.ones(170)
    shown = weight.numpy()
    with torch.fused():
        y = F.layer_norm(x * 2, (170,), weight)
        shown[:] = 0
    assert same(y, F.layer_norm(x * 2, (170,), torch.ones(170)))


def test_cross_entropy_says_which_class_is_wrong():
    x = torch.randn(200, 151)
    target = torch.zeros(200, dtype=torch.int64)
    target[3] = 151
    with torch.fused(), pytest.raises(IndexError, match="target 151"):
        F.cross_entropy(x * 2, target)


def test_another_thread_reads():
    x = line()
    with torch.fused():
        total = (x * 2 + 1).sum()
        seen = []
        other = threading.Thread(target=lambda: seen.append(total.item()))
        other.start()
        other.join()
    assert seen[0] == (x * 2 + 1).sum().item()


def test_memory_is_given_back(device):
    x = torch.ones(300_000, device=device)
    if x.is_cuda:
        torch.cuda.synchronize()
    before = _C._storage_count(torch.device(device))
    with torch.fused():
        for _ in range(10):
            (x * 2).sum(), (x * 3).var(), (x * 4).view(300, 1000).softmax(-1)
    assert _C._storage_count(torch.device(device)) == before
    check(lambda x: (x * 2).sum(), x, fuses=[["mul", "sum"]])


# --- the whole: losses and layers ---


def test_losses():
    a, b = torch.randn(173, 211), torch.randn(173, 211)
    check(lambda a, b: ((a - b) ** 2).mean(), a, b, fuses=[["sub", "square", "mean"]])
    check(lambda a, b: (a - b).norm(), a, b, fuses=[["sub", "norm_2"]])
    check(lambda a, b: F.smooth_l1_loss(a, b), a, b)
    check(lambda a, b: F.l1_loss(a, b), a, b)


def test_masked_scores():
    scores = torch.randn(2, 3, 60, 64)
    mask = torch.rand(60, 64) > 0.5

    def f(scores, mask):
        return (scores * 0.125).masked_fill(mask, float("-inf")).softmax(-1)

    (names,) = check(f, scores, mask)
    assert names[0] == "mul" and names[-1] == "softmax"


@pytest.mark.parametrize("device, shape", by_device([[(170, 190)]], [[(60, 192)]]))
def test_gradients(device, shape):
    x, w = torch.randn(shape, device=device), torch.randn(shape[1], device=device)

    def f(a, b, *weight):
        leaves = a, b, *weight = [t.clone().requires_grad_() for t in (a, b, *weight)]
        h = F.layer_norm(a + b, shape[1:], *weight)
        loss = (torch.tanh(h * b).softmax(-1) ** 2).mean() + (a - b).norm() + h.var()
        (loss + (F.log_softmax(h * a, -1) * b).sum() * 0.5).backward()
        return loss.detach(), *(t.grad for t in leaves)

    check(f, x, x.flip(0))
    found = check(f, x, x.flip(0), w)
    if x.is_cuda:
        ends = {names[-1] for names in found}
        assert {"layer_norm", "softmax", "mean", "sum"} <= ends


def test_explain(device):
    x = line(N, device)
    text = torch.compiler.explain(lambda a: ((a - 1) ** 2).mean(), x).splitlines()
    assert text[0] == f"{N} elements: 0.1 MB moved, not 0.4"
    assert [row.split()[0] for row in text[1:4]] == ["sub", "square", "mean"]
    assert all("test_fusion_ends.py:" in row for row in text[1:4])
    assert text[3].endswith("stored")
    assert text[4] == "  ended by: the end of the block"


def test_the_profiler_sees_the_pass():
    x = line()
    with torch.profiler.profile() as profile, torch.fused():
        ((x - 1) ** 2).mean().item()
    names = [event.name for event in profile.events()]
    assert "fused" in names


# --- random programs ---


@settings(max_examples=120, deadline=None)
@given(scale=st.integers(1, 3), threads=st.integers(1, 5), **PROGRAMS)
def test_random_programs(row, scale, threads, steps, ends):
    torch.manual_seed(row)
    x = torch.randn(max(16384 * scale // row, 1) + 1, row)
    check_program(x, steps, ends, threads)
