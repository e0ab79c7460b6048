"""Functions in Python: how they become public, and how calls reach them."""

import pickle
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from isolated import python
from signatures import NAMESPACES, function_of

import pydevtensor as torch

TOOLS = Path(__file__).resolve().parents[1] / "tools" / "build"


def test_the_table_is_that_of_the_sources(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import functions

    assert set(functions.NAMESPACES.values()) == set(NAMESPACES)
    known = {space: set(torch._C._signatures(space)) for space in NAMESPACES}
    found = functions.read()
    assert len(found) > 90
    for each in found:
        row = (each.name, each.signature, each.function, each.method)
        assert row in known[each.namespace]
        made = [function_of(each.full)] if each.function else []
        made += [getattr(torch.Tensor, each.name)] if each.method else []
        for value in made:
            assert value.__doc__.split() == each.doc.split()


@pytest.mark.parametrize("space", NAMESPACES[1:])
def test_the_binding_checks_every_function_of_a_namespace(space):
    home = function_of(space)
    values = {name: getattr(home, name) for name in dir(home)}
    assert len(values) >= 19
    assert [n for n, value in values.items() if isinstance(value, FunctionType)] == []


def test_a_module_is_imported_at_the_first_call():
    out = python("""
import sys
import pydevtensor as torch
def loaded():
    return {name for name in sys.modules if name.startswith('pydevtensor._functions.')}
torch.kron.__doc__, repr(torch.Tensor.kron)
print(loaded())
torch.hann_window(2)
print('pydevtensor._functions.windows' in loaded())
print('pydevtensor._functions.linalg' in loaded())
""")
    assert out.splitlines() == ["set()", "True", "False"]


def test_names_and_pickles():
    for function in (torch.kron, torch.Tensor.kron, torch.trapz, torch.Tensor.addmv_):
        assert pickle.loads(pickle.dumps(function)) is function
    assert torch.Tensor.addmv_.__qualname__ == "Tensor.addmv_"
    assert torch.kron.__module__ == "pydevtensor"
    assert repr(torch.kron) == "<built-in function kron>"


def test_only_methods_bind():
    class Holder:
        kron = torch.kron

    x = torch.tensor([1.0, 2.0])
    assert Holder().kron(x, x).tolist() == x.kron(x).tolist() == [1, 2, 2, 4]
    with pytest.raises(TypeError, match=r"Tensor.kron\(\) needs an argument"):
        torch.Tensor.kron()


def test_arguments_are_converted():
    x = torch.tensor([[3.0, 1.0, 2.0]])
    # An int of NumPy, a Tensor as a number, a dtype of Python, sizes as arguments.
    assert x.histc(np.int64(2), min=torch.tensor(1), max=3.0).tolist() == [1, 2]
    assert x.nansum(dtype=float).dtype == torch.float64
    assert x.sum_to_size(1, 1).tolist() == x.sum_to_size([1, 1]).tolist() == [[6.0]]
    assert torch.hann_window(3, device=x.device).shape == (3,)
    assert torch.block_diag([x, x]).shape == torch.block_diag(x, x).shape == (2, 6)
    for call in (
        lambda: x.histc(2.5),
        lambda: x.histc(bins="2"),
        lambda: torch.kron(x, 1),
        lambda: torch.kron(x, x, out=1),
        lambda: torch.hann_window(2, device=1.5),
        lambda: torch.block_diag(x, 1),
    ):
        with pytest.raises(TypeError):
            call()


def test_many_arguments():
    vectors = [torch.tensor([float(n)]) for n in range(40)]
    assert torch.block_diag(*vectors).diagonal().tolist() == list(range(40))
    assert torch.einsum("i,i->", vectors[2], vectors[3]).item() == 6


def test_out_and_in_place(device):
    x = torch.tensor([1.0, 2.0], device=device)
    out = torch.empty(0, device=device)
    assert torch.kron(x, x, out=out) is out
    assert out.tolist() == [1, 2, 2, 4]
    leaf = x.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="out="):
        torch.kron(leaf, x, out=out)
    with torch.no_grad():
        assert torch.kron(leaf, x, out=out) is out
    assert x.ldexp_(torch.tensor(1, device=device)) is x
    assert x.tolist() == [2, 4]
    pair = (
        torch.empty(0, device=device),
        torch.empty(0, dtype=torch.int32, device=device),
    )
    made = torch.frexp(x, out=pair)
    assert made.mantissa is pair[0] and made.exponent is pair[1]
    assert pair[1].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("call", "start"),
    [
        (lambda x: x.reshape(1, 2).renorm(2, 0, -1), "renorm(): maxnorm is -1"),
        (lambda x: torch.hstack([x, x.reshape(1, 2)]), "hstack(): tensor 1 of shape"),
        (lambda x: torch.row_stack([]), "row_stack(): no Tensors were given"),
        (lambda x: x.addmv_(x, x), "addmv_(): shapes [2] and [2]"),
        (lambda x: torch.linalg.norm(x.int()), "norm(): not defined for"),
    ],
)
def test_an_error_names_the_function_that_was_called(call, start):
    with pytest.raises(RuntimeError) as caught:
        call(torch.ones(2))
    assert str(caught.value).startswith(start)


def test_addbmm_keeps_the_type_of_integers(device):
    """Its sum over the batch is no int64, as sum()'s is."""
    x = torch.ones(2, 2, 2, dtype=torch.int16, device=device)
    found = torch.addbmm(torch.zeros(2, 2, dtype=torch.int16, device=device), x, x)
    assert found.dtype is torch.int16 and found.tolist() == [[4, 4], [4, 4]]


def test_odd_arguments_that_pytorch_takes(device):
    x = torch.tensor(2j, device=device)
    assert x.adjoint() == -2j and torch.tensor(2.0, device=device).adjoint() == 2
    power = torch.float_power(torch.tensor([2.0], device=device), 1j)
    assert power.dtype == torch.complex128 and abs(power.item() - 2**1j) < 1e-9
    nothing = torch.zeros(3, 0, dtype=torch.int64, device=device)
    assert torch.trapezoid(nothing).dtype == torch.int64
    row = torch.tensor([[3.0, 4.0]], device=device)
    unit = torch.nn.functional.normalize(row, dim=None)
    assert torch.allclose(unit, row / 5)
