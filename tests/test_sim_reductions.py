"""Reductions of simulated warps and blocks: the last thread computes what the kernels'
shuffles and barriers compute, to the last bit."""

import numpy as np
import pytest

import pydevtensor as torch

F = torch.nn.functional
pytestmark = pytest.mark.skipif(
    not (torch.cuda.is_available() and torch.cuda.is_simulated()),
    reason="needs simulated GPUs",
)


def bits(values):
    """The bytes, with one NaN for all: its sign depends on the compiler."""
    return np.where(np.isnan(values), np.nan, values).tobytes()


@pytest.fixture
def both_ways():
    """Runs a function twice, and gives the bytes of its results both times."""

    def run(function):
        found = []
        for way in ("once", "shuffled"):
            torch._C._sim_control(f"reductions {way}")
            results = function()
            torch.cuda.synchronize()
            given = results if isinstance(results, (tuple, list)) else [results]
            found.append([bits(r.cpu().detach().numpy()) for r in given])
        return found

    yield run
    torch._C._sim_control("reductions once")


def data(*shape, dtype=np.float32):
    values = np.random.default_rng(0).standard_normal(shape) * 100
    values.flat[5::97] = np.nan if dtype != np.int64 else 3
    values.flat[::89] = -0.0
    return torch.tensor(values.astype(dtype), device="cuda:0")


ROWS = {
    "sum": lambda x: x.sum(-1),
    "sum of all": lambda x: x.sum(),
    "sum of columns": lambda x: x.sum(0),
    "prod": lambda x: x.prod(-1),
    "max": lambda x: x.max(-1),
    "min of all": lambda x: x.min(),
    "argmax": lambda x: x.argmax(-1),
    "nansum": lambda x: x.nansum(-1),
    "any": lambda x: (x > 0).any(-1),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "var": lambda x: torch.var_mean(x, -1),
    "var of all": lambda x: x.var(),
    "cumsum": lambda x: x.cumsum(-1),
    "cumprod": lambda x: x.cumprod(-1),
    "cummax": lambda x: x.cummax(-1),
    "logcumsumexp": lambda x: x.logcumsumexp(-1),
    "sort": lambda x: x.sort(-1),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.zeros_like(x[:, 0]).long()),
}


@pytest.mark.parametrize("shape", [(7, 31), (3, 300), (2, 9001)], ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_rows(name, shape, both_ways):
    x = data(*shape)
    once, shuffled = both_ways(lambda: ROWS[name](x))
    assert once == shuffled


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "argmax", "cumsum", "sort"])
def test_other_types(name, dtype, both_ways):
    x = data(3, 700, dtype=dtype)
    once, shuffled = both_ways(lambda: ROWS[name](x))
    assert once == shuffled


def test_gradients(both_ways):
    x = data(6, 3, 9, 9).nan_to_num()
    w = data(4, 3, 3, 3).nan_to_num().requires_grad_()
    scale = torch.ones(9, device="cuda:0", requires_grad=True)

    def work():
        y = F.layer_norm(F.conv2d(x, w, padding=1), (9,), scale, scale)
        return torch.autograd.grad((y.softmax(-1) * y).sum(), [w, scale])

    once, shuffled = both_ways(work)
    assert once == shuffled


def test_attention(both_ways):
    q = data(1, 2, 40, 16).nan_to_num().mul_(0.01).requires_grad_()

    def work():
        y = F.scaled_dot_product_attention(q, q, q)
        return y, *torch.autograd.grad(y.sum(), q)

    once, shuffled = both_ways(work)
    assert once == shuffled


def test_a_wrong_setting():
    with pytest.raises(ValueError, match="once, by the last thread of a group"):
        torch._C._sim_control("reductions twice")
