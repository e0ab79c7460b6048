"""Every row of the op tables on every device, type and layout, against NumPy.

Floating results may differ from NumPy's in float64 by a few units in the last place of
their own type; everything else is exact.
"""

import math

import numpy as np
import pytest
from against_numpy import LAYOUTS, TYPES, check, made, same
from cases import Cases
from op_tables import BINARY, TERNARY, UNARY
from references import formula, polygamma, reference

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck


def values(row, name, shape, seed=0):
    """Values of the row's range in a type."""
    random = np.random.default_rng(seed)
    low, high = row.low, row.high
    if name == "bfloat16":
        drawn = random.uniform(low, high, shape).astype(np.float32)
        return (drawn.view(np.uint32) & 0xFFFF0000).view(np.float32)
    if "float" in name:
        return random.uniform(low, high, shape).astype(TYPES[name])
    if name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    low = max(low, 0) if name == "uint8" else low
    low, high = min(math.ceil(low), math.floor(high)), math.ceil(high)
    return random.integers(low, high + 1, shape).astype(TYPES[name])


def doubled(a):
    """In float64, so that the reference is not what limits the comparison."""
    return a.astype(np.float64) if a.dtype.kind == "f" else a


def expected_unary(row, a):
    if row.kind in ("FLOAT", "MATH") and a.dtype.kind != "f":
        a = a.astype(np.float64)
    if row.kind == "COUNT" and a.dtype == bool:
        a = a.astype(np.int64)
    with np.errstate(all="ignore"):
        return reference(row)(doubled(a))


@pytest.mark.parametrize("row", UNARY, ids=lambda row: row.name)
def test_unary(row, device):
    with Cases() as case:
        for name in TYPES:
            with case(name):
                check_unary(row, name, device)


def check_unary(row, name, device):
    if not row.takes(name):
        with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
            getattr(torch, row.name)(
                torch.zeros(2, dtype=getattr(torch, name), device=device)
            )
        return
    a = values(row, name, (5, 37))
    expected = expected_unary(row, a)
    for layout in LAYOUTS:
        x = layout(made(a, name, device))
        found = getattr(torch, row.name)(x)
        check(found, expected, layout.__name__)
        assert same(getattr(x, row.name)(), found)
        out = torch.empty(0, dtype=found.dtype, device=device)
        assert getattr(torch, row.name)(x, out=out) is out and same(out, found)
        if found.dtype is x.dtype:
            target = layout(made(a, name, device))
            assert getattr(target, row.name + "_")() is target
            assert same(target, found)
    for shape in ((), (0,), (2, 0), (1,)):
        b = values(row, name, shape)
        check(
            getattr(torch, row.name)(made(b, name, device)),
            expected_unary(row, b),
            shape,
        )


def expected_binary(row, a, b):
    if row.kind in ("FLOAT", "MATH") and a.dtype.kind != "f":
        a, b = a.astype(np.float64), b.astype(np.float64)
    if a.dtype == bool:
        logic = {"add": np.logical_or, "mul": np.logical_and}
        if row.name in logic:
            return logic[row.name](a, b)
        if row.name == "bitwise_left_shift":
            return np.logical_and(a, np.logical_not(b) | True) & a
        if row.name == "bitwise_right_shift":
            return a & ~b | (a & b & False)
    with np.errstate(all="ignore"):
        return reference(row)(doubled(a), doubled(b))


NO_BOOLS = ("bitwise_left_shift", "bitwise_right_shift")
# Of a tensor and an int: test_polygamma has it.
PAIRS = [row for row in BINARY if row.name != "polygamma"]


@pytest.mark.parametrize("row", PAIRS, ids=lambda row: row.name)
def test_binary(row, device):
    with Cases() as case:
        for name in TYPES:
            with case(name):
                check_binary(row, name, device)


