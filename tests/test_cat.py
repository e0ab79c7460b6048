"""cat, stack and their relatives."""

import threading

import numpy as np
import pytest
from conftest import DEVICES
from hypothesis import given, settings
from hypothesis import strategies as st

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


def numbers(shape, dtype="float32", start=0):
    values = np.arange(np.prod(shape, dtype=int)) + start
    return (
        (values % 5 % 2 if dtype == "bool" else values % 100)
        .astype(dtype)
        .reshape(shape)
    )


def laid_out(array, layout, where):
    """A tensor equal to array: row-major, columns first, every second one, or repeated
    without memory."""
    x = torch.tensor(array, device=where)
    if layout == "columns" and x.dim() > 1:
        return torch.tensor(array.swapaxes(0, -1).copy(), device=where).transpose(0, -1)
    if layout == "steps" and x.dim():
        wide = torch.zeros(*array.shape[:-1], 2 * array.shape[-1], dtype=x.dtype)
        wide = wide.to(where)
        wide[..., ::2] = x
        return wide[..., ::2]
    return x


LAYOUTS = ["rows", "columns", "steps"]


@st.composite
def joins(draw):
    """Arrays whose sizes agree but for one dimension, that dimension, their layouts."""
    ndim = draw(st.integers(1, 4))
    shape = draw(st.lists(st.integers(0, 4), min_size=ndim, max_size=ndim))
    dim = draw(st.integers(-ndim, ndim - 1))
    arrays, layouts = [], []
    for i in range(draw(st.integers(1, 10))):
        shape[dim] = draw(st.integers(0, 4))
        arrays.append(numbers(shape, draw(st.sampled_from(DTYPES)), 7 * i))
        layouts.append(draw(st.sampled_from(LAYOUTS)))
    return arrays, dim, layouts


def promoted(tensors):
    dtype = tensors[0].dtype
    for each in tensors:
        dtype = torch.promote_types(dtype, each.dtype)
    return dtype


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=150, deadline=None)
@given(case=joins())
def test_cat_as_numpy(where, case):
    arrays, dim, layouts = case
    tensors = [laid_out(a, b, where) for a, b in zip(arrays, layouts, strict=True)]
    made = torch.cat(tensors, dim)
    wanted = np.concatenate(arrays, dim)
    assert made.dtype == promoted(tensors)
    assert made.is_contiguous()
    assert tuple(made.shape) == wanted.shape
    assert made.device == tensors[0].device
    assert np.array_equal(made.cpu().numpy(), wanted)
    out = torch.empty(wanted.shape, dtype=torch.float64, device=where)
    assert torch.cat(tuple(tensors), dim=dim, out=out) is out
    assert np.array_equal(out.cpu().numpy(), wanted)


@pytest.mark.parametrize("where", DEVICES)
@settings(max_examples=100, deadline=None)
@given(
    shape=st.lists(st.integers(0, 4), max_size=4),
    count=st.integers(1, 10),
    dim=st.integers(-5, 4),
    data=st.data(),
)
def test_stack_as_numpy(where, shape, count, dim, data):
    dim %= len(shape) + 1
    arrays = [
        numbers(shape, data.draw(st.sampled_from(DTYPES)), 3 * i) for i in range(count)
    ]
    tensors = [laid_out(a, data.draw(st.sampled_from(LAYOUTS)), where) for a in arrays]
    wanted = np.stack(arrays, dim)
    for at in (dim, dim - len(shape) - 1):
        made = torch.stack(tensors, at)
        assert made.dtype == promoted(tensors)
        assert made.is_contiguous()
        assert tuple(made.shape) == wanted.shape
        assert np.array_equal(made.cpu().numpy(), wanted)


@pytest.mark.parametrize(
    "name", ["hstack", "vstack", "row_stack", "dstack", "column_stack"]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4)])
def test_relatives_as_numpy(device, name, shape):
    arrays = [numbers(shape, start=i) for i in range(3)]
    wanted = getattr(np, name.replace("row_", "v"))(arrays)
    tensors = [torch.tensor(a, device=device) for a in arrays]
    made = getattr(torch, name)(tensors)
    assert tuple(made.shape) == wanted.shape
    assert np.array_equal(made.cpu().numpy(), wanted)
    out = torch.empty(0, device=device)
    assert getattr(torch, name)(tensors, out=out) is out
    assert np.array_equal(out.cpu().numpy(), wanted)


