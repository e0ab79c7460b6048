"""Bools in memory of other libraries, whose bytes may be others than 0 and 1."""

import numpy as np
import pytest

import pydevtensor as torch
import pydevtensor.nn.functional as F

N = 300  # more than any block of a kernel, and no multiple of one
BYTES = np.random.default_rng(7).choice(
    np.array([0, 0, 0, 1, 2, 3, 127, 128, 254, 255], np.uint8), N
)
FLAT = torch.tensor((BYTES != 0).tolist())
OTHER = torch.arange(N) % 3 == 0
VALUES = torch.arange(N, dtype=torch.float32)


def by_frombuffer(raw):
    return torch.frombuffer(bytearray(raw.tobytes()), dtype=torch.bool)


def by_numpy(raw):
    return torch.from_numpy(raw.copy().view(np.bool_))


def by_dlpack(raw):
    return torch.from_dlpack(raw.copy().view(np.bool_))


def by_view(raw):
    return torch.tensor(raw.tolist(), dtype=torch.uint8).view(torch.bool)


def by_array(raw):
    return torch.asarray(bytearray(raw.tobytes()), dtype=torch.bool)


WAYS = [by_frombuffer, by_numpy, by_dlpack, by_view, by_array]


def pair(device, layout):
    """The same bools twice: with any bytes, and with 0 and 1."""
    made = []
    for whole in (by_view(BYTES).to(device), FLAT.to(device)):
        made.append(LAYOUTS[layout](whole))
    return made


LAYOUTS = {
    "dense": lambda x: x,
    "rows": lambda x: x.reshape(20, 15),
    "columns": lambda x: x.reshape(15, 20).t(),
    "stepped": lambda x: x[::3],
    "flipped": lambda x: x.flip(0),
    "expanded": lambda x: x[:50, None].expand(50, 4),
    "none": lambda x: x[:0],
}


def fitting(x, whole):
    """As many elements of `whole` as x has, in its shape, where x is."""
    return whole[: x.numel()].reshape(x.shape).to(x.device)