def check_binary(row, name, device):
    function = getattr(torch, row.name)
    if not row.takes(name) or (name == "bool" and row.name in NO_BOOLS):
        if "shift" not in row.name:
            x = torch.ones(2, dtype=getattr(torch, name), device=device)
            # Tensors bound bools (golden/edges.json), numbers do not.
            other = True if row.name.startswith("clamp") else x
            with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
                function(x, other)
        return
    for left, right in (
        ((5, 37), (5, 37)),
        ((5, 1), (37,)),
        ((), (5, 37)),
        ((5, 37), (1,)),
    ):
        a, b = values(row, name, left, 1), values(row, name, right, 2)
        if row.kind == "DIVIDES" or row.name == "div":
            b = np.where(b == 0, 1, b).astype(b.dtype)
        expected = expected_binary(row, a, b)
        for layout in LAYOUTS:
            x, y = made(a, name, device), made(b, name, device)
            x = layout(x) if x.ndim == 2 else x
            y = layout(y) if y.ndim == 2 else y
            check(function(x, y), expected, (layout.__name__, left, right))
    empty = torch.zeros(2, 0, dtype=getattr(torch, name), device=device)
    assert tuple(function(empty, empty).shape) == (2, 0)


def test_formulas_agree_with_numpy():
    """A row that NumPy lacks is compared with its formula: with all others, too."""
    for row in (*UNARY, *PAIRS, *TERNARY):
        name = "float64" if row.takes("float64") else "int64"
        inputs = [values(row, name, (5, 37), seed) for seed in range(row.arity)]
        with np.errstate(all="ignore"):
            found, expected = formula(row)(*inputs), reference(row)(*inputs)
        np.testing.assert_allclose(found, expected, 1e-12, 1e-12, err_msg=row.name)