def test_joined_without_agreeing():
    assert (
        torch.column_stack((torch.ones(2), torch.zeros(2, 2))).tolist()
        == [[1, 0, 0]] * 2
    )
    assert torch.vstack((torch.ones(3), torch.zeros(2, 3))).shape == (3, 3)
    assert torch.hstack((torch.tensor(1), torch.ones(2))).tolist() == [1, 1, 1]


def test_spellings(device):
    x, y = torch.ones(2, 3, device=device), torch.zeros(2, 1, device=device)
    wanted = [[1, 1, 1, 0]] * 2
    for made in [
        torch.cat((x, y), 1),
        torch.cat([x, y], axis=-1),
        torch.concat(tensors=(x, y), dim=1),
        torch.concatenate((x, y), axis=1),
        torch.cat([x, y], torch.tensor(1)),
    ]:
        assert made.tolist() == wanted
    assert torch.stack((x, x), axis=2).shape == (2, 3, 2)


def test_empty_vectors_are_left_out(device):
    x, empty = torch.ones(2, 3, device=device), torch.ones(0, device=device)
    assert torch.cat([empty, x, empty], 1).shape == (2, 3)
    assert torch.cat([empty, empty], 1).shape == (0,)
    assert torch.cat([torch.empty(0, 3, device=device), x]).shape == (2, 3)
    assert torch.cat([empty.double(), x]).dtype is torch.float64
    assert torch.stack([empty, empty]).shape == (2, 0)
    x.requires_grad_()
    empty.requires_grad_()
    torch.cat([empty, x]).sum().backward()
    assert x.grad.tolist() == [[1, 1, 1]] * 2
    assert empty.grad is None or empty.grad.shape == (0,)


def test_result_is_new_memory(device):
    x = torch.ones(3, device=device)
    for made in (torch.cat([x]), torch.stack([x]), torch.hstack([x])):
        made.zero_()
    assert x.tolist() == [1, 1, 1]


