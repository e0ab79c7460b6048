"""torch.fused() and torch.compile: what is fused and stored, and what runs the queue."""

import copy
import functools
import pickle
import threading

import numpy as np
import pytest
from chains import N, check, heard, line, reports, same, writes

import pydevtensor as torch
from pydevtensor import _C, nn

# --- what is fused ---


def test_a_chain_is_one_pass():
    x = line()
    check(
        lambda a, b: torch.relu(a * b + a), x, x.flip(0), fuses=[["mul", "add", "relu"]]
    )


def test_casts_and_broadcasts():
    images = torch.randint(0, 256, (5, 3, 40, 40), dtype=torch.uint8)
    mean, std = torch.tensor([0.4, 0.5, 0.6]), torch.tensor([0.2, 0.3, 0.25])

    def normalized(images, mean, std):
        return (images.float() / 255 - mean.view(3, 1, 1)) / std.view(3, 1, 1)

    check(normalized, images, mean, std, fuses=[["copy", "div", "sub", "div"]])
    table, row, column = torch.randn(150, 200), torch.randn(200), torch.randn(150, 1)
    check(
        lambda t, r, c: (t * r + c).to(torch.float64) * 0.1,
        *(table, row, column),
        fuses=[["mul", "add", "copy", "mul"]],
    )


BINARY = [
    "pow",
    "atan2",
    "fmod",
    "remainder",
    "copysign",
    "hypot",
    "logaddexp",
    "xlogy",
]


@pytest.mark.parametrize("name", BINARY)
def test_broadcast_functions(name):
    f, table = getattr(torch, name), torch.rand(131, 131) + 0.1
    row, column = table[5].clone(), table[:, 7:8].clone()
    check(lambda t, r, c: (f(t, r), f(t * 1.5, c), f(r, t)), table, row, column)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats(dtype):
    x = line()

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))

    (names,) = check(gelu, x.to(dtype))
    assert len(names) == 8


def test_integers_and_bools():
    a = torch.arange(N) - 9000

    def f(a):
        odd = (a & 1) == 1
        return torch.where(odd, a * 3 + 1, -a), odd, odd | (a > 5)

    (names,) = check(f, a)
    assert len(names) == 8


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64])
def test_numbers_on_the_left(dtype):
    x = torch.arange(N).to(dtype)

    def f(x):
        y = (3 - x) * (2 * x) + 1
        return 1.5 / y, torch.where(x > 5, 7, x), 4 - (5 - (6 - x)), 2 / x

    check(f, x)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_numbers_run_at_once(dtype):
    x = line()
    z = torch.complex(x, x.flip(0)).to(dtype)

    def products(z):
        w = z * z + z
        return w * 2, torch.exp(w), w == z, w.abs(), w.conj() - 1j

    assert sum(map(len, check(products, z))) <= 1  # abs is hypot of real ones

    def mixed(x, z):
        y = x * 2 + 1
        w = y * z + x
        return w.real * 3 - y, w.imag.contiguous() + y, torch.complex(y, -y), w + y

    check(mixed, x, z)


def test_complex_copies_and_fills():
    x = line()

    def parts(x):
        z = torch.complex(x * 2, x + 1)
        z.real.add_(1)
        z.mul_(x)
        y = z.clone()
        z.imag.fill_(3)
        y[::2] = 1 + 2j
        return z, y, y.to(torch.complex128), y.real, z.bool(), torch.view_as_real(y) * 2

    check(parts, x)


def test_what_can_fail_does_not_wait():
    # Integers by a tensor: a divisor of 0 is an error of the call.
    a = torch.arange(N)
    with torch.fused():
        b = a * 2
        with pytest.raises(RuntimeError, match="division of integers by zero"):
            b // a
    assert same(b, a * 2)


def test_small_tensors_run_at_once():
    x = line()
    assert check(lambda a: a * 2 + 1, x[:100]) == []