def test_shifts_beyond_the_width(device):
    x = torch.tensor([1, -1, 5], dtype=torch.int32, device=device)
    assert (x << 40).tolist() == [0, 0, 0] and (x >> 40).tolist() == [0, -1, 0]
    assert (x << -1).tolist() == [0, 0, 0] and (
        1 << torch.tensor([3], device=device)
    ).tolist() == [8]
    y = torch.tensor([8], device=device)
    y >>= 2
    y <<= 1
    assert y.tolist() == [4]


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "bool"])
def test_polygamma(name, device):
    row = next(row for row in UNARY if row.name == "lgamma")
    a = np.maximum(values(row, name, (4, 9)), values(row, name, (4, 9)).dtype.type(1))
    x = torch.tensor(a, device=device)
    for n in range(1, 6):
        found = torch.polygamma(n, x)
        eps = 2.0**-52 if name == "float64" else 2.0**-23
        np.testing.assert_allclose(found.cpu().numpy(), polygamma(n, a), rtol=32 * eps)
        assert same(x.polygamma(n), found)
        assert same(
            torch.polygamma(n, x, out=torch.empty(0, device=device, dtype=found.dtype)),
            found,
        )
    assert same(torch.polygamma(0, x), torch.digamma(x))
    with pytest.raises(RuntimeError):
        torch.polygamma(-1, x)
    # Below 0 by reflection: d/dx of digamma(1 - x) - digamma(x) = pi / tan(pi x).
    y = torch.tensor([-0.25, -3.75, -1000.5], dtype=torch.float64, device=device)
    first = torch.polygamma(1, y) + torch.polygamma(1, 1 - y)
    expected = (math.pi / np.sin(math.pi * y.cpu().numpy())) ** 2
    np.testing.assert_allclose(first.cpu().numpy(), expected, rtol=1e-11)
    second = torch.polygamma(2, 1 - y) - torch.polygamma(2, y)
    expected *= 2 * math.pi / np.tan(math.pi * y.cpu().numpy())
    np.testing.assert_allclose(second.cpu().numpy(), expected, rtol=1e-11, atol=1e-9)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # What PyTorch answers.
        (
            "digamma(t([0.0, -0.0, -1.0, -2.0, NAN, INF, -INF]))",
            [-INF, INF, NAN, NAN, NAN, INF, NAN],
        ),
        (
            "lgamma(t([0.0, -0.0, -1.0, -2.0, NAN, INF, -INF]))",
            [INF, INF, INF, INF, NAN, INF, INF],
        ),
        ("polygamma(1, t([0.0, -1.0, INF, NAN]))", [INF, INF, 0.0, NAN]),
        ("polygamma(2, t([0.0, -0.0]))", [-INF, -INF]),
        ("sinc(t([0.0, -0.0, NAN]))", [1.0, 1.0, NAN]),
        ("logit(t([0.0, 1.0, -1.0, 2.0, 0.5, NAN]))", [-INF, INF, NAN, NAN, 0.0, NAN]),
        ("logit(t([-3.0, 0.5, 7.0, NAN]), 0.5)", [0.0, 0.0, 0.0, NAN]),
        ("nan_to_num(t([NAN, 1.0, -0.0]), 3.0)", [3.0, 1.0, -0.0]),
        ("nan_to_num(t([NAN, INF, -INF]), 1, 2, 3)", [1.0, 2.0, 3.0]),
        ("nan_to_num(t([NAN, INF]), posinf=2)", [0.0, 2.0]),
        (
            "fmax(t([NAN, 1.0, NAN, -INF]), t([1.0, NAN, NAN, 0.0]))",
            [1.0, 1.0, NAN, 0.0],
        ),
        (
            "fmin(t([NAN, 1.0, NAN, -INF]), t([1.0, NAN, NAN, 0.0]))",
            [1.0, 1.0, NAN, -INF],
        ),
        ("hypot(t([NAN, INF, 3e30]), t([INF, NAN, 4e30]))", [INF, INF, 5e30]),
        ("copysign(t([0.0, NAN, 2.0]), t([-1.0, -1.0, -0.0]))", [-0.0, NAN, -2.0]),
        ("copysign(t([0.0, 3.0]), -0.0)", [-0.0, -3.0]),
        (
            "logaddexp(t([INF, -INF, INF, NAN]), t([INF, -INF, -INF, 0.0]))",
            [INF, -INF, INF, NAN],
        ),
        ("logaddexp(t([1000.0]), t([0.0]))", [1000.0]),
        ("logaddexp2(t([-INF, 5000.0]), t([3.0, 0.0]))", [3.0, 5000.0]),
        (
            "xlogy(t([0.0, 0.0, 0.0, 1.0]), t([0.0, NAN, -1.0, 0.0]))",
            [0.0, NAN, 0.0, -INF],
        ),
        ("xlogy(0, t([0.0, -2.0]))", [0.0, 0.0]),
        ("rsub(t([1.0, 2.0]), 5, alpha=3)", [2.0, -1.0]),
        ("float_power(t([2.0, 3.0]), 2)", [4.0, 9.0]),
    ],
)
def test_special_values(source, expected, name, device):
    def t(values):
        return torch.tensor(values, dtype=getattr(torch, name), device=device)

    found = eval(source, {**vars(torch), "t": t, "NAN": NAN, "INF": INF})
    as_float32 = np.array(expected, dtype=np.float32).astype(np.float64)
    exact = as_float32 if name == "float32" else np.array(expected)
    got = found.double().cpu().numpy()
    np.testing.assert_allclose(got, exact, rtol=4e-7 if name == "float32" else 1e-15)
    assert np.array_equal(np.signbit(got), np.signbit(exact)) or np.isnan(got).any()


def test_signs_and_infinities(device):
    x = torch.tensor([0.0, -0.0, NAN, INF, -INF, -1.0], device=device)
    assert torch.signbit(x).tolist()[:2] == [False, True]
    assert torch.isposinf(x).tolist() == [False] * 3 + [True, False, False]
    assert torch.isneginf(x).tolist() == [False] * 4 + [True, False]
    assert torch.isreal(x).all() and torch.positive(x) is x and x.positive() is x
    with pytest.raises(RuntimeError):
        torch.positive(torch.tensor([True], device=device))
    greatest = torch.nan_to_num(x).tolist()[3:5]
    assert greatest == [3.4028234663852886e38, -3.4028234663852886e38]
    y = x.clone()
    assert y.nan_to_num_(7) is y and y[2].item() == 7
    n = torch.tensor([1, 2], device=device)
    assert torch.nan_to_num(n).tolist() == [1, 2] and n.nan_to_num_() is n
    for name in ("hypot", "logaddexp", "logaddexp2"):
        with pytest.raises(NotImplementedError):
            getattr(torch, name)(n, n)
    for name in ("hypot", "logaddexp", "fmax", "copysign"):
        with pytest.raises(TypeError):
            getattr(torch, name)(2, n)


