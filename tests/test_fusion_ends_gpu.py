"""Reductions and operations on rows at the end of a chain on a GPU: one kernel, and the
bits of the operations one by one."""

import pytest
from chains import (
    ENDS,
    ROWS,
    STEPS,
    WHOLE,
    F,
    chains,
    check,
    check_reads_of_results,
    check_writes_to_inputs,
    mixed_program,
    same,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pydevtensor as torch
from pydevtensor import _C

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

N = 5003  # no multiple of a thread's elements
NOT_OF_BOOLS = [name for name in WHOLE if name not in ("any", "all")]

needs_a_simulator = pytest.mark.skipif(
    not torch.cuda.is_simulated(), reason="counts launches of simulated GPUs"
)


def launches(f, *args):
    """How many kernels f starts in fused()."""
    with torch.fused():
        before = torch.cuda.sim_counters()["launches"]
        kept = f(*args)
    del kept
    return torch.cuda.sim_counters()["launches"] - before


# --- what joins ---


@pytest.mark.parametrize("name", NOT_OF_BOOLS)
@pytest.mark.parametrize("n", [8, 1001, N, 131_072, 300_001])
def test_of_everything(here, name, n):
    x = torch.linspace(-3, 3, n, device=here)
    check(lambda a: WHOLE[name](a * 2 + 1), x, fuses=[["mul", "add", name]])
    if torch.cuda.is_simulated():
        # Long sums meet in a second kernel.
        most = 1 if n < 100_000 else 2
        assert launches(lambda a: WHOLE[name](a * 2 + 1), x) <= most


SHAPES = [
    *((200, 17), (200, 101), (40, 104), (3000, 24), (5, 516), (2100, 1024), (3, 1026)),
    *((5, 4099), (3, 8191), (2, 8192), (2, 40_001)),
]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_of_rows(here, name, shape):
    x = torch.linspace(-3, 3, shape[0] * shape[1], device=here).view(shape)
    found = check(lambda a: ROWS[name](torch.sin(a) + a), x)
    joins = shape[1] <= 8192 or name in WHOLE  # longer rows have no room in a block
    assert found == [["sin", "add", *[name] * joins]]
    if torch.cuda.is_simulated() and shape[1] <= 8192:
        assert launches(lambda a: ROWS[name](torch.sin(a) + a), x) == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(130, 101), (3, 4096), (3, N)])
def test_halves(here, dtype, shape):
    x = torch.linspace(-3, 3, shape[0] * shape[1], device=here).view(shape).to(dtype)
    for f in ENDS:
        check(lambda a, f=f: f(torch.sin(a) + a), x)
    (names,) = check(lambda a: (a * 2).softmax(-1), x)
    assert names == ["mul", "softmax"]


@pytest.mark.parametrize("n", [1001, 1028, 2056])
def test_many_rows_of_halves(here, n):
    """Which warps and blocks of 64 and 128 threads keep in registers."""
    x = torch.linspace(-3, 3, 2050 * n, device=here).view(2050, n).bfloat16()
    w = torch.linspace(0.5, 2, n, device=here).bfloat16()
    for f in (lambda a: a.softmax(-1), lambda a: F.layer_norm(a, (n,), w, w)):
        check(lambda a, f=f: f(a * 2), x)


def test_what_does_not_join(here):
    x = torch.randn(40, 170, device=here)
    for f in (
        *(lambda a: (a * 2).sum(0), lambda a: (a * 2).softmax(0)),
        *(lambda a: (a > 0).sum(), lambda a: (a > 0).any(), lambda a: (a * 2).all(-1)),
        *(lambda a: (a * 2)[:, :7].sum(-1), lambda a: (a * 2)[:, :16].softmax(-1)),
        *(lambda a: (a * 2).t().sum(-1), lambda a: (a * 2)[:, 1:].sum()),
        *(lambda a: (a * 2)[1:].sum(), lambda a: (a * 2).argmax(-1)),
        lambda a: F.cross_entropy(a * 2, torch.zeros(40, dtype=torch.long).to(here)),
    ):
        assert max(map(len, check(f, x)), default=0) <= 1
    # A chain has one end, and the second one reads memory.
    check(lambda a: [(a * k).sum() for k in (2, 3)], x, fuses=[["mul", "mul", "sum"]])
    check(lambda a: (a.mul(2).sum(), a.mul(2).var()), x)

    def two(a):
        b = a * 2 + 1
        return b.sum(-1), b.mean(-1)

    check(two, x, fuses=[["mul", "add", "sum"]])


def test_layouts(here):
    """Operands that are broadcast, turned, or not aligned, and held results."""
    for rows, n in ((37, 41), (12, 64), (3, 1030), (3, 2052)):
        x, y = torch.randn(2, rows, n, device=here).unbind()
        turned = torch.randn(n, rows, device=here).t()
        bits = torch.randint(0, 3, (rows, n), dtype=torch.uint8, device=here)
        flat = torch.randn(rows * n + 1, device=here)

        def chain(x, y, row, column, bits, turned, flat):
            held = (x.half() * 2).float() - row * column
            y = torch.where(bits > 1, held, turned) + flat[1:].view(x.shape)
            return y, held

        for f in ENDS:

            def ends(*args, f=f):
                y, held = chain(*args)
                return f(y), held

            check(ends, x, y, x[0], y[:, :1], bits, turned, flat)
            check(lambda flat, f=f: f(flat[1:].view(3, -1) * 2), flat[: 3 * n + 1])


