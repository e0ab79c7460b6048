"""Values as Python objects: item, tolist, numbers, text, copies, pickles."""

import copy
import io
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pydevtensor as torch

ALL = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float32,
    torch.float64,
)


def test_item(device):
    for dtype in ALL:
        value = torch.ones((), dtype=dtype, device=device).item()
        kind = (
            bool if dtype is torch.bool else float if dtype.is_floating_point else int
        )
        assert type(value) is kind and value == 1
    assert torch.full((1, 1), 3, device=device).item() == 3
    for shape in ((2,), (0,)):
        with pytest.raises(RuntimeError):
            torch.zeros(shape, device=device).item()


def test_numbers(device):
    x = torch.tensor([2.75], device=device)
    assert int(x) == 2 and float(x) == 2.75 and bool(x)
    assert not torch.tensor(0, device=device)
    assert [10, 20, 30][torch.tensor(1, device=device)] == 20
    assert list(range(5))[torch.tensor(1) : torch.tensor(3)] == [1, 2]
    with pytest.raises(ValueError):
        int(torch.zeros(2, device=device))
    with pytest.raises(RuntimeError):
        bool(torch.zeros(2, device=device))
    with pytest.raises(RuntimeError):
        bool(torch.zeros(0, device=device))
    with pytest.raises(TypeError):
        [1][torch.tensor(0.0, device=device)]


def test_numbers_that_are_none(device):
    for value, error in ((float("nan"), ValueError), (float("inf"), OverflowError)):
        with pytest.raises(error):
            int(torch.tensor(value, device=device))


def test_tolist(device):
    for shape in ((), (0,), (3,), (2, 0), (2, 3), (2, 1, 2)):
        a = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        x = torch.tensor(a, device=device)
        assert x.tolist() == a.tolist()
        if len(shape) == 2:
            assert x.t().tolist() == a.T.tolist()
            assert x[:, ::2].tolist() == a[:, ::2].tolist()


@given(
    st.floats(width=32), st.sampled_from([".3f", "6.2f", "e", "g", "", "08.3f", "+.1f"])
)
def test_format_strings(value, spec):
    x = torch.tensor(value, dtype=torch.float64)
    assert f"{x:{spec}}" == f"{value:{spec}}"


def test_format_strings_of_many_elements(device):
    x = torch.ones(2, device=device)
    assert f"{x}" == str(x)
    with pytest.raises(TypeError):
        f"{x:.2f}"
    assert f"{torch.tensor(7, device=device):03d}" == "007"
    with pytest.raises(ValueError):
        f"{torch.tensor(1.0):nonsense}"


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_pickles(dtype, device):
    x = torch.tensor([[0, 1, 1], [1, 0, 1]], device=device).to(dtype)
    for y in (x, x.t(), x[:, 1:], x[0, 0], x[:0]):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            z = pickle.loads(pickle.dumps(y, protocol))
            assert z.tolist() == y.tolist()
            assert (z.dtype, z.shape, z.device) == (y.dtype, y.shape, y.device)
    pair = pickle.loads(pickle.dumps([x, x]))
    assert pair[0] is pair[1]


def test_a_damaged_pickle_is_an_error():
    data = bytearray(pickle.dumps(torch.arange(100.0)))
    with pytest.raises((ValueError, EOFError, pickle.UnpicklingError)):
        pickle.load(io.BytesIO(bytes(data[:-40])))
    with pytest.raises(ValueError, match="bytes"):
        torch._C._rebuild_tensor(b"12345", torch.float32, (2,), torch.device("cpu"))
    with pytest.raises(TypeError):
        torch._C._rebuild_tensor(3, torch.float32, (2,), torch.device("cpu"))
    with pytest.raises((RuntimeError, ValueError, OverflowError)):
        torch._C._rebuild_tensor(
            b"", torch.float32, (2**40, 2**40), torch.device("cpu")
        )


def test_copies(device):
    x = torch.arange(6, device=device).reshape(2, 3)
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    x[0, 0] = 9
    assert shallow[0, 0].item() == 9 and deep[0, 0].item() == 0
    assert deep.device == x.device
    a, b = copy.deepcopy([x, x])
    assert a is b and a is not x
    nested = copy.deepcopy({"x": x, "list": [x]})
    assert nested["x"] is nested["list"][0]


def test_hash_and_identity():
    x, y = torch.ones(2), torch.ones(2)
    assert len({x: 1, y: 2}) == 2 and {x: 1}[x] == 1


def test_iteration(device):
    x = torch.arange(6, device=device).reshape(3, 2)
    assert [row.tolist() for row in x] == x.tolist() and len(x) == 3
    first, *_ = x
    assert first.tolist() == [0, 1]
    assert 5 in x and 7 not in x
    for wrong in (lambda: iter(torch.tensor(1)), lambda: len(torch.tensor(1))):
        with pytest.raises(TypeError):
            wrong()
