"""float16 and bfloat16: bits, conversions, accuracy and special cases."""

import copy
import io
import math
import pickle
import warnings

import numpy as np
import pytest
from halves import ALL, EPS, HALVES, narrowed, of_bits, widened

import pydevtensor as torch

OTHERS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


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
