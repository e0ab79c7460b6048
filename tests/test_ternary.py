"""Functions of three elements: every row on every type and layout."""

import numpy as np
import pytest
from op_tables import TERNARY

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64]

NUMPY = {
    "addcmul": lambda a, b, c: a + b * c,
    "addcdiv": lambda a, b, c: a + b / c,
    "lerp": lambda a, b, c: np.where(
        np.abs(c) < 0.5, a + c * (b - a), b - (b - a) * (1 - c)
    ),
    "clamp": lambda a, b, c: np.minimum(np.maximum(a, b), c),
}


def test_every_row_is_known():
    assert set(NUMPY) == {row.name for row in TERNARY}


def inputs(row, dtype, shapes, seed=0):
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


def cases():
    for row in TERNARY:
        for dtype in FLOATS + (INTEGERS if row.kind == "NUMBER" else []):
            yield pytest.param(row, dtype, id=f"{row.name}-{dtype}")


@pytest.mark.parametrize(("row", "dtype"), list(cases()))
@pytest.mark.parametrize(
    "shapes",
    [
        [(70,), (70,), (70,)],
        [(3, 5), (5,), (3, 1)],
        [(1, 4), (3, 1), ()],
        [(0, 3), (3,), (1, 3)],
        [(2, 3, 4)] * 3,
    ],
    ids=str,
)
def test_against_numpy(row, dtype, shapes, device):
    arrays = inputs(row, dtype, shapes)
    with np.errstate(all="ignore"):
        expected = NUMPY[row.name](*arrays).astype(arrays[0].dtype)
    x = [torch.tensor(a, device=device) for a in arrays]
    found = getattr(torch, row.name)(*x)
    assert found.dtype == dtype and str(found.device) == device
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=2e-6, atol=1e-6)
    # Elements that do not follow one another.
    strided = [spread(t) for t in x]
    again = getattr(torch, row.name)(*strided)
    assert again.tolist() == found.tolist()
    out = torch.empty(0, dtype=dtype, device=device)
    assert getattr(torch, row.name)(*x, out=out) is out
    assert out.tolist() == found.tolist()
    if shapes[0] == np.broadcast_shapes(*shapes):
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


@pytest.mark.parametrize("row", TERNARY, ids=lambda row: row.name)
def test_gradients(row, device):
    generator = np.random.default_rng(1)
    low, high = max(row.low, 0.5), min(row.high, 3)
    shapes = [(2, 3), (3,), (2, 1)]
    x = [
        torch.tensor(generator.uniform(low, high, s), device=device, requires_grad=True)
        for s in shapes
    ]
    function = getattr(torch, row.name)
    assert gradcheck(function, tuple(x))
    assert gradgradcheck(function, tuple(x))


def test_in_place_with_history():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y.addcmul_(y, y)  # what is overwritten is kept
    y.sum().backward()
    assert x.grad.tolist() == [3, 5]
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.lerp_(torch.ones(2), 0.5)


def test_names_of_nodes():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    for made, name in [
        (torch.lerp(x, y, 0.3), "LerpBackward0"),
        (torch.lerp(x, y, y), "LerpBackward1"),
        (torch.addcmul(x, y, y), "AddcmulBackward0"),
        (torch.addcdiv(x, y, y), "AddcdivBackward0"),
        (x.clamp(0, 1), "ClampBackward1"),
        (x.clamp(y), "ClampBackward0"),
        (x.clamp_min(0), "ClampMinBackward0"),
        (x.clamp_max(y), "ClampMaxBackward1"),
    ]:
        assert name in repr(made)


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


# --- where something is true


@pytest.mark.parametrize(
    "shape", [(1,), (127,), (128,), (129,), (70, 603), (3, 0), (5, 4, 3)]
)
@pytest.mark.parametrize("share", [0, 0.02, 0.6, 1])
def test_nonzero(shape, share, device):
    a = (np.random.default_rng(2).random(shape) < share).astype(np.float32)
    x = torch.tensor(a, device=device)
    assert np.array_equal(torch.nonzero(x).cpu().numpy(), np.argwhere(a))
    if a.ndim == 2:
        assert np.array_equal(torch.nonzero(x.t()).cpu().numpy(), np.argwhere(a.T))
    mask = x > 0
    assert x[mask].tolist() == a[a > 0].tolist()


def test_only_the_count_comes_to_the_host(gpu):
    mask = torch.arange(40_000, device=gpu) % 3 == 0
    torch.cuda.synchronize()
    with torch.cuda.transfers() as record:
        found = torch.nonzero(mask)
    assert found.shape == (13_334, 1)
    assert record.device_to_host_bytes == 8, record
    assert record.host_to_device_bytes == 0, record