def test_float_power_is_double(device):
    n = torch.tensor([2, 3], device=device)
    for result in (
        torch.float_power(n, -1),
        n.float_power(-1.0),
        torch.float_power(2, n),
    ):
        assert result.dtype is torch.float64
    assert torch.float_power(n, -1).tolist() == [0.5, 1 / 3]
    with pytest.raises(RuntimeError):
        n.float_power_(2)
    with pytest.raises(TypeError):
        torch.float_power(2, 3)
    x = n.double()
    assert x.float_power_(2) is x and x.tolist() == [4, 9]


# --- three elements: every row on every type and layout

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64]


def ternary_values(row, dtype, shapes, seed=0):
    generator = np.random.default_rng(seed)
    low = max(row.low, 0) if dtype == torch.uint8 else row.low
    high = row.high
    kind = str(dtype).rpartition(".")[2]
    arrays = []
    for shape in shapes:
        if dtype in FLOATS:
            arrays.append(generator.uniform(low, high, shape).astype(kind))
        else:
            arrays.append(generator.integers(int(low), int(high), shape).astype(kind))
    return arrays


TERNARY_SHAPES = [
    [(70,), (70,), (70,)],
    [(3, 5), (5,), (3, 1)],
    [(1, 4), (3, 1), ()],
    [(0, 3), (3,), (1, 3)],
    [(2, 3, 4)] * 3,
]


@pytest.mark.parametrize("row", TERNARY, ids=lambda row: row.name)
def test_ternary(row, device):
    _, integers, floats, _ = row.kernels
    with Cases() as case:
        for dtype in FLOATS * floats + INTEGERS * integers:
            for shapes in TERNARY_SHAPES:
                with case(f"{dtype} {shapes}"):
                    check_ternary(row, dtype, shapes, device)


def check_ternary(row, dtype, shapes, device):
    arrays = ternary_values(row, dtype, shapes)
    with np.errstate(all="ignore"):
        expected = reference(row)(*arrays)
    result = torch.bool if row.kind == "PREDICATE" else dtype
    expected = expected.astype(str(result).removeprefix("torch."))
    x = [torch.tensor(a, device=device) for a in arrays]
    found = getattr(torch, row.name)(*x)
    assert found.dtype == result and str(found.device) == device
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=2e-6, atol=1e-6)
    # Elements that do not follow one another.
    strided = [spread(t) for t in x]
    again = getattr(torch, row.name)(*strided)
    assert again.tolist() == found.tolist()
    out = torch.empty(0, dtype=result, device=device)
    assert getattr(torch, row.name)(*x, out=out) is out
    assert out.tolist() == found.tolist()
    if result == dtype and shapes[0] == np.broadcast_shapes(*shapes):
        target = x[0].clone()
        assert getattr(target, row.name + "_")(*x[1:]) is target
        assert target.tolist() == found.tolist()


def spread(t):
    """The same elements with gaps between them."""
    if not t.dim():
        return t
    wide = torch.zeros(*t.shape, 2, dtype=t.dtype, device=t.device)
    wide[..., 0] = t
    return wide[..., 0]


@pytest.mark.parametrize(
    "row", [r for r in TERNARY if any(r.differentiable)], ids=lambda row: row.name
)
def test_ternary_gradients(row, device):
    generator = np.random.default_rng(1)
    low, high = max(row.low, 0.5), min(row.high, 3)
    shapes = [(2, 3), (3,), (2, 1)]
    x = [
        torch.tensor(
            generator.uniform(low, high, s), device=device, requires_grad=wanted
        )
        for s, wanted in zip(shapes, row.differentiable, strict=True)
    ]
    function = getattr(torch, row.name)
    assert gradcheck(function, tuple(x))
    assert gradgradcheck(function, tuple(x))