def test_transposed_operands_run_as_before():
    a, b = torch.randn(150, 150), torch.randn(150, 150)
    check(lambda a, b: torch.relu(a * b.t() + a), a, b)
    check(lambda a, b: torch.relu(a.t() * b.t() + 1), a, b)
    check(lambda a: (a * 2).t() * a, a)


def test_long_chains_are_cut():
    x = line()

    def f(x):
        for k in range(40):
            x = x * 1.01 + k
        return x

    assert [len(names) for names in check(f, x)] == [16] * 5


def test_many_broadcasts():
    rows = [torch.randn(150) for _ in range(9)]
    check(lambda t, *rows: functools.reduce(lambda a, b: a * b, rows, t),
          torch.randn(200, 150), *rows)  # fmt: skip


# --- what is stored ---


def stores(f, *args):
    return [[step[2:] for step in steps] for *_, steps in reports(f, *args)]


def test_results_that_nobody_holds_are_not_stored():
    x = line()
    stored, passed, dropped = (True, True), (False, True), (False, False)
    assert stores(lambda a: torch.relu(a * 2 + 1), x) == [[passed, passed, stored]]

    def keeps(a):
        b = a * 2
        return b, b + 1

    assert stores(keeps, x) == [[stored, stored]]
    assert stores(lambda a: [a * 2, a + 1][1], x) == [[dropped, stored]]
    # A view holds what it shows.
    assert stores(lambda a: [(a * 2)[5:9], a + 1], x) == [[stored, stored]]


def test_memory_of_dead_results_is_given_back():
    y = torch.ones(N)
    before = _C._storage_count(torch.device("cpu"))
    with torch.fused():
        for _ in range(12):
            y = y * 1.5
        # The input, the last result, and the one before until the next step.
        assert _C._storage_count(torch.device("cpu")) <= before + 2
    assert y[0] == 1.5**12


# --- what runs the queue ---


@pytest.mark.parametrize(
    "read",
    [
        lambda y: y.sum().item(),
        lambda y: y[7].item(),
        lambda y: y.tolist()[3],
        lambda y: float(y.numpy()[3]),
        lambda y: memoryview(y)[3],
        lambda y: bytes(y.untyped_storage())[12:16],
        lambda y: torch.from_dlpack(y)[3].item(),
        lambda y: str(y),
        lambda y: y.sort().values[3].item(),
        lambda y: (y.view(torch.int32) + 1)[3].item(),
        lambda y: torch.equal(y, y.clone()),
        lambda y: pickle.loads(pickle.dumps(y))[3].item(),
        lambda y: copy.deepcopy(y)[3].item(),
        lambda y: y[torch.tensor([3, 4])].tolist(),
        lambda y: (y[1:] - y[:-1])[3].item(),
        lambda y: (y.view(-1, 20011).t() @ y[:3].view(1, 3)).tolist()[3],
        lambda y: bool((y > 0).any()),
    ],
)
def test_reads(read):
    x = line()
    want = read(x * 2 + 1)
    with torch.fused():
        y = x * 2 + 1
        assert read(y) == want


def test_a_read_of_what_a_chain_reads():
    x = line()
    array = x.clone()
    with torch.fused():
        y = array * 2
        array.numpy()[:] = 0  # the chain ran before the program had the address
    assert same(y, x * 2)
    with torch.fused():
        z = array + 1  # NumPy may write at any time: it runs at once
        array.numpy()[:] = 5
    assert same(z, torch.ones(N))


def test_memory_of_others():
    array = np.linspace(0, 1, N, dtype=np.float32)
    ours = torch.from_numpy(array)
    with torch.fused():
        y = ours + 1
        array[:] = 7
        ours.mul_(2)
        assert array[5] == 14
    assert y[0] == 1


def test_another_thread_reads():
    x = line()
    with torch.fused():
        y = x * 2 + 1
        seen = []
        other = threading.Thread(target=lambda: seen.append((y + 1, y.tolist()[3])))
        other.start()
        other.join()
    assert same(seen[0][0], x * 2 + 1 + 1)
    assert seen[0][1] == y[3]


