"""float16 and bfloat16: bits, conversions, accuracy and special cases."""

import copy
import io
import math
import pickle
import warnings

import numpy as np
import pytest

import pydevtensor as torch

F = torch.nn.functional
HALVES = ["float16", "bfloat16"]
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
OTHERS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


def of_bits(bits, name, device="cpu"):
    """The tensor whose elements have these bits: by way of a pickle's bytes."""
    bits = np.asarray(bits, dtype=np.uint16)
    if name == "float16":
        return torch.from_numpy(bits.view(np.float16)).to(device)
    words = (bits.astype(np.uint32) << 16).view(np.float32)
    return torch.from_numpy(words).to(device).to(torch.bfloat16)


def widened(bits, name):
    """What these bits mean, by the definition of the type, as float64."""
    bits = np.asarray(bits, dtype=np.int64)
    mantissa_bits, bias = (10, 15) if name == "float16" else (7, 127)
    sign = np.where(bits >> 15, -1.0, 1.0)
    mantissa = (bits & ((1 << mantissa_bits) - 1)).astype(np.float64)
    exponent = (bits >> mantissa_bits) & (31 if name == "float16" else 255)
    top = 31 if name == "float16" else 255
    value = np.where(
        exponent == 0,
        np.ldexp(mantissa, 1 - bias - mantissa_bits),
        np.ldexp(mantissa + 2.0**mantissa_bits, exponent - bias - mantissa_bits),
    )
    value = np.where(exponent == top, np.where(mantissa > 0, np.nan, np.inf), value)
    return sign * value


ALL = np.arange(65536)


def narrowed(values, name):
    """Rounded to the nearest number of the type, halfway to the even one: by search among
    all of its numbers, as float64."""
    finite = ALL[: 0x7C00 if name == "float16" else 0x7F80]
    numbers = widened(finite, name)
    values = np.asarray(values, dtype=np.float64)
    size = np.abs(values)
    # One more step above the greatest number: from half of it on, infinity.
    beyond = 2 * numbers[-1] - numbers[-2]
    numbers = np.append(numbers, beyond)
    above = np.clip(np.searchsorted(numbers, size), 1, len(numbers) - 1)
    low, high = numbers[above - 1], numbers[above]
    nearer = np.where(size - low < high - size, above - 1, above)
    tie = size - low == high - size
    chosen = np.where(tie, np.where((above - 1) % 2 == 0, above - 1, above), nearer)
    result = np.where(chosen == len(numbers) - 1, np.inf, numbers[chosen])
    result = np.where(size == 0, 0.0, np.where(np.isnan(values), np.nan, result))
    return np.copysign(result, values)


def same_numbers(found, expected):
    found = np.asarray(found, dtype=np.float64)
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found[known]), np.signbit(expected[known]))


# --- bits


@pytest.mark.parametrize("name", HALVES)
def test_all_bits_to_float(name, device):
    x = of_bits(ALL, name, device)
    expected = widened(ALL, name)
    same_numbers(x.float().cpu().numpy(), expected)
    same_numbers(x.double().cpu().numpy(), expected)
    same_numbers(x.cpu().tolist(), expected)
    if name == "float16":
        reference = ALL.astype(np.uint16).view(np.float16).astype(np.float32)
        known = ~np.isnan(reference)
        assert np.array_equal(
            x.float().cpu().numpy().view(np.uint32)[known],
            reference.view(np.uint32)[known],
        )


