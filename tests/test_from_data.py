"""tensor() and the typed constructors: from numbers, sequences, arrays, tensors."""

import array
import fractions
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pydevtensor as torch


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3, torch.int64, ()),
        (True, torch.bool, ()),
        (2.5, torch.float32, ()),
        ([], torch.float32, (0,)),
        ([[], []], torch.float32, (2, 0)),
        ([1, 2], torch.int64, (2,)),
        ([1, 2.0], torch.float32, (2,)),
        ([True, 2], torch.int64, (2,)),
        ([True, False], torch.bool, (2,)),
        (((1, 2), (3, 4)), torch.int64, (2, 2)),
        ([(1,), [2.5]], torch.float32, (2, 1)),
        (range(3), torch.int64, (3,)),
        (np.float64(2), torch.float64, ()),
        (np.int8(2), torch.int8, ()),
        (np.arange(3, dtype=np.int16), torch.int16, (3,)),
        (np.ones((2, 0)), torch.float64, (2, 0)),
    ],
)
def test_type_and_shape(data, dtype, shape, device):
    x = torch.tensor(data, device=device)
    assert (x.dtype, tuple(x.shape), x.device) == (dtype, shape, torch.device(device))
    assert x.tolist() == np.array(data).tolist()


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2)))
def test_integers_survive(data):
    assert torch.tensor(data).tolist() == data


@given(st.lists(st.floats(allow_nan=False)))
def test_doubles_survive(data):
    assert torch.tensor(data, dtype=torch.float64).tolist() == data


def test_given_types(device):
    for dtype in (torch.float64, torch.int8, torch.uint8, torch.bool, torch.int16):
        assert torch.tensor([0, 1], dtype=dtype, device=device).dtype is dtype
    assert torch.tensor([1.9, -1.9], dtype=torch.int32, device=device).tolist() == [
        1,
        -1,
    ]
    assert torch.tensor([0.0, 0.5], dtype=torch.bool, device=device).tolist() == [
        False,
        True,
    ]
    torch.set_default_dtype(torch.float64)
    assert torch.tensor(1.0).dtype is torch.float64


def test_a_tensor_is_copied(device):
    x = torch.ones(2, device=device)
    y = torch.tensor(x)
    y[0] = 5
    assert x.tolist() == [1, 1] and y.device == x.device
    assert torch.tensor([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]


def test_other_sources():
    assert torch.tensor(array.array("d", [1, 2])).tolist() == [1, 2]
    assert torch.tensor(Decimal("1.5")).item() == 1.5
    assert torch.tensor(fractions.Fraction(1, 4)).item() == 0.25

    class Numbers:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return [4, 5][i]

    assert torch.tensor(Numbers()).tolist() == [4, 5]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([1, "a"], TypeError),
        (["a"], ValueError),
        ("a", TypeError),
        ([[1, 2], [3]], ValueError),
        ([[1], 2], (TypeError, ValueError)),
        ([1, None], RuntimeError),
        (None, RuntimeError),
        (..., RuntimeError),
        ([2**64], (RuntimeError, OverflowError, ValueError)),
        ([1j, None], RuntimeError),
        ({1: 2}, (RuntimeError, TypeError, KeyError)),
        ({1, 2}, (RuntimeError, TypeError)),
        (np.array(["a"]), TypeError),
        (np.array([None]), TypeError),
    ],
    ids=repr,
)
def test_what_is_refused(data, error, device):
    with pytest.raises(error):
        torch.tensor(data, device=device)
    assert torch.tensor([1], device=device).tolist() == [1]


def test_data_that_misbehaves():
    class Raises:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            raise KeyError("mine")

    class Grows(list):
        def __len__(self):
            return 10**12

    for data in (Raises(), [Raises()]):
        with pytest.raises((KeyError, ValueError, RuntimeError)):
            torch.tensor(data)
    assert torch.tensor(Grows([1, 2])).tolist() == [1, 2]  # what it holds counts
    loop = []
    loop.append(loop)
    with pytest.raises((RuntimeError, ValueError, RecursionError)):
        torch.tensor(loop)