def test_nan_infinity_and_signs_of_zero(here):
    x = torch.linspace(-300, 300, 12_000, device=here)
    x[::1000] = float("nan")
    x[1::977] = float("-inf")
    zeros = torch.zeros(12_000, device=here)
    zeros[::3] = -0.0
    for data in (x, zeros):
        for f in ENDS:
            check(lambda a, f=f: f(a.view(12, 1000) * 2 + a.view(12, 1000)), data)


# --- memory ---


def test_results_in_place_are_read_once(here):
    def f(x, reduce):
        x.mul_(2).add_(1)
        return reduce(x), x

    for shape in ((40, 101), (3, 4100), (200_000,)):
        x = torch.randn(shape, device=here)
        for reduce in ENDS:
            check(lambda x, r=reduce: f(x, r), x)


def test_results_that_nobody_holds_are_not_computed(here):
    x = torch.linspace(-3, 3, N, device=here)

    def f(a):
        (a * 2).sum()
        return a + 1

    check(f, x)
    if torch.cuda.is_simulated():
        assert launches(f, x) == 1


def test_a_result_that_is_read_ends_the_chain(here):
    check_reads_of_results(torch.randn(60, 151, device=here))


def test_what_an_end_reads_is_not_written_before(here):
    x, w = torch.randn(60, 152, device=here), torch.randn(152, device=here)
    check_writes_to_inputs(x, w)


@pytest.mark.parametrize("n", [200, 200_003])
def test_more_values_than_a_block_has_room_for(here, n):
    """Then the end has a kernel of its own."""
    values = torch.rand(14, n, device=here).unbind()

    def chain(*values):
        products = [values[i] * values[i + 1] for i in range(0, 14, 2)]
        total = products[0]
        for product in products[1:]:
            total = total + product
        return total

    for f in (torch.sum, torch.amax, torch.var):
        check(lambda *v, f=f: f(chain(*v)), *values)
    rows = [v[:200].view(2, 100) for v in values]
    check(lambda *v: chain(*v).softmax(-1), *rows)


def test_gradients(here):
    x, w = torch.randn(60, 192, device=here), torch.randn(192, device=here)

    def f(a, b, w):
        a, b, w = (t.clone().requires_grad_() for t in (a, b, w))
        h = F.layer_norm(a + b, (192,), w)
        loss = (torch.tanh(h * b).softmax(-1) ** 2).mean() + (a - b).norm() + h.var()
        (loss + (F.log_softmax(h * a, -1) * b).sum() * 0.5).backward()
        return loss.detach(), a.grad, b.grad, w.grad

    found = check(f, x, x.flip(0), w)
    ends = {names[-1] for names in found}
    assert {"layer_norm", "softmax", "mean", "sum"} <= ends


# --- order ---


def test_streams_and_devices(two_gpus, schedule):
    a, b = (torch.linspace(-3, 3, N, device=name) for name in two_gpus)
    side = torch.cuda.Stream(two_gpus[0])

    def f(a, b):
        x, y = a * 2 + 1, b * 3
        total = y.sum()
        side.wait_stream(torch.cuda.current_stream(two_gpus[0]))
        with torch.cuda.stream(side):
            there = x.sum()
        torch.cuda.current_stream(two_gpus[0]).wait_stream(side)
        return total, there + 0, (x - 1).view(-1, 5003).softmax(-1)

    check(f, a, b)


def test_graphs_capture_ends(here):
    x = torch.randn(30, 200, device=here)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.fused():
        y, total = (x * 2 + 1).softmax(-1), (x * x).sum()
    x.copy_(x.flip(0))
    graph.replay()
    assert same([y, total], [(x * 2 + 1).softmax(-1), (x * x).sum()])


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.integers(2, 3000),
    st.integers(1, 40),
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    st.lists(
        st.tuples(st.integers(0, len(ENDS) - 1), st.booleans()), min_size=1, max_size=6
    ),
)
def test_random_programs(here, schedule, row, rows, steps, ends):
    torch.manual_seed(row)
    x = torch.randn(rows, row, device=here)
    want, said = mixed_program(x, steps, ends)
    with torch.fused():
        got, told = mixed_program(x, steps, ends)
    assert told == said
    assert same(got, want)


# --- what is said of it ---


def test_explain(here):
    x = torch.linspace(-3, 3, N, device=here)
    text = torch.compiler.explain(lambda a: ((a - 1) ** 2).mean(), x).splitlines()
    assert text[0] == f"{N} elements: 0.0 MB moved, not 0.1"
    assert [row.split()[0] for row in text[1:4]] == ["sub", "square", "mean"]
    assert all("test_fusion_ends_gpu.py:" in row for row in text[1:4])


@needs_a_simulator
def test_a_failed_launch_names_the_end(here):
    x = torch.linspace(-3, 3, N, device=here)
    fails = {"match": r"kernel of mul at \w+.py:\d+, sum at \w+.py:\d+: CUDA failed"}
    with pytest.raises(RuntimeError, **fails), torch.fused():
        kept = [(x * 2).sum()]
        torch.cuda.sim_fail("launch:1")
    del kept
    # The kernel of the end fails, where it is another one.
    with pytest.raises(RuntimeError, match=r"mul at .*amax at"), torch.fused():
        kept = [x.mul_(2).add_(1).amax()]
        torch.cuda.sim_fail("launch:2")
    del kept


def test_memory_is_given_back(here):
    x = torch.ones(300_000, device=here)
    torch.cuda.synchronize()
    before = _C._storage_count(torch.device(here))
    with torch.fused():
        for _ in range(5):
            (x * 2).sum(), (x * 3).var(), (x * 4).view(300, 1000).softmax(-1)
    assert _C._storage_count(torch.device(here)) == before
    assert chains(lambda x: (x * 2).sum(), x)[1] == [["mul", "sum"]]