OPERATIONS = {
    "not": lambda x: ~x,
    "logical_not": lambda x: x.logical_not(),
    "and": lambda x: x & fitting(x, OTHER),
    "or": lambda x: fitting(x, OTHER) | x,
    "xor": lambda x: x ^ fitting(x, OTHER),
    "and itself": lambda x: x & x,
    "logical_and": lambda x: x.logical_and(fitting(x, OTHER)),
    "logical_or": lambda x: x.logical_or(x),
    "logical_xor": lambda x: x.logical_xor(fitting(x, OTHER)),
    "eq": lambda x: x == fitting(x, OTHER),
    "eq True": lambda x: x == True,  # noqa: E712
    "ne": lambda x: x != fitting(x, OTHER),
    "lt": lambda x: x < fitting(x, OTHER),
    "ge": lambda x: x >= fitting(x, OTHER),
    "maximum": lambda x: torch.maximum(x, fitting(x, OTHER)),
    "minimum": lambda x: torch.minimum(x, fitting(x, OTHER)),
    "add": lambda x: x + fitting(x, OTHER),
    "mul": lambda x: x * fitting(x, OTHER),
    "mul of floats": lambda x: x * fitting(x, VALUES),
    "add of halves": lambda x: x + fitting(x, VALUES).half(),
    "true division": lambda x: fitting(x, VALUES) / (x + 1),
    "exp": lambda x: x.exp(),
    "where": lambda x: torch.where(x, fitting(x, VALUES), -1.0),
    "where of bools": lambda x: torch.where(fitting(x, OTHER), x, fitting(x, FLAT)),
    "masked_fill": lambda x: fitting(x, VALUES).masked_fill(x, -1),
    "masked_select": lambda x: fitting(x, VALUES).masked_select(x),
    "masked_scatter": lambda x: fitting(x, VALUES).masked_scatter(
        x, -VALUES.to(x.device)
    ),
    "index by mask": lambda x: fitting(x, VALUES)[x],
    "nonzero": lambda x: x.nonzero(),
    "count_nonzero": lambda x: x.count_nonzero(),
    "count_nonzero of rows": lambda x: x.count_nonzero(0),
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(0),
    "sum of columns": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(dtype=torch.float64) if x.numel() else x.sum(),
    "prod": lambda x: x.prod(),
    "any": lambda x: x.any(),
    "any of rows": lambda x: x.any(0),
    "any of columns": lambda x: x.any(-1),
    "all": lambda x: x.all(),
    "all of rows": lambda x: x.all(0),
    "all of columns": lambda x: x.all(-1),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(-1),
    "logsumexp": lambda x: x.float().logsumexp(0),
    "sort": lambda x: x.sort(stable=True),
    "sort the other way": lambda x: x.sort(0, descending=True, stable=True),
    "argsort": lambda x: x.argsort(stable=True),
    "unique": lambda x: x.unique(return_inverse=True, return_counts=True),
    "cat": lambda x: torch.cat([x, fitting(x, OTHER)]).sum(),
    "stack": lambda x: torch.stack([x, x]).any(0),
    "clone": lambda x: x.clone().sum(0),
    "contiguous": lambda x: x.contiguous().sum(0),
    "roll": lambda x: x.roll(3).int(),
    "gather": lambda x: x.gather(0, torch.zeros_like(x, dtype=torch.int64)).int(),
    "index_add": lambda x: (
        torch.zeros_like(x)
        .index_add(0, torch.arange(x.shape[0], device=x.device), x)
        .int()
    ),
    "scatter_add": lambda x: (
        x.clone()
        .scatter_add(0, torch.zeros_like(x, dtype=torch.int64), fitting(x, OTHER))
        .int()
    ),
    "put": lambda x: (
        torch.zeros(5, dtype=torch.bool, device=x.device)
        .index_put(
            (torch.arange(x.numel(), device=x.device) % 5,),
            x.flatten(),
            accumulate=True,
        )
        .int()
    ),
    "isin": lambda x: torch.isin(x, torch.tensor([True], device=x.device)),
    "dot": lambda x: x.flatten().float() @ x.flatten().float(),
    "tril": lambda x: x.reshape(x.shape[0], -1).tril().int(),
    "to complex sums": lambda x: x.to(torch.float64).cumsum(0),
    "equal": lambda x: torch.tensor([torch.equal(x, x.int() != 0)]),
    "bincount": lambda x: x.flatten().int().bincount(minlength=3),
}