@pytest.mark.parametrize("name", HALVES)
def test_every_number_comes_back(name, device):
    x = of_bits(ALL, name, device)
    back = x.float().to(x.dtype)
    same_numbers(back.double().cpu().numpy(), widened(ALL, name))
    if name == "float16":
        bits = back.cpu().numpy().view(np.uint16)
        known = ~np.isnan(widened(ALL, name))
        assert np.array_equal(bits[known], ALL[known])


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("step", [0, 1, -1])
def test_rounding_between_neighbours(name, step, device):
    """Halfway between two neighbours, and a float32 beside: to the nearest, or even."""
    numbers = widened(ALL[: 0x7C00 if name == "float16" else 0x7F80], name)
    middle = ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
    middle = (middle.view(np.int32) + step).view(np.float32)
    edge = np.array([65519.996, 65520, 65536, 1e30, 3.4e38, np.inf, 1e-45, 2.0**-25])
    values = np.concatenate([middle, edge.astype(np.float32)])
    values = np.concatenate([values, -values, [np.float32(np.nan)]])
    expected = narrowed(values, name)
    dtype = getattr(torch, name)
    found = torch.from_numpy(values).to(device).to(dtype)
    same_numbers(found.double().cpu().numpy(), expected)
    # Elements that lie apart go another road.
    apart = torch.from_numpy(np.repeat(values, 2)).to(device)[::2].to(dtype)
    same_numbers(apart.double().cpu().numpy(), expected)
    if name == "float16":
        with np.errstate(over="ignore"):
            same_numbers(values.astype(np.float16).astype(np.float64), expected)


@pytest.mark.parametrize("name", HALVES)
def test_from_double_by_way_of_float(name, device):
    """As PyTorch has it: two roundings, which differ from one just beside a middle."""
    dtype = getattr(torch, name)
    value = 1 + EPS[name] / 2 + 2.0**-40
    x = torch.tensor([value], dtype=torch.float64, device=device)
    assert x.to(dtype).item() == 1
    assert torch.tensor(value, dtype=dtype, device=device).item() == 1


# --- conversions between all pairs


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("other", [*OTHERS, *HALVES])
def test_conversions(name, other, device):
    dtype, target = getattr(torch, name), getattr(torch, other)
    values = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 100.7, 1e-3, 300.0, -300.0, 60000.0]
    values += [math.inf, -math.inf, math.nan]
    x = torch.tensor(values * 9, dtype=torch.float32, device=device).to(dtype)
    same = torch.equal if not target.is_floating_point else None
    by_float = x.float().to(target)
    found = x.to(target)
    assert found.dtype is target
    if same:
        assert same(found, by_float)
    else:
        same_numbers(found.double().cpu().numpy(), by_float.double().cpu().numpy())
    back = found.to(dtype)
    same_numbers(
        back.double().cpu().numpy(), found.float().to(dtype).double().cpu().numpy()
    )
    wide = torch.zeros(len(x), 3, dtype=target, device=device)
    wide[:, 1] = x
    same_numbers(wide[:, 1].double().cpu().numpy(), found.double().cpu().numpy())


@pytest.mark.parametrize("name", HALVES)
def test_large_integers_go_through_float32(name, device):
    dtype = getattr(torch, name)
    n = torch.tensor([2**24 + 1, -(2**62), 65519, 65520, 7], device=device)
    expected = narrowed(n.cpu().numpy().astype(np.float32), name)
    same_numbers(n.to(dtype).double().cpu().numpy(), expected)


# --- numbers, arrays, bytes


def test_numpy_shares_float16_and_lacks_bfloat16():
    x = torch.zeros(3, dtype=torch.float16)
    a = x.numpy()
    a[1] = 2.5
    assert a.dtype == np.float16 and x.tolist() == [0, 2.5, 0]
    b = np.ones(2, dtype=np.float16)
    y = torch.from_numpy(b)
    y[0] = 4
    assert b.tolist() == [4, 1] and y.dtype is torch.float16
    assert torch.tensor(b).dtype is torch.float16
    assert torch.tensor(np.float16(0.1)).dtype is torch.float16
    assert memoryview(x).format == "e"
    z = torch.ones(2, dtype=torch.bfloat16)
    for call in (z.numpy, z.__array__):
        with pytest.raises(TypeError):
            call()
    with pytest.raises((TypeError, BufferError)):
        memoryview(z)