def test_two_threads_collect():
    x = line()
    wrong = []

    def work(k):
        for _ in range(50):
            with torch.fused():
                y = torch.relu(x * k + k) - k
                z = y * y
            if not same(
                [y, z], [torch.relu(x * k + k) - k, (torch.relu(x * k + k) - k) ** 2]
            ):
                wrong.append(k)  # fmt: skip

    threads = [threading.Thread(target=work, args=(k,)) for k in (2, 3, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_errors_name_their_call():
    x = line()
    with torch.fused():
        y = x * 2
        with pytest.raises(RuntimeError, match=r"add: .*shape"):
            y + torch.ones(3, 7)
        with pytest.raises(RuntimeError, match="add: "):
            y.add_(torch.ones(2, N))
        z = y + 1
    assert same([y, z], [x * 2, x * 2 + 1])


def test_an_exception_leaves_what_was_computed():
    x = line()
    with pytest.raises(KeyError), torch.fused():
        y = x * 2 + 1
        raise KeyError
    assert same(y, x * 2 + 1)


# --- writes in place ---


def test_writes_in_place():
    x = line()
    check(writes, x, x.flip(0))


def test_writes_to_views():
    x = line()

    def rows(t):
        out = torch.empty(3, t.numel())
        out[0] = t * 2
        out[1] = out[0] + t
        out[2] = out[1] * out[0]
        out[0].add_(1)
        return out, out[0] * out[2]

    check(rows, x)

    def parts(t):
        u = t * 2
        v = u[: N - 1]
        v += u[1:]
        u[::2] = 0
        return u + 1, v

    check(parts, x)


def test_out():
    x = line()

    def f(x):
        out = torch.empty(N)
        torch.mul(x, 2, out=out)
        y = out + 1
        torch.add(x, y, out=out)
        return out, y

    check(f, x)


def test_a_number_in_a_tensor_is_read_when_it_is_used():
    x = line()

    def f(x, step):
        y = x * step
        step += 1
        return y * step

    check(f, x, torch.tensor(2.0))


# --- gradients ---


def loss_of(x, w):
    y = torch.tanh(x * w + x)
    return (y * torch.sigmoid(y) - x).sum()


def test_gradients():
    x = line()
    w = torch.linspace(1, 2, N)
    got, want = [], []
    for into, mode in ((got, True), (want, False)):
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        if mode:
            with torch.fused():
                loss = loss_of(a, b)
        else:
            loss = loss_of(a, b)
        loss.backward()
        into += [loss.detach(), a.grad, b.grad]
    assert same(got, want)


def test_the_backward_pass_is_fused():
    x = line()
    a = x.clone().requires_grad_()
    with torch.fused():
        loss = loss_of(a, x)
    with heard() as found:
        loss.backward()
    assert max(len(steps) for *_, steps in found) > 3


def test_gradients_of_gradients():
    x = line()

    def f(a):
        a = a.clone().requires_grad_()
        (g,) = torch.autograd.grad((a.exp() * a).sum(), a, create_graph=True)
        (h,) = torch.autograd.grad((g * g).sum(), a)
        return g.detach(), h

    check(f, x / 3)


def test_training():
    def train(net, data):
        net = copy.deepcopy(net)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        for _ in range(3):
            out = net(data)
            loss = (torch.nn.functional.gelu(out) * out).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [p.detach() for p in net.parameters()]

    net = nn.Sequential(
        nn.Linear(30, 200), nn.Tanh(), nn.LayerNorm(200), nn.Linear(200, 200), nn.SiLU()
    )
    want = train(net, torch.ones(150, 30))
    compiled = torch.compile(copy.deepcopy(net))
    assert same(train(compiled, torch.ones(150, 30)), want)
    with torch.fused():
        assert same(train(net, torch.ones(150, 30)), want)


# --- compile ---


def test_compile_of_functions():
    x = line()

    @torch.compile(mode="reduce-overhead", fullgraph=True)
    def f(x):
        """Doc."""
        return torch.relu(x * x + x)

    assert f.__name__ == "f" and f.__doc__ == "Doc."
    assert same(f(x), torch.relu(x * x + x))
    assert torch.compile(len, disable=True) is len
    assert torch.compile(disable=True)(len) is len
    text = f.explain(x).splitlines()
    assert text[0] == f"{N} elements: 0.2 MB moved, not 0.6"
    assert [line.split()[0] for line in text[1:4]] == ["mul", "add", "relu"]
    assert all("test_fusion.py:" in line for line in text[1:4])
    assert text[4] == "  ended by: the end of the block"
    assert torch.compiler.explain(abs, x[:5]) == "nothing was fused"


def test_compile_of_generators():
    x = line()

    @torch.compile
    def f(x):
        while True:
            x = x * 2 + 1
            yield x

    values = f(x)
    next(values)
    assert same(next(values), (x * 2 + 1) * 2 + 1)


def test_compile_of_modules():
    x = line()

    class Net(nn.Module):
        def forward(self, x):
            return torch.relu(x * x + x)

    net = Net()
    assert torch.compile(net) is net
    with heard() as found:
        y = net(x)
    assert len(found) == 1
    assert same(y, Net()(x))
    assert list(net.state_dict()) == []
    again = copy.deepcopy(net)
    assert again._fuses and again._has_hooks
    layer = nn.ReLU()
    layer.compile()
    assert same(pickle.loads(pickle.dumps(layer))(x), x.relu())


def test_compiled_modules_are_those_that_programs_look_for():
    """PyTorch's wrap the module: _orig_mod is the module, and begins each key."""
    net = nn.Linear(2, 1)
    assert not hasattr(net, "_orig_mod")
    wrapped = {f"_orig_mod.{key}": value for key, value in net.state_dict().items()}
    with pytest.raises(RuntimeError, match=r"_orig_mod\.weight"):
        net.load_state_dict(wrapped)
    other = torch.compile(nn.Linear(2, 1))
    assert other._orig_mod is other
    assert other.load_state_dict(wrapped).missing_keys == []
    assert same(other.weight, net.weight)
    assert [*other.state_dict()] == ["weight", "bias"]


def test_stances():
    x = line()
    compiled = torch.compile(lambda x: torch.relu(x * x + x))
    net = torch.compile(nn.Softsign())

    def fused_calls(*, eagerly):
        with heard() as found:
            y = compiled(x), net(x)
        assert same(y, (torch.relu(x * x + x), nn.Softsign()(x)))
        assert len(found) == (0 if eagerly else 2)

    fused_calls(eagerly=False)
    torch.compiler.set_stance("force_eager")
    fused_calls(eagerly=True)
    with torch.compiler.set_stance("eager_then_compile"):
        fused_calls(eagerly=False)
        torch.compiler.set_stance("force_eager")(fused_calls)(eagerly=True)
        fused_calls(eagerly=False)
    fused_calls(eagerly=True)
    torch.compiler.set_stance("default")
    fused_calls(eagerly=False)
    with pytest.raises(RuntimeError, match="give one of default, force_eager"):
        torch.compiler.set_stance("eager")
    with pytest.raises(RuntimeError, match="with 'default' alone"):
        torch.compiler.set_stance("force_eager", force_backend="eager")
    fused_calls(eagerly=False)


def test_the_default_backend_is_remembered():
    torch.compiler.set_default_backend("eager")
    assert torch.compiler.get_default_backend() == "eager"
    torch.compiler.set_default_backend(None)
    assert torch.compiler.get_default_backend() == "inductor"
    with pytest.raises(TypeError, match="int was given; give a name or a function"):
        torch.compiler.set_default_backend(3)


def test_blocks_nest():
    x = line()
    with torch.fused():
        with torch.fused():
            y = x * 2
        z = y + 1
    assert same(z, x * 2 + 1)


def test_two_kinds_of_devices(device):
    x = torch.linspace(-3, 3, N).to(device)
    host = x.cpu()

    def f(x, host):
        y = torch.relu(x * x + x)
        a = host * 2
        z = y + 1
        return z.cpu() * 2 + a, (a + 1).to(x.device) * y

    check(f, x, host)
