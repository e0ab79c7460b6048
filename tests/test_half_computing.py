"""float16 and bfloat16 are computed in float32 and rounded once: sums, products, rows, gradients."""

import math

import numpy as np
import pytest
from halves import EPS, HALVES, drawn, narrowed, of_bits

import pydevtensor as torch

F = torch.nn.functional


# --- computing


@pytest.mark.parametrize("name", HALVES)
def test_sums_are_kept_in_float32(name, device):
    dtype = getattr(torch, name)
    ones = torch.ones(20000, dtype=dtype, device=device)
    assert ones.sum().item() == narrowed(20000, name)
    assert ones.mean().item() == 1
    many = torch.full((3, 30000), 0.1, dtype=dtype, device=device)
    exact = 30000 * many[0, 0].item()
    expected = narrowed(np.float32(exact), name)
    assert many.sum(1).tolist() == [expected] * 3
    assert many.t().sum(0).tolist() == [expected] * 3
    assert (
        abs(many.t().contiguous().mean(0)[1].item() - many[0, 0].item())
        <= EPS[name] / 8
    )
    assert many.norm().dtype is dtype
    square = many[0, 0].item() ** 2 * 90000
    assert abs(many.norm().item() / math.sqrt(square) - 1) <= EPS[name]
    total = ones.sum(dtype=torch.float32)
    assert total.dtype is torch.float32 and total.item() == 20000


@pytest.mark.parametrize("name", HALVES)
def test_reductions(name, device):
    dtype = getattr(torch, name)
    random = np.random.default_rng(3)
    a = narrowed(random.normal(size=(7, 50, 11)).astype(np.float32), name)
    x = torch.tensor(a, device=device).to(dtype)
    for dims in ((), (0,), (1,), (2,), (0, 2)):
        axis = dims or None
        call = [dims] if dims else []
        for function in ("sum", "amax", "amin"):
            found = getattr(x, function)(*call).double().cpu().numpy()
            expected = getattr(np, function)(a, axis=axis)
            if function != "sum":
                assert np.array_equal(found, expected)
            np.testing.assert_allclose(
                found, expected, rtol=EPS[name], atol=1e-4 if function == "sum" else 0
            )
    for dim in (0, 1, 2):
        for function in ("argmax", "argmin"):
            found = getattr(x, function)(dim).cpu().numpy()
            assert np.array_equal(found, getattr(a, function)(dim)), (function, dim)
        values, indices = x.max(dim)
        assert values.dtype is dtype
        assert np.array_equal(values.double().cpu().numpy(), a.max(dim))
        assert np.array_equal(indices.cpu().numpy(), a.argmax(dim))
    assert x.argmax().item() == a.argmax()
    assert (x > 10).any().item() is False and (x == x).all().item() is True
    assert (
        x.any().item() is True
        and torch.zeros(3, dtype=dtype, device=device).any().item() is False
    )
    assert (
        torch.tensor([1, math.nan, 3], dtype=dtype, device=device).argmax().item() == 1
    )
    with_nan = torch.tensor([1, math.nan, 3], dtype=dtype, device=device)
    assert math.isnan(with_nan.max().item()) and math.isnan(with_nan.sum().item())