# --- errors


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.cat([]), ValueError, ["cat", "at least one"]),
        (lambda: torch.stack([]), RuntimeError, ["stack", "at least one"]),
        (lambda: torch.hstack(()), RuntimeError, ["hstack"]),
        (lambda: torch.cat(torch.ones(2, 3)), TypeError, ["tensors", "tuple or list"]),
        (lambda: torch.cat([torch.ones(2), 3]), TypeError, ["item 1", "3 (int)"]),
        (lambda: torch.cat([torch.ones(2), None]), TypeError, ["item 1", "None"]),
        (lambda: torch.cat([[1.0]]), TypeError, ["item 0", "list"]),
        (lambda: torch.cat(x for x in [torch.ones(2)]), TypeError, ["tuple or list"]),
        (lambda: torch.cat([torch.ones(2)], None), TypeError, ["dim", "None"]),
        (lambda: torch.cat([torch.ones(2)], True), TypeError, ["dim", "True"]),
        (
            lambda: torch.cat([torch.ones(2), torch.tensor(1.0)]),
            RuntimeError,
            ["tensor 1", "no dimensions"],
        ),
        (
            lambda: torch.cat([torch.ones(0), torch.ones(2, 3), torch.ones(3, 2)]),
            RuntimeError,
            ["tensor 2", "[3, 2]", "size 2 in dimension 1", "tensor 1", "[2, 3] has 3"],
        ),
        (
            lambda: torch.cat([torch.ones(2, 3), torch.ones(2)]),
            RuntimeError,
            ["tensor 1", "1 dimension,", "[2, 3]"],
        ),
        (
            lambda: torch.cat([torch.ones(2, 3)], 2),
            IndexError,
            ["dimension 2", "-2 to 1"],
        ),
        (
            lambda: torch.stack([torch.ones(2)], -3),
            IndexError,
            ["dimension -3", "-2 to 1"],
        ),
        (
            lambda: torch.stack([torch.ones(2), torch.ones(2), torch.ones(3)]),
            RuntimeError,
            ["tensor 2 has shape [3]", "tensor 0 has [2]"],
        ),
        (lambda: torch.stack([torch.ones([1] * 16)]), RuntimeError, ["17", "16"]),
        (
            lambda: torch.vstack([torch.ones(2), torch.ones(3)]),
            RuntimeError,
            ["vstack", "tensor 1"],
        ),
        (
            lambda: torch.cat([torch.ones(2)], out=torch.empty(0, dtype=torch.int64)),
            TypeError,
            ["float32", "int64"],
        ),
        (
            lambda: torch.stack([torch.ones(2)], out=torch.empty(3)),
            RuntimeError,
            ["[3]", "[1, 2]"],
        ),
        (lambda: torch.cat([torch.ones(2)], out=3), TypeError, ["out", "3 (int)"]),
        (
            lambda: torch.cat([torch.ones(2, requires_grad=True)], out=torch.empty(0)),
            RuntimeError,
            ["out=", "grad"],
        ),
        (
            lambda: torch.stack([torch.ones(2)] * 3, out=torch.ones(2).expand(3, 2)),
            RuntimeError,
            ["out", "expand"],
        ),
        (
            lambda: torch.broadcast_tensors(torch.ones(2), torch.ones(3)),
            RuntimeError,
            ["3"],
        ),
        (lambda: torch.broadcast_tensors(torch.ones(2), 3), TypeError, ["item 1"]),
        (lambda: torch.atleast_2d(torch.ones(2), 3), TypeError, ["item 1", "3"]),
        (lambda: torch.atleast_1d(3), TypeError, ["3 (int)"]),
    ],
)
def test_wrong_calls(call, error, words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_two_devices_are_named(gpu):
    x, y = torch.ones(2, 3), torch.ones(4, 3, device=gpu)
    for call in (torch.cat, torch.stack, torch.hstack):
        with pytest.raises(RuntimeError) as caught:
            call([x, x, y])
        for word in ("tensors[0]", "tensors[2]", "[2, 3]", "[4, 3]", "cpu", gpu):
            assert word in str(caught.value)
    with pytest.raises(RuntimeError, match=f"out.*{gpu}"):
        torch.cat([x], out=y[:2])


def test_out_that_shares_memory():
    x = torch.arange(6.0).reshape(2, 3)
    with pytest.raises(RuntimeError, match="tensor 1"):
        torch.cat([torch.ones(1, 3), x[1:]], out=x)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    # Columns between one another: no element is shared.
    wide = torch.arange(8.0).reshape(2, 4)
    torch.cat([wide[:, 1::2]], out=wide[:, ::2])
    assert wide.tolist() == [[1, 1, 3, 3], [5, 5, 7, 7]]


def test_out_keeps_its_layout(device):
    out = torch.zeros(3, 4, device=device).t()
    version = out._version
    torch.cat([torch.ones(2, 3, device=device)] * 2, out=out)
    assert out.stride() == (1, 4)
    assert out.sum().item() == 12
    assert out._version > version


def test_a_list_that_shrinks_meanwhile():
    tensors = [torch.ones(3) for _ in range(20)]

    class Shrinks:
        def __index__(self):
            tensors.clear()
            return 0

    assert torch.cat(tensors, Shrinks()).shape == (60,)


def test_threads_at_once(device):
    tensors = [torch.full((300, 50), float(i), device=device) for i in range(4)]
    wanted = torch.cat(tensors, 1).tolist()
    found = []

    def work():
        found.append(all(torch.cat(tensors, 1).tolist() == wanted for _ in range(5)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [True] * 4


def test_many_and_large(device):
    tensors = [torch.full((40, 25), float(i), device=device) for i in range(200)]
    made = torch.stack(tensors)
    assert made.shape == (200, 40, 25)
    assert made[:, 7, 11].tolist() == list(range(200))
    wide = torch.cat(tensors, 1)
    assert np.array_equal(
        wide.cpu().numpy(), np.concatenate([t.cpu().numpy() for t in tensors], 1)
    )


# --- gradients


def leaf(*shape, device="cpu", start=0.0):
    x = (
        torch.arange(1.0, 1 + np.prod(shape, dtype=int), dtype=torch.float64) / 7
        + start
    )
    return x.reshape(shape).to(device).requires_grad_()


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda *t: torch.cat(t, 1), [(2, 3), (2, 1), (2, 0)]),
        (lambda *t: torch.cat(t, -2), [(1, 3), (4, 3)]),
        (lambda *t: torch.cat(t), [(2, 2), (0,), (1, 2)]),
        (lambda a, b: torch.cat([a, b, a]), [(2,), (3,)]),
        (lambda a, b: torch.cat([a.t(), b.exp()]), [(2, 3), (1, 2)]),
        (lambda *t: torch.stack(t), [(2, 3)] * 3),
        (lambda *t: torch.stack(t, -1), [(2, 3)] * 2),
        (lambda *t: torch.stack(t), [()] * 4),
        (lambda *t: torch.hstack(t), [(2, 1), (2, 3)]),
        (lambda *t: torch.hstack(t), [(), (3,)]),
        (lambda *t: torch.vstack(t), [(3,), (2, 3)]),
        (lambda *t: torch.dstack(t), [(3,), (3,)]),
        (lambda *t: torch.column_stack(t), [(3,), (3, 2)]),
        (lambda *t: torch.broadcast_tensors(*t)[0] * t[1], [(3,), (2, 1)]),
        (lambda a: torch.atleast_3d(a), [(3,)]),
    ],
)
def test_gradients(device, function, shapes):
    leaves = [leaf(*s, device=device, start=i) for i, s in enumerate(shapes)]
    assert gradcheck(function, leaves)
    assert gradgradcheck(lambda *t: function(*t) ** 3, leaves)