def test_ternary_in_place_with_history():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y.addcmul_(y, y)  # what is overwritten is kept
    y.sum().backward()
    assert x.grad.tolist() == [3, 5]
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.lerp_(torch.ones(2), 0.5)


def test_names_of_ternary_nodes():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    for result, name in [
        (torch.lerp(x, y, 0.3), "LerpBackward0"),
        (torch.lerp(x, y, y), "LerpBackward1"),
        (torch.addcmul(x, y, y), "AddcmulBackward0"),
        (torch.addcdiv(x, y, y), "AddcdivBackward0"),
        (x.clamp(0, 1), "ClampBackward1"),
        (x.clamp(y), "ClampBackward0"),
        (x.clamp_min(0), "ClampMinBackward0"),
        (x.clamp_max(y), "ClampMaxBackward1"),
    ]:
        assert name in repr(result)


def test_long_rows_on_many_threads():
    n = 1_000_003
    a = np.arange(n, dtype=np.float32)
    x = torch.from_numpy(a)
    assert np.array_equal(x.clamp(10, 1000).numpy(), a.clip(10, 1000))
    assert np.array_equal(torch.addcmul(x, x, x).numpy(), a + a * a)


def test_two_devices_are_refused(two_gpus):
    x, y = torch.ones(2, device=two_gpus[0]), torch.ones(2, device=two_gpus[1])
    with pytest.raises(RuntimeError, match="devices"):
        torch.lerp(x, y, 0.5)
    with pytest.raises(RuntimeError, match="devices"):
        x.clamp(torch.ones(2))
    assert x.clamp(torch.tensor(2.0)).tolist() == [2, 2]


@pytest.mark.parametrize("n", [32, 33, 255, 256, 257, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_a_number_is_the_first_operand(n, dtype, device):
    values = np.random.default_rng(n).integers(1, 100, n).astype(dtype)
    x = torch.tensor(values, device=device)
    for result, expected in [
        (100 - x, 100 - values),
        (3 * x, 3 * values),
        (50 / x, 50 / values),
        (torch.maximum(x.new_tensor(40), x), np.maximum(values, 40)),
        (torch.where(x > 50, 2, x), np.where(values > 50, 2, values)),
        (torch.add(x.new_tensor(5), x[::2], alpha=2), 5 + 2 * values[::2]),
    ]:
        np.testing.assert_allclose(result.cpu().numpy(), expected, rtol=1e-6)
    torch.sub(x.new_tensor(100), x, out=x)
    np.testing.assert_array_equal(x.cpu().numpy(), 100 - values)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_quotients_by_powers_of_two_have_all_bits(name, device):
    bits, limit = (np.uint32, 126) if name == "float32" else (np.uint64, 1022)
    random = np.random.default_rng(0)
    a = random.integers(0, np.iinfo(bits).max, 1000, dtype=bits, endpoint=True)
    a = np.append(a.view(name), np.array([0, -0.0, np.inf, -np.inf, 1, -3], name))
    a = a[a == a]  # a NaN has no certain bits
    x = torch.tensor(a, device=device)
    for power in (*range(-130, 131, 7), -limit, limit):
        for b in (2.0**power, -1.5 * 2.0**power):
            with np.errstate(all="ignore"):
                expected = a / np.array(b, name)
            found = (x / b).cpu().numpy()
            same = found.view(bits) == expected.view(bits)
            assert (same | np.isnan(expected)).all(), (b, a[~same])


def test_shifts_by_more_than_there_are_bits(device):
    """As in PyTorch: what has no sign becomes 0, the rest keeps its sign alone."""
    for dtype, low in (torch.uint8, 0), (torch.int8, -128), (torch.int64, -(2**63)):
        x = torch.tensor([low, 1, 127], dtype=dtype, device=device)
        for by in (64, 127):
            assert (x >> by).tolist() == [-1 if low else 0, 0, 0]
            assert (x << by).tolist() == [0, 0, 0]
    x = torch.tensor([255, 128], dtype=torch.uint8, device=device)
    assert (x >> 7).tolist() == [1, 1] and (x >> 8).tolist() == [0, 0]