@pytest.mark.parametrize("name", HALVES)
def test_truth_of_many(name, device):
    """More elements than one stage of a reduction takes."""
    x = torch.ones(300_001, dtype=getattr(torch, name), device=device)
    assert x.all().item() and x.any().item()
    x[299_999] = 0
    assert not x.all().item() and x.any().item()
    assert not (x - x).any().item()


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 5), (5, 4)),
        ((64, 33), (33, 70)),
        ((5, 64, 16), (5, 16, 24)),
        ((300, 500), (500, 20)),
        ((4, 3), (3,)),
        ((6,), (6,)),
        ((2, 1, 4, 8), (3, 8, 2)),
    ],
    ids=str,
)
def test_products(name, left, right, device):
    dtype = getattr(torch, name)
    random = np.random.default_rng(5)
    a = narrowed(random.normal(size=left).astype(np.float32), name)
    b = narrowed(random.normal(size=right).astype(np.float32), name)
    expected = np.matmul(a, b)
    x, y = (torch.tensor(v, device=device).to(dtype) for v in (a, b))
    found = x @ y
    assert found.dtype is dtype
    # Sums in float32, one rounding at the end.
    np.testing.assert_allclose(
        found.double().cpu().numpy(), expected, rtol=EPS[name], atol=1e-4
    )
    if x.ndim > 1 and y.ndim > 1:
        other = x.transpose(-1, -2).contiguous().transpose(-1, -2) @ y
        assert torch.equal(other, found) or np.allclose(
            other.double().cpu().numpy(), expected, rtol=EPS[name], atol=1e-4
        )
    if x.ndim == 2 and y.ndim == 2:
        c = torch.ones(left[0], right[1], dtype=dtype, device=device)
        found = torch.addmm(c, x, y, beta=2, alpha=0.5)
        np.testing.assert_allclose(
            found.double().cpu().numpy(), 2 + 0.5 * expected, rtol=EPS[name], atol=1e-3
        )
    empty = torch.ones(2, 0, dtype=dtype, device=device)
    assert (empty @ empty.t()).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("name", HALVES)
def test_rounded_once(name, device):
    """A function of one element is float32's, rounded."""
    dtype = getattr(torch, name)
    x = torch.linspace(0.1, 4, 2500, device=device).to(dtype)
    for function in (
        "exp",
        "log",
        "sqrt",
        "sin",
        "tanh",
        "sigmoid",
        "erf",
        "reciprocal",
    ):
        found = getattr(torch, function)(x)
        exact = getattr(torch, function)(x.float()).to(dtype)
        assert found.dtype is dtype and torch.equal(found, exact), function
    for function in ("add", "sub", "mul", "div", "atan2", "maximum", "pow", "hypot"):
        y = x.flip(0) if hasattr(x, "flip") else x * 0.5
        found = getattr(torch, function)(x, y)
        exact = getattr(torch, function)(x.float(), y.float()).to(dtype)
        assert found.dtype is dtype and torch.equal(found, exact), function


# Shapes, and the dimension that softmax and the losses go along.
ROWS = [
    ((5, 7), 1),
    ((9, 64), 1),
    ((4, 2048), 1),
    ((2, 4100), 1),
    ((3, 1001), 1),
    ((300, 12), 1),
    ((3, 6, 5), 1),
    ((2, 300, 3), 1),
    ((2, 3, 16), 1),
    ((40, 8, 36), 1),
]


LAYOUTS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "from an odd element": lambda x: torch.cat((x.flatten()[:1], x.flatten()))[1:].view(
        x.shape
    ),
}


def with_gradients(call, tensors, g=None):
    """The result of a call, and the gradients of its tensors."""
    leaves = [t.detach().requires_grad_() for t in tensors]
    y = call(*leaves)
    y.backward(torch.ones_like(y) if g is None else g.to(y.dtype))
    return [y.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("shape", "dim"), ROWS)
