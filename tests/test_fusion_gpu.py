"""torch.fused() on a GPU: one kernel for a chain, in the order of its stream."""

import threading

import pytest
from chains import chains, check, same, writes
from isolated import python

import pydevtensor as torch
from pydevtensor import _C

F = torch.nn.functional
N = 5003  # no multiple of a thread's elements

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))


def launches(f, *args):
    """How many kernels f starts in fused() and without, and that its results agree."""
    counts, results = [], []
    for mode in (True, False):
        with torch.fused() if mode else torch.enable_grad():
            before = torch.cuda.sim_counters()["launches"]
            results.append(f(*args))
        counts.append(torch.cuda.sim_counters()["launches"] - before)
    assert same(*results)
    return counts


needs_a_simulator = pytest.mark.skipif(
    not torch.cuda.is_simulated(), reason="counts launches of simulated GPUs"
)


# --- what is one kernel ---


@needs_a_simulator
def test_launches(here):
    x = torch.linspace(-3, 3, N, device=here)
    y = x.flip(0)
    assert launches(gelu, x) == [1, 8]
    assert launches(lambda x, y: x * torch.sigmoid(x) * y, x, y) == [1, 3]
    # A single operation is the one that it is without.
    assert launches(lambda x: x * 2, x) == [1, 1]
    # Results that are held are stored by the same kernel; what nobody reads is not run.
    assert launches(lambda x: [x * 2, x + 1, x > 0], x) == [1, 3]
    assert launches(lambda x: [x * 2, x + 1][1:], x)[0] == 1
    # Small tensors too: each launch costs the host microseconds.
    assert launches(gelu, x[:3]) == [1, 8]
    assert launches(gelu, x[7]) == [1, 8]


@needs_a_simulator
def test_adam_written_by_hand(here):
    p, g, m, v = torch.randn(4, N, device=here).unbind()
    v = v * v

    def step(p, g, m, v):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 0.01 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8), m, v

    fused, one_by_one = launches(step, p, g, m, v)
    assert fused == 1 and one_by_one == 14


@pytest.mark.parametrize("more", [0, 1027])
def test_threads_with_many_elements(here, more):
    # A thread has several groups of elements once there are 1024 blocks of such threads.
    rows, n = 2051, 1024 + more
    x, y = torch.randn(2, rows, n, device=here).unbind()

    def chain(x, y, row, column, bits):
        h = (x.half() * 2 + y.half()).float() - row
        return torch.where(bits > 1, torch.atan2(h, column + y), h * 0.5), h > 0.25

    bits = torch.randint(0, 3, (rows, n), dtype=torch.uint8, device=here)
    check(chain, x, y, x[0], y[:, :1], bits)


@pytest.mark.parametrize("n", [5003, 2_100_003])
def test_more_values_than_a_blocks_memory_has_room_for(here, n):
    # All inputs are read again after the last one was loaded.
    values = torch.rand(7, n, device=here).unbind()

    def chain(*values):
        total = values[0] * 1.5
        for value in (*values[1:], *values[:5]):
            total = total + value
        return total

    check(chain, *values)