def test_nodes_are_named_as_pytorch_does():
    x = torch.ones(2, requires_grad=True)
    names = {
        torch.cat: "CatBackward0",
        torch.concat: "CatBackward0",
        torch.stack: "StackBackward0",
        torch.hstack: "CatBackward0",
        torch.vstack: "CatBackward0",
        torch.dstack: "CatBackward0",
        torch.column_stack: "CatBackward0",
    }
    for function, name in names.items():
        assert function([x, torch.ones(2)]).grad_fn.name() == name
        assert function([torch.ones(2)]).grad_fn is None
    assert repr(torch.cat([x, x])) == "tensor([1., 1., 1., 1.], grad_fn=<CatBackward0>)"
    with torch.no_grad():
        assert torch.stack([x]).grad_fn is None


def test_gradients_of_other_dtypes(device):
    x = torch.ones(2, requires_grad=True, device=device)
    n = torch.ones(3, dtype=torch.int64, device=device)
    d = torch.ones(1, dtype=torch.float64, device=device, requires_grad=True)
    y = torch.cat([x, n, d])
    assert y.dtype is torch.float64
    (y * torch.arange(6.0, device=device)).sum().backward()
    assert x.grad.dtype is torch.float32
    assert x.grad.tolist() == [0, 1]
    assert d.grad.tolist() == [5]
    assert torch.cat([x.detach().long(), n]).grad_fn is None


def test_writing_into_a_tensor_of_a_join(device):
    x = torch.ones(2, device=device, requires_grad=True)
    y = torch.cat([x, x])
    y[0] = 5
    (y * y).sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_atleast_gives_the_same_tensor():
    x = torch.ones(2, 3)
    assert torch.atleast_1d(x) is x
    assert torch.atleast_2d(x) is x
    assert torch.atleast_3d(x).data_ptr() == x.data_ptr()
    assert [t.shape for t in torch.atleast_2d(torch.tensor(1), x)] == [(1, 1), (2, 3)]
    assert [t.shape for t in torch.atleast_3d([torch.ones(4)])] == [(1, 4, 1)]
    assert torch.atleast_1d() == ()


def test_broadcast_tensors_are_views():
    x, y = torch.arange(3), torch.ones(2, 1)
    a, b = torch.broadcast_tensors(x, y)
    assert a.shape == b.shape == (2, 3)
    assert a.stride() == (0, 1)
    assert b.data_ptr() == y.data_ptr()
    assert torch.broadcast_tensors() == ()