@pytest.mark.parametrize("name", HALVES)
def test_rows_are_rounded_once(name, shape, dim, layout, device):
    """What is computed along rows is float32's, rounded."""
    dtype = getattr(torch, name)
    functional = torch.nn.functional
    lay_out = LAYOUTS[layout]
    x = lay_out(drawn(shape, dtype, device))
    g = lay_out(drawn(shape, dtype, device, seed=1))
    wide = lay_out(x.float())  # aligned as x is, so that sums are of the same runs
    last, channels = shape[-1], shape[1]
    weight, bias = drawn((2, last), dtype, device, seed=2)
    w, b = drawn((2, channels), dtype, device, seed=3)
    t = torch.arange(shape[0] * math.prod(shape[2:]), device=device) % channels
    target = t.reshape(shape[0], *shape[2:])
    target[0] = -100
    shares = drawn(shape, dtype, device, seed=4).abs()
    statistics = (drawn(channels, dtype, device), drawn(channels, dtype, device).exp())
    calls = {
        "layer_norm": lambda x, w, b: functional.layer_norm(x, (last,), w, b),
        "plain layer_norm": lambda x: functional.layer_norm(x, shape[1:]),
        "batch_norm": lambda x, w, b: functional.batch_norm(
            x, None, None, w, b, training=True
        ),
        "known batch_norm": lambda x, w, b: functional.batch_norm(
            x, *(s.to(x.dtype) for s in statistics), w, b
        ),
        "cross_entropy": lambda x: functional.cross_entropy(x, target),
        "weighted cross_entropy": lambda x: functional.cross_entropy(
            x, target, w.to(x.dtype).abs(), reduction="none", label_smoothing=0.1
        ),
        "shared cross_entropy": lambda x: functional.cross_entropy(
            x, shares.to(x.dtype), reduction="sum"
        ),
        "nll_loss": lambda x: functional.nll_loss(x, target, w.to(x.dtype).abs()),
    }
    for key, call in calls.items():
        tensors = [x]
        if key == "layer_norm":
            tensors += [weight, bias]
        elif "batch" in key:
            tensors += [w, b]
        like = g if "norm" in key else None
        found = with_gradients(call, tensors, like)
        tensors = [wide, *(t.float() for t in tensors[1:])]
        exact = with_gradients(call, tensors, like)
        for one, other in zip(found, exact, strict=True):
            assert one.dtype is dtype
            assert torch.equal(one, other.to(dtype)), key
    for key in ("softmax", "log_softmax", "logsumexp"):
        call = getattr(torch, key)
        assert torch.equal(call(x, dim), call(wide, dim).to(dtype)), key
    # Their gradients are those of the rounded results.
    found, slope = with_gradients(lambda x: torch.softmax(x, dim), [x], g)
    y, dy = found.float(), g.float()
    exact = y * (dy - (dy * y).sum(dim, keepdim=True))
    assert torch.allclose(slope.float(), exact, rtol=EPS[name], atol=1e-6)
    found, slope = with_gradients(lambda x: torch.log_softmax(x, dim), [x], g)
    exact = dy - found.float().exp() * dy.sum(dim, keepdim=True)
    assert torch.allclose(slope.float(), exact, rtol=EPS[name], atol=1e-4)
    found, slope = with_gradients(lambda x: torch.logsumexp(x, dim), [x])
    exact = (x.float() - found.float().unsqueeze(dim)).exp()
    assert torch.allclose(slope.float(), exact, rtol=EPS[name], atol=1e-6)


@pytest.mark.parametrize("name", HALVES)
def test_rows_into_a_given_tensor(name, device):
    x = drawn((3, 5), getattr(torch, name), device)
    exact = torch.softmax(x, 1)
    out = torch.empty_like(x)
    assert torch.softmax(x, 1, out=out) is out and torch.equal(out, exact)
    assert torch.equal(torch.softmax(x, 1, out=x), exact) and torch.equal(x, exact)


@pytest.mark.parametrize("name", HALVES)
def test_rows_that_are_not_finite(name, device):
    x = of_bits([0x7F80 if name == "bfloat16" else 0x7C00, 0, 0, 0, 0, 1, 0, 0], name)
    x = x.to(device).view(2, 4)
    assert torch.softmax(x, 1).isnan().any(1).tolist() == [True, False]
    assert torch.softmax(-x, 1).isnan().any().item() is False
    assert torch.softmax(x[1], 0).tolist() == [0.25] * 4


@pytest.mark.parametrize("name", HALVES)
def test_dropout(name, device):
    x = drawn((3, 7), getattr(torch, name), device).requires_grad_()
    y = torch.nn.functional.dropout(x, 0.25)
    kept = y.detach() != 0
    exact = (x.detach().float() / 0.75 * kept).to(x.dtype)
    assert torch.allclose(y.detach(), exact, rtol=EPS[name])
    y.sum().backward()
    assert torch.equal(x.grad != 0, kept)


