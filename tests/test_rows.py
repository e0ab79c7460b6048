"""Every row of the op tables on every device, type and layout, against NumPy.

Floating results may differ from NumPy's in float64 by a few units in the last place of
their own type; everything else is exact.
"""

import math

import numpy as np
import pytest
from op_tables import BINARY, UNARY

import pydevtensor as torch

TYPES = {
    "bool": np.bool_,
    "uint8": np.uint8,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "float32": np.float32,
    "float64": np.float64,
}
UNARY_REFERENCE = {
    "neg": np.negative,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "round": np.rint,
    "sign": lambda x: x if x.dtype == bool else np.sign(x),
    "logical_not": np.logical_not,
    "bitwise_not": np.invert,
    "floor": lambda x: np.floor(x).astype(x.dtype),
    "ceil": lambda x: np.ceil(x).astype(x.dtype),
    "trunc": lambda x: np.trunc(x).astype(x.dtype),
    "square": lambda x: x * x,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "frac": lambda x: x - np.trunc(x).astype(x.dtype),
}
BINARY_REFERENCE = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "pow": np.power,
    "atan2": np.arctan2,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
}


def reference(row, table):
    """NumPy's function for a row; a row without one fails here."""
    function = table.get(row.name, getattr(np, row.name, None))
    assert function, f"name the NumPy function for {row.name} in this file"
    return function


def takes(row, name):
    """Whether a row's class takes a type."""
    floating = name.startswith("float")
    if row.kind == "BITS":
        return not floating
    if row.kind in ("NUMBER", "DIVIDES"):
        return name != "bool"
    return True


def values(row, name, shape, seed=0):
    """Values of the row's range in a type."""
    random = np.random.default_rng(seed)
    low, high = row.low, row.high
    if name.startswith("float"):
        return random.uniform(low, high, shape).astype(TYPES[name])
    if name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    low = max(low, 0) if name == "uint8" else low
    return random.integers(math.ceil(low), math.floor(high) + 1, shape).astype(
        TYPES[name]
    )


def plain(x):
    return x


def transposed(x):
    return x.t().contiguous().t()


def stepped(x):
    wide = torch.zeros(x.shape[0], 2 * x.shape[1], dtype=x.dtype, device=x.device)
    wide[:, ::2] = x
    return wide[:, ::2]


def misaligned(x):
    longer = torch.zeros(x.numel() + 1, dtype=x.dtype, device=x.device)
    longer[1:] = x.reshape(-1)
    return longer[1:].reshape(x.shape)


LAYOUTS = [plain, transposed, stepped, misaligned]


def check(found, expected, name):
    """found, a Tensor, against expected, an array in float64 where it is floating."""
    assert tuple(found.shape) == expected.shape
    if not found.dtype.is_floating_point:
        assert found.tolist() == expected.tolist(), name
        return
    eps = 2.0**-23 if found.dtype is torch.float32 else 2.0**-52
    np.testing.assert_allclose(
        found.cpu().numpy().astype(np.float64),
        expected,
        rtol=16 * eps,
        atol=8 * eps,
        err_msg=name,
    )


def same(a, b):
    """Whether two tensors are equal, NaN being equal to NaN."""
    nan = a != a
    return torch.equal(nan, b != b) and torch.equal(a[~nan], b[~nan])


def doubled(a):
    """In float64, so that the reference is not what limits the comparison."""
    return a.astype(np.float64) if a.dtype.kind == "f" else a


def expected_unary(row, a):
    if row.kind == "FLOAT" and a.dtype.kind != "f":
        a = a.astype(np.float64)
    if row.name == "square" and a.dtype == bool:
        a = a.astype(np.int64)
    with np.errstate(all="ignore"):
        return reference(row, UNARY_REFERENCE)(doubled(a))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("row", UNARY, ids=lambda row: row.name)
def test_unary(row, name, device):
    if not takes(row, name) and row.name != "square":
        with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
            getattr(torch, row.name)(
                torch.zeros(2, dtype=getattr(torch, name), device=device)
            )
        return
    a = values(row, name, (5, 37))
    expected = expected_unary(row, a)
    for layout in LAYOUTS:
        x = layout(torch.tensor(a, device=device))
        found = getattr(torch, row.name)(x)
        check(found, expected, layout.__name__)
        assert same(getattr(x, row.name)(), found)
        out = torch.empty(0, dtype=found.dtype, device=device)
        assert getattr(torch, row.name)(x, out=out) is out and same(out, found)
        if found.dtype is x.dtype:
            target = layout(torch.tensor(a, device=device))
            assert getattr(target, row.name + "_")() is target
            assert same(target, found)
    for shape in ((), (0,), (2, 0), (1,)):
        b = values(row, name, shape)
        check(
            getattr(torch, row.name)(torch.tensor(b, device=device)),
            expected_unary(row, b),
            shape,
        )


def expected_binary(row, a, b):
    if row.kind == "FLOAT" and a.dtype.kind != "f":
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
        return reference(row, BINARY_REFERENCE)(doubled(a), doubled(b))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("row", BINARY, ids=lambda row: row.name)
def test_binary(row, name, device):
    function = getattr(torch, row.name)
    if not takes(row, name) or (name == "bool" and "shift" in row.name):
        if row.name != "pow" and "shift" not in row.name:
            x = torch.ones(2, dtype=getattr(torch, name), device=device)
            with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
                function(x, x)
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
            x, y = torch.tensor(a, device=device), torch.tensor(b, device=device)
            x = layout(x) if x.ndim == 2 else x
            y = layout(y) if y.ndim == 2 else y
            check(function(x, y), expected, (layout.__name__, left, right))
    empty = torch.zeros(2, 0, dtype=getattr(torch, name), device=device)
    assert tuple(function(empty, empty).shape) == (2, 0)


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
