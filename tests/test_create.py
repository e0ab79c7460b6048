"""Tensors of indices, ranges and other objects, beyond the golden files."""

import itertools
import math
import warnings

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor.autograd import gradcheck


def matrix(device, *shape):
    n = math.prod(shape)
    values = torch.arange(n, dtype=torch.float64, device=device) * 0.75 - 2
    return values.reshape(shape).requires_grad_()


def test_gradients_of_enumerations(device):
    a, b = matrix(device, 2, 3), matrix(device, 2)
    assert gradcheck(lambda x, y: torch.block_diag(x, y, y), (a, b))
    assert gradcheck(lambda x, y: torch.cartesian_prod(x, y, x), (b, matrix(device, 3)))
    assert gradcheck(lambda x: torch.combinations(x, 3), (matrix(device, 4),))
    assert gradcheck(torch.vander, (matrix(device, 4) + 0.3,))
    assert gradcheck(lambda x: x.sum_to_size(3, 1), (matrix(device, 2, 3, 4),))
    assert gradcheck(
        lambda x: (x * 2).fill_diagonal_(5, wrap=True), (matrix(device, 5, 2),)
    )


@pytest.mark.parametrize("again", [False, True])
def test_combinations_are_those_of_itertools(device, again):
    chosen = (
        itertools.combinations_with_replacement if again else itertools.combinations
    )
    for n in range(6):
        for r in range(1, 5):
            found = torch.combinations(torch.arange(n, device=device), r, again)
            assert found.shape[1] == r
            assert [tuple(row) for row in found.tolist()] == list(chosen(range(n), r))


def test_too_many_combinations_are_refused():
    with pytest.raises(RuntimeError, match="choose fewer"):
        torch.combinations(torch.arange(1000), 100)
    with pytest.raises(RuntimeError, match="choose fewer"):
        torch.combinations(torch.arange(1), 2**62, True)


@pytest.mark.parametrize("rows", [0, 1, 4])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_triangles_are_those_of_numpy(device, rows, columns):
    for offset in range(-6, 7):
        lower = torch.tril_indices(rows, columns, offset, device=device)
        upper = torch.triu_indices(rows, columns, offset, device=device)
        assert lower.device == upper.device == torch.device(device)
        assert (
            lower.tolist() == np.stack(np.tril_indices(rows, offset, columns)).tolist()
        )
        assert (
            upper.tolist() == np.stack(np.triu_indices(rows, offset, columns)).tolist()
        )


def test_diagonals_wrap_as_those_of_numpy(device):
    for rows, columns in itertools.product(range(8), range(1, 5)):
        expected = np.zeros((rows, columns))
        np.fill_diagonal(expected, 2, wrap=True)
        found = torch.zeros(rows, columns, device=device).fill_diagonal_(2, wrap=True)
        if rows:
            assert found.tolist() == expected.tolist(), (rows, columns)