@pytest.mark.parametrize("name", HALVES)
def test_a_gpu_makes_no_float32_copies_of_rows(name, gpu):
    """Each of these is one kernel that moves two bytes an element."""
    dtype = getattr(torch, name)
    x, g = drawn((64, 48), dtype, gpu), drawn((64, 48), dtype, gpu, seed=1)
    w, b = drawn((2, 48), dtype, gpu, seed=2)

    def kernels(call):
        with torch.profiler.profile() as prof:
            call()
        return [e for e in prof.events() if e.kind == "kernel"]

    for call, made, operands in (
        (lambda: torch.softmax(x, 1), "softmax", 2),
        (lambda: torch.log_softmax(x, 1), "log_softmax", 2),
        (lambda: torch.layer_norm(x, (48,), w, b), "layer_norm", 3),
    ):
        (event,) = kernels(call)
        assert event.name == made and event.bytes == operands * x.numel() * 2
    y = torch.softmax(x.clone().requires_grad_(), 1)
    assert [e.name for e in kernels(lambda: y.backward(g))] == ["softmax_backward"]
    target = torch.zeros(64, dtype=torch.int64, device=gpu)
    loss = torch.nn.functional.cross_entropy(x.requires_grad_(), target)
    for event in kernels(loss.backward):
        # Conversions are of the one number that is the loss.
        assert event.name == "cross_entropy_backward" or event.bytes <= 8


@pytest.mark.parametrize("name", HALVES)
def test_in_place_over_itself(name, device):
    dtype = getattr(torch, name)
    x = torch.arange(5000, dtype=torch.float32, device=device).to(dtype)
    expected = (x.float() + x.float()).to(dtype)
    assert x.add_(x) is x and torch.equal(x, expected)
    x.exp_().mul_(0).add_(torch.ones((), dtype=dtype, device=device))
    assert torch.isnan(x).any() or (x == 1).all()
    y = torch.ones(10, dtype=dtype, device=device)
    y += 1
    y[::2] *= 3
    assert y.tolist() == [6, 2] * 5


@pytest.mark.parametrize("name", HALVES)
def test_selecting(name, device):
    dtype = getattr(torch, name)
    x = torch.arange(12, dtype=dtype, device=device).reshape(3, 4)
    index = torch.tensor([2, 0], device=device)
    assert x[index].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert x[x > 9].tolist() == [10, 11]
    assert torch.where(x > 5, x, -1.0).dtype is dtype
    y = torch.zeros(3, dtype=dtype, device=device)
    y.index_add_(
        0,
        torch.tensor([0, 2, 0], device=device),
        torch.ones(3, dtype=dtype, device=device),
    )
    assert y.tolist() == [2, 0, 1]
    assert x.gather(
        1, torch.zeros(3, 1, dtype=torch.int64, device=device)
    ).tolist() == [[0], [4], [8]]
    z = torch.zeros(3, 4, dtype=dtype, device=device)
    z.scatter_add_(1, torch.zeros(3, 4, dtype=torch.int64, device=device), x)
    assert z[:, 0].tolist() == [6, 22, 38]
    x.fill_(0.1)
    assert (x == torch.tensor(0.1, dtype=dtype, device=device)).all()


# --- gradients


@pytest.mark.parametrize("name", HALVES)
def test_gradients(name, device):
    dtype = getattr(torch, name)
    x = torch.tensor([[0.5, 2.0], [-1.0, 3.0]], device=device, requires_grad=True)
    h = x.to(dtype)
    loss = ((h @ h).tanh() * 2 + h.exp()).sum()
    loss.backward()
    assert x.grad.dtype is torch.float32 and loss.dtype is dtype
    y = x.detach().requires_grad_()
    ((y @ y).tanh() * 2 + y.exp()).sum().backward()
    np.testing.assert_allclose(
        x.grad.cpu().numpy(),
        y.grad.cpu().numpy(),
        rtol=8 * EPS[name],
        atol=8 * EPS[name],
    )
    leaf = torch.ones(3, dtype=dtype, device=device, requires_grad=True)
    (leaf * leaf).sum().backward()
    assert leaf.grad.dtype is dtype and leaf.grad.tolist() == [2, 2, 2]


LENGTHS = {
    **{f"norm {p}": lambda x, y, p=p: x.norm(p, 1) for p in (1, 1.5, 2, 3)},
    **{
        f"normalize {p}": lambda x, y, p=p: F.normalize(x, p)
        for p in (1, 2, 3, float("inf"))
    },
    "norm of all": lambda x, y: x.norm(),
    "cosine_similarity": F.cosine_similarity,
    "pairwise_distance": F.pairwise_distance,
    "dist": torch.dist,
    "renorm": lambda x, y: x.renorm(2, 0, 0.5),
    "layer_norm": lambda x, y: F.layer_norm(x, (4,)),
    "rms_norm": lambda x, y: F.rms_norm(x, (4,)),
    "hypot": torch.hypot,
}