@pytest.mark.parametrize("name", HALVES)
def test_copies_and_pickles(name, device):
    x = torch.tensor([1.5, -2.25, math.inf], dtype=getattr(torch, name), device=device)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert y.dtype is x.dtype and y.device == x.device and torch.equal(x, y)
    file = io.BytesIO()
    torch.save({"x": x, "t": x.reshape(3, 1).t()}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert torch.equal(loaded["x"], x) and loaded["x"].dtype is x.dtype
    assert loaded["t"].shape == (1, 3)


@pytest.mark.parametrize("name", HALVES)
def test_safetensors(name, tmp_path):
    x = torch.tensor([[1.5, -2.25]], dtype=getattr(torch, name))
    torch.safetensors.save_file({"x": x}, tmp_path / "x.safetensors")
    y = torch.safetensors.load_file(tmp_path / "x.safetensors")["x"]
    assert y.dtype is x.dtype and torch.equal(x, y)
    header = (tmp_path / "x.safetensors").read_bytes()
    assert (b'"BF16"' if name == "bfloat16" else b'"F16"') in header


@pytest.mark.parametrize("name", HALVES)
def test_names(name, device):
    dtype = getattr(torch, name)
    x = torch.tensor([1.5, 2], dtype=dtype, device=device)
    assert repr(dtype) == f"torch.{name}" and dtype.itemsize == 2
    assert dtype.is_floating_point and dtype.is_signed and x.is_floating_point()
    assert x.element_size() == 2 and x.numel() * x.element_size() == 4
    kind = "HalfTensor" if name == "float16" else "BFloat16Tensor"
    prefix = "torch." if device == "cpu" else "torch.cuda."
    assert x.type() == prefix + kind
    assert torch.half is torch.float16
    method = x.float().half() if name == "float16" else x.float().bfloat16()
    assert method.dtype is dtype and torch.equal(method, x)
    assert x.item if x.ndim == 0 else x[0].item() == 1.5
    assert float(x[1]) == 2 and int(x[1]) == 2 and f"{x[0]:.2f}" == "1.50"
    where = "" if device == "cpu" else f", device='{x.device}'"
    assert repr(x) == f"tensor([1.5000, 2.0000]{where}, dtype=torch.{name})"


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


def drawn(shape, dtype, device, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(values).to(device).to(dtype)


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


# --- types


def test_promotion_of_the_two():
    h, b = (torch.ones(2, dtype=getattr(torch, name)) for name in HALVES)
    assert (h + b).dtype is torch.float32
    assert torch.promote_types(torch.float16, torch.bfloat16) is torch.float32
    assert torch.result_type(h, b) is torch.float32
    assert (h + 1.5).dtype is torch.float16 and (b + 2**40).dtype is torch.bfloat16
    assert (h + torch.ones(2, dtype=torch.int64)).dtype is torch.float16
    assert (b + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.bfloat16
    assert torch.can_cast(torch.float64, torch.float16)
    assert not torch.can_cast(torch.float16, torch.int64)


def test_default_dtype():
    try:
        torch.set_default_dtype(torch.float16)
        assert torch.tensor(1.5).dtype is torch.float16
        assert (torch.arange(3) / 2).dtype is torch.float16
        assert torch.rand(2).dtype is torch.float16
        assert repr(torch.tensor([1.5])) == "tensor([1.5000])"
        assert (
            repr(torch.tensor([1.5]).float()) == "tensor([1.5000], dtype=torch.float32)"
        )
        assert torch.finfo().dtype == "float16"
    finally:
        torch.set_default_dtype(torch.float32)


def test_finfo_and_iinfo():
    # What PyTorch prints.
    assert repr(torch.finfo(torch.float16)) == (
        "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, "
        "smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)"
    )
    assert repr(torch.finfo(torch.bfloat16)) == (
        "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=bfloat16)"
    )
    assert repr(torch.iinfo(torch.int32)) == (
        "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"
    )
    for name in ("float16", "float32", "float64"):
        found, expected = torch.finfo(getattr(torch, name)), np.finfo(name)
        for fact in ("bits", "eps", "max", "min", "tiny", "smallest_normal"):
            assert getattr(found, fact) == float(getattr(expected, fact)), fact
        assert math.isclose(found.resolution, float(expected.resolution), rel_tol=1e-3)
    b = torch.finfo(torch.bfloat16)
    assert (b.max, b.eps, b.bits) == (3.3895313892515355e38, 0.0078125, 16)
    for name in ("uint8", "int8", "int16", "int32", "int64"):
        found, expected = torch.iinfo(getattr(torch, name)), np.iinfo(name)
        for fact in ("bits", "max", "min"):
            assert getattr(found, fact) == getattr(expected, fact), fact
        assert found.dtype == name
    assert torch.finfo() == torch.finfo(torch.float32) != torch.finfo(torch.float64)
    assert torch.finfo(float).bits == 64
    for wrong in (torch.int32, "x", 3):
        with pytest.raises(TypeError):
            torch.finfo(wrong)
    for wrong in (torch.float32, torch.bool, "x"):
        with pytest.raises(TypeError):
            torch.iinfo(wrong)
    with pytest.raises(TypeError):
        torch.iinfo()
    with pytest.raises(TypeError):
        hash(torch.finfo())


# --- random numbers and ranges


@pytest.mark.parametrize("name", HALVES)
def test_random_numbers_are_those_of_float32_rounded(name, device):
    dtype = getattr(torch, name)

    def drawn(draw, of):
        torch.manual_seed(3)
        return draw(of)

    for draw in (
        lambda of: torch.empty(500, dtype=of, device=device).uniform_(-3, 7),
        lambda of: torch.randn(512, dtype=of, device=device),
        lambda of: torch.randn(7, dtype=of, device=device),
        lambda of: torch.empty(300, dtype=of, device=device).bernoulli_(0.3),
        lambda of: torch.empty(90, dtype=of, device=device).exponential_(2),
    ):
        found, wide = drawn(draw, dtype), drawn(draw, torch.float32)
        # Where rounding reaches the upper bound, it is the lower one.
        wide = wide.to(dtype)
        assert torch.equal(found, torch.where(wide == 7, -3.0, wide))
    u = torch.rand(200000, dtype=dtype, device=device)
    assert u.max().item() < 1 and u.min().item() >= 0
    limit = 2049 if name == "float16" else 257
    n = torch.empty(5000, dtype=dtype, device=device).random_()
    assert n.min().item() >= 0 and limit * 0.9 < n.max().item() < limit


@pytest.mark.parametrize("name", HALVES)
def test_ranges(name, device):
    dtype = getattr(torch, name)
    assert torch.arange(5, dtype=dtype, device=device).tolist() == [0, 1, 2, 3, 4]
    x = torch.arange(0, 3, 0.1, dtype=dtype, device=device)
    exact = narrowed(np.arange(30) * 0.1, name)
    np.testing.assert_allclose(x.double().cpu().numpy(), exact, rtol=EPS[name])
    y = torch.linspace(0, 3, 20, dtype=dtype, device=device)
    np.testing.assert_allclose(
        y.double().cpu().numpy(), np.linspace(0, 3, 20), rtol=EPS[name]
    )
    assert y[-1].item() == 3
    assert torch.full((2,), 0.1, dtype=dtype, device=device)[0].item() == narrowed(
        0.1, name
    )
    assert torch.eye(2, dtype=dtype, device=device).tolist() == [[1, 0], [0, 1]]


def test_what_there_is_no_kernel_for():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.ones(3, dtype=torch.float16)
        with pytest.raises((NotImplementedError, TypeError)):
            torch.bitwise_and(x, x)
        with pytest.raises((NotImplementedError, TypeError)):
            torch.bitwise_not(x)
