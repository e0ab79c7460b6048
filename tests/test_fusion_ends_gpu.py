"""Ends of chains that only GPUs have: blocks, streams, graphs and failed launches.

tests/test_fusion_ends.py has those of every device."""

import pytest
from chains import ENDS, PROGRAMS, F, check, check_program, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pydevtensor as torch

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

N = 5003  # no multiple of a thread's elements

needs_a_simulator = pytest.mark.skipif(
    not torch.cuda.is_simulated(), reason="counts launches of simulated GPUs"
)


# --- what joins ---


@pytest.mark.parametrize("n", [1001, 1028, 2056])
def test_many_rows_of_halves(here, n):
    """Which warps and blocks of 64 and 128 threads keep in registers."""
    x = torch.linspace(-3, 3, 2050 * n, device=here).view(2050, n).bfloat16()
    w = torch.linspace(0.5, 2, n, device=here).bfloat16()
    for f in (lambda a: a.softmax(-1), lambda a: F.layer_norm(a, (n,), w, w)):
        check(lambda a, f=f: f(a * 2), x)


def test_a_chain_has_one_end(here):
    x = torch.randn(40, 170, device=here)
    # The second one reads memory.
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


# --- memory ---


def test_results_in_place_are_read_once(here):
    def f(x, reduce):
        x.mul_(2).add_(1)
        return reduce(x), x

    for shape in ((40, 101), (3, 4100), (200_000,)):
        x = torch.randn(shape, device=here)
        for reduce in ENDS:
            check(lambda x, r=reduce: f(x, r), x)


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
@given(rows=st.integers(1, 40), **PROGRAMS)
def test_random_programs(here, schedule, row, rows, steps, ends):
    torch.manual_seed(row)
    check_program(torch.randn(rows, row, device=here), steps, ends)


# --- errors ---


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
