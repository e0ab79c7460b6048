"""Reductions and operations on rows at the end of a chain: values and what is stored."""

import threading

import pytest
from chains import (
    ENDS,
    ROWS,
    STEPS,
    WHOLE,
    N,
    check,
    check_reads_of_results,
    check_writes_to_inputs,
    line,
    mixed_program,
    reports,
    same,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch
from pydevtensor import _C, nn

F = nn.functional


def fates(f, *args):
    """For each chain (what ended it, {name: fate}), where the result alone is held."""
    fate = {(True, True): "stored", (False, True): "passed", (False, False): "dropped"}
    return [
        (why, [(s[0], fate[s[2:]]) for s in steps])
        for why, *_, steps in reports(f, *args)
    ]


# --- what joins, and what is stored ---


@pytest.mark.parametrize("name", WHOLE)
def test_of_everything(name):
    check(lambda a: WHOLE[name](a * 2 + 1), line(), fuses=[["mul", "add", name]])
    ((ended, steps),) = fates(lambda a: WHOLE[name](a * 2 + 1), line())
    assert ended == "the end of the block"
    assert steps == [("mul", "passed"), ("add", "passed"), (name, "stored")]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(
    "shape", [(7000, 3), (200, 101), (5, 4099), (2, 16000), (3, 40001)]
)
def test_of_rows(name, shape):
    x = torch.linspace(-3, 3, shape[0] * shape[1]).view(shape)
    found = check(lambda a: ROWS[name](torch.sin(a) + a), x)
    if shape[1] < 16384 or name in ("sum", "mean", "amax", "norm_2", "var"):
        assert found == [["sin", "add", name]]
    else:  # longer rows of such operations do not fit the buffer of a thread
        assert found == [["sin", "add"]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("shape", [(300, 101), (3, 20_011)])
def test_other_floats(dtype, shape):
    for f in [*WHOLE.values(), *ROWS.values()]:
        x = torch.linspace(-3, 3, shape[0] * shape[1]).view(shape).to(dtype)
        check(lambda a, f=f: f(torch.sin(a) + a), x)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.int64, torch.bool])
def test_integers_and_bools(dtype):
    x = (torch.arange(6 * 9001) % 7 - 3).view(6, 9001).to(dtype)
    for name in ("sum", "amax", "amin", "any", "all", "prod"):
        check(lambda a, name=name: getattr((a == 1) | (a > 2), name)(), x)
        check(lambda a, name=name: getattr(torch.where(a > 1, a, a), name)(-1), x)
    (names,) = check(lambda a: (a > 1).sum(), x)
    assert names[-2:] == ["gt", "sum"]
    check(lambda a: (a != 0).sum(-1, dtype=torch.int32), x)


def test_nan_and_infinity():
    x = torch.linspace(-300, 300, N)
    x[::1000] = float("nan")
    x[1::977] = float("-inf")
    for f in WHOLE.values():
        check(lambda a, f=f: f(a.exp() * 2), x)
    rows = x[:20000].view(20, 1000)
    for f in ROWS.values():
        check(lambda a, f=f: f(a * 2 - a), rows)


def test_a_value_that_is_held_is_stored():
    x = line()

    def f(a):
        b = a * 2
        return b, b.sum()

    assert fates(f, x)[0][1] == [("mul", "stored"), ("sum", "stored")]
    check(f, x)


def test_results_that_nobody_holds_are_not_computed():
    x = line()

    def f(a):
        (a * 2).sum()
        return a + 1

    assert fates(f, x)[0][1] == [
        ("mul", "dropped"),
        ("add", "stored"),
        ("sum", "dropped"),
    ]


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


def test_a_result_that_is_read_ends_the_chain():
    x = torch.randn(200, 151)
    check_reads_of_results(x)
    check(lambda a: (a * 2).softmax(-1).sum(-1), x)


def test_what_an_end_reads_is_not_written_before():
    x = torch.randn(200, 151)
    check_writes_to_inputs(x, torch.randn(151))

    def in_place(x):
        y = x * 2
        first = y.sum(-1)
        y.add_(1)
        second = y.sum(-1)
        y.zero_()
        return first, second, y

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


def test_other_layouts_run_as_before():
    x = torch.randn(160, 170)
    for f in (
        lambda a: (a * 2).sum(0),
        lambda a: (a * 2).softmax(0),
        lambda a: (a * 2).t().sum(),
        lambda a: (a * 2).t().sum(-1),
        lambda a: (a * 2)[:, 1:].sum(),
        lambda a: (a * 2)[1:].sum(),
        lambda a: (a * 2).view(-1)[:20000].mean(),
        lambda a: (a * 2).view(torch.int32).sum(),
        lambda a: (a * 2).view(16, 10, 170).sum((0, 2)),
        lambda a: (a * 2).view(16, 10, 170).sum((1, 2)),
        lambda a: (a * 2).argmax(-1),
        lambda a: (a * 2).max(-1),
        lambda a: (a * 2).sum() + (a * 3).sum(),
    ):
        check(f, x)


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


def test_partial_results_are_given_back():
    x = line()
    before = _C._storage_count(torch.device("cpu"))
    with torch.fused():
        for _ in range(30):
            (x * 2).sum(), (x * 3).var()
    assert _C._storage_count(torch.device("cpu")) == before


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


def test_gradients():
    x = torch.randn(170, 190)

    def f(a, b):
        a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
        h = F.layer_norm(a + b, (190,))
        loss = (torch.tanh(h * b).softmax(-1) ** 2).mean() + (a - b).norm() + h.var()
        loss.backward()
        return loss.detach(), a.grad, b.grad

    check(f, x, x.flip(0))


def test_explain():
    x = line()
    text = torch.compiler.explain(lambda a: ((a - 1) ** 2).mean(), x).splitlines()
    assert text[0] == f"{N} elements: 0.1 MB moved, not 0.4"
    assert [row.split()[0] for row in text[1:4]] == ["sub", "square", "mean"]
    assert all("test_fusion_ends.py:" in row for row in text[1:4])
    assert [row.split(" ", 3)[-1].split(" ", 1)[-1] for row in text[1:4]][2].endswith(
        "stored"
    )
    assert text[4] == "  ended by: the end of the block"


def test_the_profiler_sees_the_pass():
    x = line()
    with torch.profiler.profile() as profile, torch.fused():
        ((x - 1) ** 2).mean().item()
    names = [event.name for event in profile.events()]
    assert "fused" in names


# --- random programs ---


@settings(max_examples=120, deadline=None)
@given(
    st.integers(2, 3000),
    st.integers(1, 3),
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    st.lists(
        st.tuples(st.integers(0, len(ENDS) - 1), st.booleans()), min_size=1, max_size=6
    ),
    st.integers(1, 5),
)
def test_random_programs(row, scale, steps, ends, threads):
    rows = max(16384 * scale // row, 1) + 1
    torch.manual_seed(row)
    x = torch.randn(rows, row)

    before = torch.get_num_threads()
    want, said = mixed_program(x, steps, ends)
    try:
        torch.set_num_threads(threads)
        with torch.fused():
            got, told = mixed_program(x, steps, ends)
    finally:
        torch.set_num_threads(before)
    assert told == said
    assert same(got, want)