def test_positions_are_those_of_numpy(device):
    shape = (3, 4, 5)
    flat = torch.arange(60, device=device)
    found = torch.unravel_index(flat, shape)
    for mine, theirs in zip(found, np.unravel_index(np.arange(60), shape), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_strides_of_the_callers(device):
    x = torch.empty_strided((3, 2), (4, 2), device=device).fill_(1)
    assert x.stride() == (4, 2)
    assert x.sum().item() == 6
    assert torch.empty_strided((3, 2), (0, 1), device=device).stride() == (0, 1)
    with pytest.raises(RuntimeError, match="smaller strides"):
        torch.empty_strided((2**31, 2**31), (2**31, 2**31), device=device)


def test_range_warns_where_it_is_called():
    with pytest.warns(UserWarning, match="arange") as caught:
        assert torch.range(0, 2).tolist() == [0, 1, 2]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("steps", [(0, 1, 0.1), (1, 2, 0.3), (3, -4, -0.7), (5, 5, 1)])
def test_range_counts_as_pytorch_does(device, steps):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = torch.range(*steps, dtype=torch.float64, device=device)
    first, last, step = steps
    count = math.floor((last - first) / step) + 1
    expected = [first + i * step for i in range(count)]
    assert found.tolist() == pytest.approx(expected, rel=1e-14)


def test_asarray_shares_where_it_can():
    array = np.ones(2, dtype=np.float32)
    assert torch.asarray(array).data_ptr() == array.ctypes.data
    assert torch.asarray(array, copy=False).data_ptr() == array.ctypes.data
    assert torch.asarray(array, copy=True).data_ptr() != array.ctypes.data
    assert torch.asarray(array, dtype=torch.float64).tolist() == [1, 1]
    with pytest.raises(ValueError, match="copy=False"):
        torch.asarray(array, dtype=torch.float64, copy=False)
    buffer = bytearray(8)
    assert torch.asarray(buffer).tolist() == [0, 0]
    torch.asarray(buffer, dtype=torch.uint8)[0] = 7
    assert buffer[0] == 7
    torch.asarray(b"12345678", dtype=torch.uint8)[0] = 0  # a copy: bytes never change
    array.flags.writeable = False
    assert torch.asarray(array).tolist() == [1, 1]
    x = torch.ones(2, requires_grad=True)
    assert torch.asarray(x) is x
    assert not torch.asarray(x, requires_grad=False).requires_grad
    assert torch.asarray(x, copy=True).grad_fn is not None
    assert torch.asarray(np.float32(3)).dtype == torch.float32


def test_asarray_on_a_gpu(gpu):
    x = torch.ones(2, device=gpu)
    assert torch.asarray(x) is x
    assert torch.asarray(x, device=gpu, copy=False) is x
    assert torch.asarray([1, 2], device=gpu).device == torch.device(gpu)
    assert torch.asarray(np.ones(2), device=gpu).device == torch.device(gpu)
    with pytest.raises(ValueError, match="copy=False"):
        torch.asarray(x, device="cpu", copy=False)


IN_PLACE = sorted(
    name
    for name, _, is_function, is_method in torch._C._signatures()
    if name.endswith("_") and not name.startswith("_") and is_function and is_method
)


def test_unary_rows_have_in_place_functions():
    assert {"abs_", "exp_", "sigmoid_", "relu_", "arctan_", "clamp_", "zero_"} <= {
        *IN_PLACE
    }
    assert not hasattr(torch, "add_")  # PyTorch has none of two operands
    x = torch.tensor([0.25, 0.5])
    for name in ("exp_", "sqrt_", "clip_", "negative_"):
        words = {"min": 0.3} if name == "clip_" else {}
        first, second = x.clone(), x.clone()
        assert getattr(torch, name)(first, **words) is first
        assert first.tolist() == getattr(second, name)(**words).tolist()


def test_names_of_types(device):
    x = torch.ones(2, dtype=torch.int64, device=device)
    assert torch.typename(x) == x.type()
    assert torch.typename(torch.nn.Linear(2, 2)).endswith(".Linear")
    assert torch.typename(int) == "int"
    assert torch.typename(None) == "NoneType"
    assert torch.typename(torch.typename) == "pydevtensor.typename"


def test_order_of_dimensions():
    """The answers are PyTorch's: with True, and with both formats of 4 dimensions."""
    formats = [torch.contiguous_format, torch.channels_last]
    last = {"memory_format": torch.channels_last}
    for x, order, unique, one_format in (
        (torch.empty(1, 2, 3, 4), (0, 1, 2, 3), False, True),
        (torch.empty(2, 2, 3, 4), (0, 1, 2, 3), True, True),
        (torch.ones(2, 3).expand(2, 2, 3), (0, 1, 2), False, False),
        (torch.empty(2, 3, 5, 7).transpose(1, 2), (0, 2, 1, 3), True, True),
        (torch.empty(2, 3, 5, 7).to(**last), (0, 2, 3, 1), True, True),
        (torch.empty(2, 1, 3, 3), (0, 1, 2, 3), False, False),
        (torch.empty(4, 1, 3, 3, **last), (0, 2, 3, 1), False, False),
        (torch.empty(1), (0,), False, True),
        (torch.empty(()), (), True, True),
        (torch.empty(2, 3).T, (1, 0), True, True),
    ):
        assert x.dim_order() == x.dim_order(ambiguity_check=False) == order
        for asked, answers in (True, unique), (formats, one_format):
            if answers:
                assert x.dim_order(ambiguity_check=asked) == order
                continue
            with pytest.raises(RuntimeError, match="no unique order of dimensions"):
                x.dim_order(ambiguity_check=asked)
    with pytest.raises(TypeError, match="ambiguity_check is 3; give True, False or"):
        torch.ones(1).dim_order(ambiguity_check=3)