@pytest.mark.parametrize("length", [1e-3, 1e-2, 1, 1e3, 5e3])
@pytest.mark.parametrize("function", LENGTHS)
def test_gradients_of_short_and_long_vectors(function, length, device):
    """What a gradient passes through underflows or overflows only where it does itself."""

    def run(*inputs):
        inputs = [x.requires_grad_() for x in inputs]
        result = LENGTHS[function](*inputs).float()
        loss = (
            result
            * (torch.arange(result.numel(), device=device) % 3 + 0.5).view(result.shape)
        ).sum()
        return torch.autograd.grad(loss, inputs, allow_unused=True)

    steps = torch.arange(12.0, device=device).reshape(3, 4)
    given = [((steps * k % 11 - 5) / 5 * length).half() for k in (7, 9)]
    wide = run(*(x.float() for x in given))
    for found, expected in zip(run(*given), wide, strict=True):
        if found is None:
            continue
        expected = expected.half().float()
        top = expected[expected.isfinite()].abs().max().item()
        assert (
            (found.float() - expected).nan_to_num(0.0).abs() <= 2e-2 * top + 1e-6
        ).all()
        assert found.isfinite().equal(expected.isfinite())


# --- beside float32

TOGETHER = {
    "add": lambda x, y, z: x + y,
    "rsub": lambda x, y, z: torch.sub(y, x, alpha=3),
    "mul by a column": lambda x, y, z: x * y[:, :1],
    "div by a row": lambda x, y, z: y[0] / x,
    "pow": lambda x, y, z: x.abs() ** y,
    "less": lambda x, y, z: x < y,
    "addcmul": lambda x, y, z: torch.addcmul(y, x, z, value=0.5),
    "where": lambda x, y, z: torch.where(x > 0, x, y),
    "transposed": lambda x, y, z: x.t() - y.t(),
    "across": lambda x, y, z: x[:7, :7] * y[:7, :7].t(),
    "apart": lambda x, y, z: x[:, 1::2] + y[:, :-1:2],
    "without dimensions": lambda x, y, z: x + y[0, 0],
}


@pytest.mark.parametrize("name", HALVES)
def test_halves_beside_float32(name, device):
    """What float32 would give of their values, and gradients of each operand's type."""
    dtype, other = getattr(torch, name), getattr(torch, HALVES[name == HALVES[0]])
    for rows, columns in ((7, 9), (16, 64), (33, 1001)):
        wide = [torch.randn(rows, columns, device=device) for _ in "xyz"]
        x, y, z = wide[0], wide[1].to(dtype), wide[2].to(other)
        for what, call in TOGETHER.items():
            found = call(x, y, z)
            expected = call(x, y.float(), z.float())
            assert found.dtype is expected.dtype, what
            assert torch.equal(found.nan_to_num(), expected.nan_to_num()), what
        given = [x.clone().requires_grad_(), y.clone().requires_grad_()]
        wide = [t.detach().float().requires_grad_() for t in given]
        torch.tanh(given[0] * given[1] + given[1]).sum().backward()
        torch.tanh(wide[0] * wide[1] + wide[1]).sum().backward()
        assert torch.equal(given[0].grad, wide[0].grad)
        close = (given[1].grad.float() - wide[1].grad).abs()
        assert given[1].grad.dtype is dtype
        assert (close <= 4 * EPS[name] * (1 + wide[1].grad.abs())).all()