def plain(result):
    many = isinstance(result, tuple)
    return [x.cpu() for x in (result if many else (result,))]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operations(device, layout):
    foreign, clean = pair(device, layout)
    for name, operation in OPERATIONS.items():
        if layout == "none" and name in ("gather", "index_add", "put", "tril"):
            continue
        made, wanted = plain(operation(foreign)), plain(operation(clean))
        for a, b in zip(made, wanted, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape, name
            assert (a + 0).tolist() == (b + 0).tolist(), name


@pytest.mark.parametrize("way", WAYS)
def test_every_way_into_a_tensor(way):
    x = way(BYTES)
    assert x.dtype == torch.bool
    assert x.tolist() == FLAT.tolist()
    assert int(x.sum()) == int((BYTES != 0).sum())
    assert [bool(e) for e in x] == FLAT.tolist()
    assert x[BYTES.argmax()].item() is True
    assert repr(x[:9]) == repr(FLAT[:9])
    assert torch.equal(x, FLAT)
    assert torch.equal(x ^ True, ~FLAT)


@pytest.mark.parametrize(
    "dtype",
    ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16"]
    + ["float32", "float64"],
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversions(device, layout, dtype):
    foreign, clean = pair(device, layout)
    dtype = getattr(torch, dtype)
    assert foreign.to(dtype).tolist() == clean.to(dtype).tolist()
    target = torch.zeros(clean.shape, dtype=dtype, device=device)
    assert target.copy_(foreign).tolist() == clean.to(dtype).tolist()


def test_results_hold_zeros_and_ones(device):
    foreign, _ = pair(device, "dense")
    for result in (
        *(foreign & foreign, foreign | False, ~~foreign, foreign == True),  # noqa: E712
        *(
            foreign.logical_or(foreign),
            foreign.sort()[0],
            foreign.reshape(3, -1).any(0),
        ),
        *(foreign.reshape(3, -1).amax(0), foreign.int().bool()),
    ):
        assert int(result.reshape(-1).view(torch.uint8).max()) <= 1


def test_writing_over_itself(device):
    foreign, clean = pair(device, "dense")
    foreign.logical_not_()
    assert foreign.tolist() == (~clean).tolist()
    foreign, clean = pair(device, "dense")
    foreign &= clean
    assert foreign.tolist() == clean.tolist()
    assert int(foreign.view(torch.uint8).max()) == 1


@pytest.mark.parametrize("way", ["save", "safetensors"])
def test_files(way, tmp_path):
    """They are written as they are, by other libraries too, and read as 0 and 1."""
    x, path = by_view(BYTES), tmp_path / "file"
    if way == "save":
        torch.save({"x": x}, path)
        found = torch.load(path)["x"]
    else:
        torch.safetensors.save_file({"x": x}, path)
        found = torch.safetensors.load_file(path)["x"]
    assert BYTES.tobytes() in path.read_bytes()
    assert found.view(torch.uint8).tolist() == FLAT.to(torch.uint8).tolist()


@pytest.mark.parametrize("byte", [0, 1, 2, 128, 255])
def test_a_single_element(device, byte):
    x = by_view(np.array([byte], np.uint8)).to(device)[0]
    values = torch.arange(4.0, device=device)
    assert x.item() is (byte != 0)
    assert bool(x) is (byte != 0)
    assert f"{x}" == str(byte != 0)
    assert (values * x).tolist() == (values * (byte != 0)).tolist()
    # Its value, not its memory, goes to the kernel.
    alone = x.cpu()
    assert (values + alone).tolist() == (values + (byte != 0)).tolist()
    assert torch.where(alone.to(device), values, -values).tolist() == [
        v if byte else -v for v in range(4)
    ]
    mask = torch.tensor([True, False], device=device)
    assert (mask & alone).tolist() == [byte != 0, False]
    assert (mask == alone).tolist() == [byte != 0, byte == 0]
    assert torch.full((2,), alone.item()).tolist() == [byte != 0] * 2


@pytest.mark.parametrize("shape", [(20, 15), (3, 10, 10), (300, 1)])
def test_extremes_and_where_they_are(device, shape):
    foreign, clean = (x.reshape(shape) for x in pair(device, "dense"))
    for dim in range(len(shape)):
        for function in ("max", "min"):
            made = getattr(foreign, function)(dim)
            wanted = getattr(clean, function)(dim)
            assert made[0].tolist() == wanted[0].tolist()
            assert made[1].tolist() == wanted[1].tolist()
    assert bool(foreign.amax()) is True and bool(foreign.amin()) is False


def test_attention_mask(device):
    foreign, clean = (x[:100].reshape(10, 10) for x in pair(device, "dense"))
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 10, 8, device=device) for _ in range(3))
    wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=clean)
    made = F.scaled_dot_product_attention(q, k, v, attn_mask=foreign)
    assert torch.equal(made, wanted)


def test_gradients_pass_through_a_mask(device):
    foreign, clean = pair(device, "rows")
    gradients = []
    for mask in (foreign, clean):
        x = fitting(mask, VALUES).requires_grad_()
        (
            x[mask].sum() + (x * mask).sum() + torch.where(mask, x, 2 * x).sum()
        ).backward()
        gradients.append(x.grad.tolist())
    assert gradients[0] == gradients[1]
