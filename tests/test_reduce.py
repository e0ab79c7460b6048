"""Every reduction on every device, type and layout, against NumPy."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from against_numpy import LAYOUTS, TYPES, check, made, same
from cases import Cases

import pydevtensor as torch

OPS = Path(__file__).resolve().parents[1] / "csrc" / "ops" / "reduce.def"
ROWS = dict(re.findall(r"^REDUCE\((\w+), (\w+),", OPS.read_text(), re.MULTILINE))
# norm() chooses among the rows of class NORM by its p.
NORMS = {
    "norm_0": 0,
    "norm_1": 1,
    "norm_2": 2,
    "norm_p": 3,
    "norm_max": math.inf,
    "norm_min": -math.inf,
}
REFERENCE = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "amax": np.max,
    "amin": np.min,
    "any": lambda a, **where: np.any(a != 0, **where),
    "all": lambda a, **where: np.all(a != 0, **where),
    "norm_0": lambda a, **where: np.sum(a != 0, **where).astype(float),
    "norm_1": lambda a, **where: np.sum(abs(a), **where),
    "norm_2": lambda a, **where: np.sqrt(np.sum(a * a, **where)),
    "norm_p": lambda a, **where: np.cbrt(np.sum(abs(a) ** 3, **where)),
    "norm_max": lambda a, **where: np.max(abs(a), **where),
    "norm_min": lambda a, **where: np.min(abs(a), **where),
}


def values(op, name, shape, seed=0):
    """Numbers of a type; a product of them neither vanishes nor overflows a float."""
    random = np.random.default_rng(seed)
    if name == "bool":
        return random.integers(0, 4, shape) > (0 if op == "all" else 2)
    if "float" not in name:
        odd = [1, 3] if name == "uint8" else [-3, -1, 1, 3]
        if op == "prod":
            return random.choice(odd, shape).astype(TYPES[name])
        return random.integers(0 if name == "uint8" else -9, 10, shape).astype(
            TYPES[name]
        )
    drawn = random.uniform(-1, 1, shape)
    if op == "prod":
        drawn = np.sign(drawn) * 2.0 ** (drawn / 8)
    drawn[random.random(shape) < (0.05 if op != "prod" else 0)] = 0
    if name == "bfloat16":
        drawn = drawn.astype(np.float32)
        return (drawn.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return drawn.astype(TYPES[name])


def reduce(op, x, dim=None, keepdim=False, **more):
    if op in NORMS:
        return torch.norm(x, NORMS[op], dim, keepdim, **more)
    if dim is None and not keepdim and op in ("any", "all", "prod"):
        return getattr(torch, op)(x, **more)
    return getattr(torch, op)(x, () if dim is None else dim, keepdim, **more)


def expected(op, a, dim=None, keepdim=False):
    if a.dtype.kind == "f":
        a = a.astype(np.float64)
    elif op in ("sum", "prod"):
        a = a.astype(np.int64)
    axis = tuple(dim) if isinstance(dim, list | tuple) else dim
    with np.errstate(all="ignore"):
        return np.asarray(REFERENCE[op](a, axis=axis, keepdims=keepdim))


def result_type(op, name):
    """The type that a class of reduce.def gives for a type that it takes."""
    if ROWS[op] == "TOTAL" and "float" not in name:
        return "int64"
    if ROWS[op] == "TRUTH":
        return "uint8" if name == "uint8" else "bool"
    return name


def takes(op, name):
    return "float" in name or ROWS[op] not in ("FLOAT", "NORM")


def compare(op, name, found, a, dim, keepdim, label):
    right = expected(op, a, dim, keepdim)
    assert str(found.dtype) == f"torch.{result_type(op, name)}", label
    if found.dtype is torch.uint8 and ROWS[op] == "TRUTH":
        right = right.astype(np.uint8)
    if not found.dtype.is_floating_point:
        check(found, right, label)
        return
    many = a.size // max(right.size, 1)
    eps = 2.0**-52 if name == "float64" else 2.0**-23
    magnitude = np.sum(abs(a.astype(np.float64))) if op in ("sum", "mean") else 0
    rounding = max(many / 16, 1) if op == "prod" else 1
    check(found, right, label, rounding, 4 * eps * magnitude)


def test_every_row_is_tested():
    assert REFERENCE.keys() == ROWS.keys()
    assert {op for op, kind in ROWS.items() if kind == "NORM"} == NORMS.keys()


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", ROWS)
def test_reductions(op, name, device):
    if not takes(op, name):
        with pytest.raises(RuntimeError):
            reduce(op, made(values(op, name, (2, 3)), name, device))
        return
    a = values(op, name, (5, 37))
    several = (0, 1) if op != "prod" else 1  # prod() takes one dim
    for layout in LAYOUTS:
        x = layout(made(a, name, device))
        for dim, keepdim in itertools.product((None, 0, 1, -1, several), (False, True)):
            if dim is None and keepdim:
                continue
            found = reduce(op, x, dim, keepdim)
            label = f"{op} of {layout.__name__}, dim={dim}, keepdim={keepdim}"
            compare(op, name, found, a, dim, keepdim, label)
        out = torch.empty(0, dtype=found.dtype, device=device)
        assert reduce(op, x, -1, True, out=out) is out
        assert same(out, reduce(op, x, -1, True))
        if op not in NORMS:
            assert same(getattr(x, op)(1), reduce(op, x, 1))


@pytest.mark.parametrize("name", ["float32", "float16", "int16", "bool"])
@pytest.mark.parametrize("op", ROWS)
def test_dims_in_every_order(op, name, device):
    """Each set of dimensions of each permutation of a tensor of three."""
    if not takes(op, name):
        return
    a = values(op, name, (3, 4, 6))
    x = made(a, name, device)
    for order in itertools.permutations(range(3)):
        for count in (1, 2, 3):
            for dims in itertools.combinations(range(3), count):
                if op == "prod" and count > 1:
                    continue
                dim = dims[0] if op == "prod" else dims
                found = reduce(op, x.permute(order), dim)
                b = a.transpose(order)
                compare(op, name, found, b, dim, False, f"{op} {order} {dims}")


@pytest.mark.parametrize(
    "name", ["float32", "float16", "float64", "int64", "int8", "bool"]
)
def test_sums_over_batch_and_pixels(name, device):
    """Rows of whole vectors and others, from places where vectors may lie and others."""
    parts = (np.s_[:], np.s_[1:], np.s_[:, :, 1:], np.s_[..., 1:], np.s_[..., :4])
    for rows, columns in ((2, 2), (1, 4), (7, 7), (9, 8), (16, 12), (40, 40)):
        a = np.arange(5 * 3 * rows * columns).reshape(5, 3, rows, columns) % 3 == 0
        x = made(a, name, device)
        for part in (*parts, np.s_[..., :6]):
            wanted = made(a[part].sum((0, 2, 3)), name, device)
            wanted = wanted if wanted.is_floating_point() else a[part].sum((0, 2, 3))
            assert x[part].sum((0, 2, 3)).tolist() == wanted.tolist(), (columns, part)


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize("op", ROWS)
def test_lengths(op, name, device):
    """Lengths about the sizes of vectors, warps, blocks and chunks."""
    if not takes(op, name):
        return
    for length in (1, 2, 7, 8, 31, 32, 33, 127, 128, 129, 257, 1023, 1025, 4097, 20001):
        a = values(op, name, (length,), length)
        if op == "prod" and "float" in name:
            a[16:] = 1  # more factors would only test the range of the type
        compare(op, name, reduce(op, made(a, name, device)), a, None, False, length)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of a mean of nothing
@pytest.mark.parametrize("op", ROWS)
def test_no_elements(op, device):
    with Cases() as case:
        for name in TYPES:
            if takes(op, name):
                with case(name):
                    reduce_nothing(op, name, device)


def reduce_nothing(op, name, device):
    x = torch.zeros(2, 0, 3, dtype=getattr(torch, name), device=device)
    if ROWS[op] == "ORDER" or op in ("norm_max", "norm_min"):
        kind = IndexError if ROWS[op] == "ORDER" else RuntimeError
        with pytest.raises(RuntimeError, match="no elements"):
            reduce(op, x)
        with pytest.raises(kind, match="no elements"):
            reduce(op, x, 1)
    else:
        a = np.zeros((2, 0, 3), dtype=TYPES[name])
        compare(op, name, reduce(op, x), a, None, False, "all dims")
        compare(op, name, reduce(op, x, 1), a, 1, False, "dim 1")
    assert tuple(reduce(op, x, 0).shape) == (0, 3)
    scalar = made(np.ones((), TYPES[name]), name, device)
    assert reduce(op, scalar, 0).item() == 1 == reduce(op, scalar).item()


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_nan_and_infinity(name, device):
    dtype = getattr(torch, name)
    nan, inf = math.nan, math.inf
    rows = [[1, nan, 2], [inf, 1, 2], [-inf, 1, 2], [inf, -inf, 0], [-0.0, 0, 0]]
    x = torch.tensor(rows, dtype=dtype, device=device)
    for op in ROWS:
        if op != "norm_p":  # inf ** 3 and its root
            a = np.array(rows)
            compare(op, name, reduce(op, x, 1), a, 1, False, op)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", ["sum", "prod", "mean"])
def test_dtype_is_converted_first(op, name, device):
    a = values(op, name, (4, 9))
    found = getattr(torch, op)(made(a, name, device), 1, dtype=torch.float64)
    assert found.dtype is torch.float64
    check(found, expected(op, a.astype(np.float64), 1), op)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("op", ["max", "min"])
def test_extremes_and_their_indices(op, name, device):
    a = values(op, name, (6, 33), 3)
    find, index = {"max": (np.max, np.argmax), "min": (np.min, np.argmin)}[op]
    for layout in LAYOUTS:
        x = layout(made(a, name, device))
        assert same(getattr(torch, op)(x), made(find(a), name, device))
        for dim, keepdim in itertools.product((0, 1, -2), (False, True)):
            found = getattr(torch, op)(x, dim, keepdim)
            assert same(
                found.values, made(find(a, dim, keepdims=keepdim), name, device)
            )
            gathered = x.gather(
                dim, found.indices if keepdim else found.indices.unsqueeze(dim)
            )
            assert same(gathered, made(find(a, dim, keepdims=True), name, device))
            if name != "bool":
                places = getattr(torch, "arg" + op)(x, dim, keepdim)
                assert places.tolist() == index(a, dim, keepdims=keepdim).tolist()
                assert same(places, found.indices)
        if name != "bool":
            assert getattr(torch, "arg" + op)(x).item() == index(a)


@pytest.mark.parametrize("name", ["any", "all"])
def test_no_dimensions_of_a_truth_are_each_element(name, device):
    x = torch.tensor([[0, 2], [3, 0]], device=device)
    for dims in ((), []):
        found = getattr(x, name)(dims)
        assert found.dtype is torch.bool and found.tolist() == [
            [False, True],
            [True, False],
        ]
    assert getattr(x, name)().dim() == 0 and getattr(x, name)(None).dim() == 0


def test_reductions_of_empty_views_with_an_offset(device):
    """Their address is beyond memory that does not exist, and no kernel gets it."""
    for x in (
        torch.zeros(0, 3, device=device)[:, 1:],
        torch.zeros(4, 0, device=device)[2:],
    ):
        assert x.sum().item() == 0 and x.trace().item() == 0 and x.norm().item() == 0
        assert (
            x.all().item() and x.var().isnan().item() and x.sum(0).shape == x.shape[1:]
        )


def test_norms_with_names():
    x = torch.eye(3)
    assert torch.norm(x, "nuc").item() == pytest.approx(3)
    assert torch.linalg.matrix_norm(x, "nuc").item() == pytest.approx(3)
    with pytest.raises(RuntimeError, match="p is 'two'; give a number"):
        x.norm("two")


def test_extremum_with_a_tensor_of_no_dimensions(device):
    """An integer Tensor is the other operand, not a dimension."""
    x, one = torch.tensor([0, 5], device=device), torch.tensor(1, device=device)
    assert torch.max(x, one).tolist() == [1, 5] and x.min(one).tolist() == [0, 1]
    assert x.max(0).values.item() == 5 and x.max(dim=one - 1).indices.item() == 1


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.uint8])
def test_sums_of_bytes(device, dtype):
    # Sixteen at once, but for those at the ends, wherever these are.
    low, high = (0, 2) if dtype == torch.bool else (-128, 128)
    torch.manual_seed(3)
    whole = torch.randint(low, high, (40_013,), dtype=torch.int64).to(dtype)
    array, x = whole.numpy(), whole.to(device)
    for begin in range(18):
        for count in (0, 1, 15, 16, 17, 33, 1000, 39_990):
            found = x[begin : begin + count].sum().item()
            assert found == int(array[begin : begin + count].sum(dtype=np.int64))
    rows = x[5:40_005].view(40, 1000)
    expected = array[5:40_005].reshape(40, 1000)
    assert rows.sum(1).tolist() == expected.sum(1, dtype=np.int64).tolist()
    assert (
        rows[:, 3:900].sum(1).tolist()
        == expected[:, 3:900].sum(1, dtype=np.int64).tolist()
    )
    assert (
        rows[:, ::2].sum(1).tolist() == expected[:, ::2].sum(1, dtype=np.int64).tolist()
    )
    assert rows.sum(0).tolist() == expected.sum(0, dtype=np.int64).tolist()


SHORT = (
    "sum",
    "prod",
    "mean",
    "amax",
    "amin",
    "any",
    "norm",
    "var",
    "argmax",
    "argmin",
)


@pytest.mark.parametrize("n", [1, 2, 7, 31, 32, 33, 100, 511, 513])
@pytest.mark.parametrize("name", [n for n in TYPES if n != "bool"])
def test_short_rows_have_the_bits_of_each_alone(name, n):
    """The CPU reduces several together: dense rows, and parts of longer ones."""
    dtype = getattr(torch, name)
    drawn = values("sum", name, (35, 2 * n), seed=n)
    drawn[3:, n // 2] = drawn[3:, 0]  # extremes that are there twice
    whole = torch.tensor(drawn).to(dtype)
    if dtype.is_floating_point:
        whole[5, n - 1], whole[6, :n] = math.nan, -0.0
        whole[7, 0], whole[7, n - 1] = 0.0, -0.0
    for x in (whole[:, :n].contiguous(), whole[:, :n], whole[::2, :n]):
        for op in SHORT:
            if op in ("mean", "norm", "var") and not dtype.is_floating_point:
                continue
            one = {"correction": 0} if op == "var" else {}
            together = getattr(x, op)(dim=1, **one)
            each = torch.stack([getattr(row, op)(dim=0, **one) for row in x])
            assert together.dtype == each.dtype
            assert torch.equal(together.isnan(), each.isnan()), (op, n)
            assert same_bits(together, each), (op, n)


def same_bits(a, b):
    if not a.dtype.is_floating_point:
        return torch.equal(a, b)
    numbers = ~a.isnan()
    a, b = a[numbers], b[numbers]
    return torch.equal(a, b) and torch.equal(a.signbit(), b.signbit())