def test_classes_named_after_types():
    assert torch.FloatTensor([1, 2]).dtype is torch.float32
    assert torch.FloatTensor([1, 2]).tolist() == [1, 2]
    assert torch.LongTensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert torch.FloatTensor().shape == (0,)
    assert torch.FloatTensor(2, 3).shape == (2, 3)
    assert torch.LongTensor([1, 2]).dtype is torch.int64
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor([2, 3]).tolist() == [
        2,
        3,
    ]
    assert torch.Tensor().shape == (0,)


def test_unknown_words():
    for call in (
        lambda: torch.tensor(),
        lambda: torch.tensor([1], nonsense=1),
        lambda: torch.tensor([1], dtype="int64"),
        lambda: torch.tensor(1, 2),
    ):
        with pytest.raises(TypeError):
            call()


FACTORIES = [
    ("empty((2, 3))", None),
    ("zeros(2, 3)", [[0.0] * 3] * 2),
    ("ones(2, 3)", [[1.0] * 3] * 2),
    ("full((2,), 7)", [7.0, 7.0]),
    ("arange(3)", [0.0, 1.0, 2.0]),
    ("arange(1, 2, 0.5)", [1.0, 1.5]),
    ("linspace(0, 1, 3)", [0.0, 0.5, 1.0]),
    ("logspace(0, 2, 3)", [1.0, 10.0, 100.0]),
    ("eye(2)", [[1.0, 0.0], [0.0, 1.0]]),
    ("rand(2, 3)", None),
    ("randn(2, 3)", None),
    ("randint(5, (2, 3))", None),
    ("randint(2, 5, (2, 3))", None),
    ("randperm(1)", [0.0]),
    ("normal(0.0, 1.0, (2,))", None),
]


@pytest.mark.parametrize(("call", "expected"), FACTORIES, ids=lambda v: str(v)[:20])
def test_out_of_factories(call, expected, device):
    """out gives type and device, whatever the defaults are."""
    name, arguments = call.split("(", 1)
    result = eval(f"torch.{call}")
    out = torch.empty(0, dtype=torch.float64, device=device)
    filled = eval(f"torch.{name}({arguments[:-1]}, out=out)")
    assert filled is out and out.dtype is torch.float64
    assert out.device == torch.device(device) and out.shape == result.shape
    if expected is not None:
        assert out.tolist() == expected
    again = torch.full_like(out, 9)
    memory = again.data_ptr()
    assert eval(f"torch.{name}({arguments[:-1]}, out=again)") is again
    assert again.data_ptr() == memory  # its own memory is filled
    for wrong in ("dtype=torch.int16", "out=3", "device='cuda:7'"):
        with pytest.raises((RuntimeError, TypeError)):
            eval(f"torch.{name}({arguments[:-1]}, **dict(dict(out=out), {wrong}))")


def test_out_of_another_shape():
    with pytest.raises(RuntimeError, match=r"out has shape \[5\]"):
        torch.zeros(2, 3, out=torch.empty(5))


def test_classes_of_types_know_their_tensors(device):
    x = torch.ones(2, device=device)
    assert isinstance(x, torch.FloatTensor) == (device == "cpu")
    assert not isinstance(x, torch.DoubleTensor) and not isinstance(
        1.0, torch.FloatTensor
    )
    assert isinstance(
        torch.nn.Parameter(torch.ones(2)), (torch.LongTensor, torch.FloatTensor)
    )
    for kind in (torch.LongTensor, torch.HalfTensor, torch.BoolTensor):
        y = x.type(kind)
        assert (
            isinstance(y, kind)
            and isinstance(y, torch.Tensor)
            and y.dtype is kind.dtype
        )
        assert y.device == torch.device("cpu")
        assert y.type() == f"torch.{kind.__name__}"
    assert isinstance(torch.FloatTensor, type)


def test_classes_of_types_reject_what_is_no_size():
    with pytest.raises(TypeError, match="are not sizes"):
        torch.FloatTensor(2, "3")
    with pytest.raises(TypeError, match="are not sizes"):
        torch.FloatTensor([1], 2)
    with pytest.raises(RuntimeError, match="makes CPU tensors"):
        torch.FloatTensor(2, device="cuda")
    with pytest.raises(RuntimeError):
        torch.FloatTensor(-1)
    assert torch.LongTensor(torch.Size([2, 3])).shape == (2, 3)
    assert torch.LongTensor(torch.tensor([1.7])).tolist() == [1]
    assert torch.LongTensor().shape == (0,)
    assert torch.FloatTensor(torch.tensor(3)).tolist() == 3