@needs_a_simulator
def test_a_chain_runs_when_memory_is_short(here):
    torch.cuda.empty_cache()
    quarter = torch.cuda.mem_get_info(here)[0] // 4
    with torch.fused():
        x = torch.zeros(quarter // 4 - 1024, device=here)
        y = x + 1
        x = y * 2  # the first x and y are only in the chain
        del y
        more = torch.ones(quarter // 2, device=here)
    assert x[-1].item() == 2 and more[-1].item() == 1
    with torch.fused(), pytest.raises(torch.OutOfMemoryError):
        y = x + 1
        torch.empty(quarter * 2, device=here)
    assert y[-1].item() == 3


def test_casts_and_broadcasts(here):
    images = torch.randint(0, 256, (5, 3, 11, 12), dtype=torch.uint8, device=here)
    mean = torch.tensor([0.4, 0.5, 0.6], device=here)

    def normalized(images, mean):
        return (images.float() / 255 - mean.view(3, 1, 1)) / mean.view(3, 1, 1)

    check(normalized, images, mean, fuses=[["copy", "div", "sub", "div"]])
    table, row = torch.randn(15, 20, device=here), torch.randn(20, device=here)
    column, one = torch.randn(15, 1, device=here), torch.randn(1, device=here)
    check(
        lambda t, r, c, o: (t * r + c) * o - t.t().reshape(15, 20) + t[:, ::2].sum(),
        *(table, row, column, one),
    )
    for n in (1, 2, 3, 4, 5, 127, 128, 511, 513):
        check(lambda x, r: (x + 1) * r - x, torch.randn(3, n, device=here), row[:1])
        check(lambda x: x[1:] * 2 + x[:-1], torch.randn(n + 1, device=here))


def test_transposed_operands_are_fused(here):
    a, b = torch.randn(37, 41, device=here), torch.randn(41, 37, device=here)
    check(lambda a, b: torch.relu(a * b.t() + a), a, b, fuses=[["mul", "add", "relu"]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves(here, dtype):
    x = torch.linspace(-3, 3, N, device=here)
    (names,) = check(gelu, x.to(dtype))
    assert len(names) == 8

    def mixed(h, x):
        y = h * x + 1
        return y.to(dtype) * h, torch.where(h > 0, h, -h), (h + x).float() - h

    check(mixed, x.to(dtype), x)


def test_bools(here):
    x = torch.linspace(-3, 3, N, device=here)

    def f(x):
        a, b = x > -1, x < 1
        return (a & b, a | b, a ^ b, ~a, a == b, torch.where(a & b, x, 0.5), a.float())

    (names,) = check(f, x)
    assert len(names) >= 9


def test_every_function_of_floats(here):
    x = torch.linspace(-3, 3, 1003, device=here)
    positive = x.abs() + 0.1
    names = [
        *("abs", "ceil", "cos", "erf", "exp", "expm1", "floor", "frac", "log1p"),
        *("neg", "relu", "round", "rsqrt", "sigmoid", "sign", "sin", "sqrt", "tanh"),
        *("trunc", "isnan", "isinf", "isfinite", "square", "reciprocal", "log", "tan"),
        *("atan", "asinh", "sinh", "cosh", "exp2", "log2", "log10", "logit", "sinc"),
    ]

    def unary(x, p):
        return [getattr(torch, name)(t * 1.5) for name in names for t in (x, p)]

    check(unary, x, positive)
    two = ["add", "sub", "mul", "div", "pow", "atan2", "fmod", "remainder", "maximum"]
    two += ["minimum", "fmax", "fmin", "hypot", "copysign", "logaddexp", "xlogy", "eq"]

    def binary(x, p):
        return [
            getattr(torch, name)(a * 2, b + 1)
            for name in two
            for a, b in ((x, p), (p, x), (p, p.flip(0)))
        ]

    check(binary, x, positive)
    layers = ["gelu", "silu", "mish", "elu", "selu", "softplus", "hardswish", "relu6"]
    check(lambda x: [getattr(F, name)(x * 2) for name in layers], x)
    check(lambda x: [F.gelu(x, approximate="tanh"), x.clamp(-1, 2), x.lerp(-x, 0.3)], x)
    check(lambda x: [torch.addcmul(x, x, x + 1, value=3), torch.lgamma(x + 5)], x)


def test_what_runs_at_once(here):
    n = torch.arange(N, device=here)
    z = torch.complex(n.float(), n.float())
    assert check(lambda x: x * 2 + 1, z) == []
    assert check(lambda x: torch.lcm(torch.lcm(x, x), x), n) == []


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_shifts(here, name):
    dtype = getattr(torch, name)
    x = torch.linspace(-(2**62), 2**62, N, dtype=torch.float64).long().view(dtype)[:N]
    by = torch.arange(N).sub(9).fmod(80).to(dtype)
    x, by = x.to(here), by.to(here)
    shifts = "bitwise_right_shift", "bitwise_left_shift"
    check(lambda x, by: (x >> by) + ((x - 3) >> by), x, by)
    check(lambda x, by: ((x + by) << by) >> 2, x, by)
    for number in (-1, 0, 1, 7, 8, 31, 32, 63, 64, 100):
        got = check(lambda x: ((x + 1) >> number) << (number % 5), x)  # noqa: B023
        assert got == [["add", *shifts]]


def test_writes_in_place(here):
    def more(x, y):
        a, b, c = writes(x, y)
        u = c * 2
        u[: N - 1] += u[1:]
        u[::2] = 0
        return a, b, c, u

    x = torch.linspace(-3, 3, N, device=here)
    check(more, x, x.flip(0))


def test_a_fill_that_runs_the_chain_is_alone(here):
    def f(x):
        y = x + x.t()
        x.fill_(2)  # over memory that the chain reads in another order
        return y, x

    check(f, torch.randn(40, 40, device=here))


def test_a_number_in_a_tensor_is_read_in_order(here):
    def f(x, step):
        y = x * step
        step += 1
        return y * step

    x = torch.linspace(-3, 3, N, device=here)
    check(f, x, torch.tensor(2.0, device=here))


# --- gradients ---


def test_gradients(here):
    x, w = torch.randn(2, 31, 67, device=here).unbind()

    def f(x, w):
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = torch.tanh(x * w + x)
        (gelu(y) * torch.sigmoid(y) - x).square().mean().backward()
        return x.grad, w.grad

    found = check(f, x, w)
    assert max(map(len, found)) >= 6


def test_training(here):
    def train(net, data):
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        for _ in range(3):
            out = net(data)
            optimizer.zero_grad()
            (gelu(out) * out).mean().backward()
            optimizer.step()
        return [p.detach() for p in net.parameters()]

    def make():
        torch.manual_seed(0)
        layers = [torch.nn.Linear(9, 40), torch.nn.LayerNorm(40), torch.nn.SiLU()]
        return torch.nn.Sequential(*layers, torch.nn.Linear(40, 20)).to(here)

    data = torch.ones(30, 9, device=here)
    want = train(make(), data)
    with torch.fused():
        assert same(train(make(), data), want)
    assert same(train(torch.compile(make()), data), want)


# --- order ---


def test_streams(here, schedule):
    x = torch.linspace(-3, 3, N, device=here)
    want = [t.cpu() for t in (x * 2 + 1, gelu(x * 2 + 1))]
    side = torch.cuda.Stream()
    with torch.fused():
        y = x * 2 + 1
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            z = gelu(y)
        done = side.record_event()
        done.wait()
        y.record_stream(side)
        z.record_stream(torch.cuda.current_stream())
        total = z + 0
    assert same([y.cpu(), total.cpu()], want)


def test_two_devices(two_gpus, schedule):
    a, b = (torch.linspace(-3, 3, N, device=name) for name in two_gpus)

    def f(a, b):
        x, y = a * 2 + 1, b * 3
        y = torch.relu(y - 1)
        z = x.to(b.device) + y
        return x, y, z * z, (z + 1).to(a.device) * x

    found = check(f, a, b)
    assert len(found) >= 3


def test_two_threads(here):
    x = torch.linspace(-3, 3, N, device=here)
    wrong = []

    def work(k):
        torch.cuda.set_device(here)
        for _ in range(20):
            with torch.fused():
                y = torch.relu(x * k + k) - k
                z = y * y
            want = torch.relu(x * k + k) - k
            if not same([y, z], [want, want * want]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in (2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_pinned_copies_and_waits(here, schedule):
    x = torch.linspace(-3, 3, N, device=here)
    host = torch.empty(N, pin_memory=True)
    with torch.fused():
        host.copy_(x * 2 + 1, non_blocking=True)
        y = x * 2 + 1
        torch.cuda.synchronize()
        assert same(host, (x * 2 + 1).cpu())
        assert y[3].item() == host[3]
    event = torch.cuda.Event()
    with torch.fused():
        y = x * 3 + 1
        event.record()
        event.synchronize()
        assert event.query()
    assert same(y, x * 3 + 1)


def test_graphs_capture_fused_kernels(here, tmp_path):
    x = torch.linspace(-3, 3, N, device=here)
    graph, eager = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    graph.enable_debug_mode()
    eager.enable_debug_mode()
    with torch.cuda.graph(graph), torch.fused():
        y = gelu(x)
    with torch.cuda.graph(eager):
        gelu(x)
    counts = []
    for each in (graph, eager):
        each.debug_dump(tmp_path / "graph.dot")
        counts.append((tmp_path / "graph.dot").read_text().count("label="))
    assert counts == [1, 8] or not torch.cuda.is_simulated()
    x.copy_(x.flip(0))
    graph.replay()
    assert same(y, gelu(x))


# --- what is said of it ---


def test_explain(here):
    x = torch.linspace(-3, 3, N, device=here)
    text = torch.compiler.explain(lambda x: torch.relu(x * x + x), x).splitlines()
    assert text[0] == f"{N} elements: 0.0 MB moved, not 0.2"
    assert [row.split()[0] for row in text[1:4]] == ["mul", "add", "relu"]
    assert all("test_fusion_gpu.py:" in row for row in text[1:4])
    assert chains(lambda x: (x * 2).sum(), x)[1] == [["mul", "sum"]]


def test_the_profiler_sees_the_kernel(here):
    x = torch.linspace(-3, 3, N, device=here)
    with torch.profiler.profile() as profile, torch.fused():
        torch.relu(x * x + x).sum().item()
    names = [event.name for event in profile.events()]
    assert names.count("fused") == 1 and {"mul", "add", "relu"} <= set(names)


RACES = """
import pydevtensor as torch
torch.cuda.simulate(1, races="error")
x, side = torch.ones(1000, device="cuda"), torch.cuda.Stream()
torch.cuda.synchronize()
with torch.fused():
    y = x * 2
    z = y + 1
    with torch.cuda.stream(side):
        y = z * 3
        y + 1
"""


def test_races_name_the_lines_of_the_program():
    said = python(RACES, fails=True)
    assert "a fused kernel of mul at <string>:10, add at <string>:11: race (RAW" in said
    assert (
        "fused writes them on s1, the default stream of cuda:0, at <string>:8" in said
    )
    assert "at <string>:11\nNothing orders the two" in said


@needs_a_simulator
def test_a_failed_launch_names_its_operations(here):
    x = torch.linspace(-3, 3, N, device=here)
    fails = {"match": r"kernel of mul at \w+.py:\d+, add at .*: CUDA failed while"}
    with pytest.raises(RuntimeError, **fails), torch.fused():
        y = x * 2 + 1
        torch.cuda.sim_fail("launch:1")
    # A call that cannot fail leaves it to the next one that can.
    with torch.fused():
        y = x * 2 + 1
        torch.cuda.sim_fail("launch:1")
        with pytest.raises(RuntimeError, **fails):
            y.data_ptr()
            torch.cuda.synchronize()
    assert same(x * 2, x + x)


def test_errors_come_from_their_call(here):
    x = torch.linspace(-3, 3, N, device=here)
    with torch.fused():
        y = x * 2
        with pytest.raises(RuntimeError, match=r"add: .*shape"):
            y + torch.ones(3, 7, device=here)
        z = y + 1
    assert same([y, z], [x * 2, x * 2 + 1])


def test_memory_of_dead_results_is_given_back(here):
    x = torch.ones(N, device=here)
    torch.cuda.synchronize()
    before = _C._storage_count(torch.device(here))
    with torch.fused():
        y = x
        for _ in range(12):
            y = y * 1.5
        assert _C._storage_count(torch.device(here)) <= before + 2
    assert y[0] == 1.5**12