@pytest.mark.parametrize("name", HALVES)
def test_results_of_float32_in_halves(name, device):
    dtype, other = getattr(torch, name), getattr(torch, HALVES[name == HALVES[0]])
    wide = torch.randn(17, 66, device=device)
    x = torch.randn(17, 66, device=device).to(dtype)
    expected = (x.float() + wide).to(dtype)
    for target in (x.clone(), x.clone().t().contiguous().t()):
        target += wide
        assert torch.equal(target, expected)
    target = torch.empty(17, 66, dtype=dtype, device=device)
    assert torch.add(wide, x, out=target) is target and torch.equal(target, expected)
    torch.mul(wide, x.to(other), out=target)
    assert torch.equal(target, (wide * x.to(other).float()).to(dtype))
    torch.exp(wide, out=target)
    assert torch.equal(target, wide.exp().to(dtype))
    # The memory of a target may be that of an operand of another type.
    whole = wide.flatten()[:1024].clone()
    part = whole.view(dtype)[:1024]
    expected = (whole + part.float()).to(dtype)
    part += whole
    assert torch.equal(part.nan_to_num(), expected.nan_to_num())
    part = whole.view(dtype)[:1024]
    expected = whole * part.float()
    whole *= part
    assert torch.equal(whole.nan_to_num(), expected.nan_to_num())


MASKED = {
    "mul": lambda x, m: x * m,
    "mul of a number": lambda x, m: m * 0.5,
    "div": lambda x, m: m / x,
    "by a column": lambda x, m: x + m[:, :1],
    "transposed": lambda x, m: x.t() + m.t(),
    "apart": lambda x, m: x[:, 1::2] * m[:, :-1:2],
    "greater": lambda x, m: x > m,
    "addcmul": lambda x, m: torch.addcmul(x, x, m, value=0.5),
    "first": lambda x, m: torch.addcmul(m, x, x) if x.dtype is torch.float32 else x,
    "in place": lambda x, m: x.clone().mul_(m),
}


@pytest.mark.parametrize("name", ["float32", *HALVES])
@pytest.mark.parametrize("kind", ["bool", "uint8"])
def test_masks_beside_floats(kind, name, device):
    """Masks are the numbers 0 and 1, whatever byte a true bool is."""
    for rows, columns in ((7, 9), (16, 64), (33, 1001)):
        x = torch.randn(rows, columns, device=device).to(getattr(torch, name))
        bytes_ = torch.randint(0, 4, (rows, columns), dtype=torch.uint8).to(device)
        m = bytes_.view(torch.bool) if kind == "bool" else bytes_
        for what, call in MASKED.items():
            found, expected = call(x, m), call(x, m.to(x.dtype))
            if what == "mul of a number":
                assert found.dtype is torch.float32
                expected = m.float() * 0.5
            assert found.dtype is expected.dtype, what
            assert torch.equal(found.nan_to_num(), expected.nan_to_num()), what
    x = x.detach().requires_grad_()
    (x * m).sum().backward()
    assert torch.equal(x.grad, m.to(x.dtype))
    assert torch.equal(m.sqrt(), m.float().sqrt())


@pytest.mark.parametrize("name", HALVES)
def test_halves_beside_float32_take_one_launch(name, gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")
    dtype = getattr(torch, name)
    x, y = torch.randn(8, 64, device=gpu), torch.randn(8, 64, device=gpu).to(dtype)
    mask = x > 0
    launches = lambda: torch.cuda.sim_counters(gpu)["launches"]
    for call in (
        lambda: x + y,
        lambda: x.add_(y),
        lambda: y.mul_(x),
        lambda: y > x,
        lambda: torch.addcmul(x, y, y),
        lambda: x * mask,
        lambda: y.mul_(mask),
    ):
        before = launches()
        call()
        assert launches() == before + 1


@pytest.mark.parametrize("name", HALVES)
def test_modules(name, device):
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)
    )
    net = net.to(device)
    plain = net(torch.ones(2, 4, device=device))
    net = net.half() if name == "float16" else net.bfloat16()
    dtype = getattr(torch, name)
    assert all(p.dtype is dtype for p in net.parameters())
    out = net(torch.ones(2, 4, dtype=dtype, device=device))
    assert out.dtype is dtype
    np.testing.assert_allclose(
        out.float().detach().cpu().numpy(),
        plain.detach().cpu().numpy(),
        rtol=4 * EPS[name],
        atol=4 * EPS[name],
    )
    out.sum().backward()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    before = net[2].bias.item()
    optimizer.step()
    assert net[2].bias.dtype is dtype and net[2].bias.item() != before
