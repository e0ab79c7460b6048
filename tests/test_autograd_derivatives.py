"""Derivatives of the tables' rows, reductions, views and products, against finite differences."""

import math

import numpy as np
import pytest
from leaves import leaf, spread
from op_tables import BINARY, UNARY

import pydevtensor as torch
from pydevtensor.autograd import grad, gradcheck, gradgradcheck

DIFFERENTIABLE = [row for row in UNARY if row.differentiable[0]]


# polygamma is one of a tensor and an int: test_derivatives_that_tests_call_otherwise.
DIFFERENTIABLE_PAIRS = [
    row for row in BINARY if any(row.differentiable) and row.name != "polygamma"
]


TAKE_NO_NUMBERS = {
    *("maximum", "minimum", "atan2", "fmax", "fmin", "hypot", "logaddexp"),
    *("logaddexp2", "igamma", "igammac"),
}


def strided(x):
    """x's elements through steps in memory."""
    wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype, device=x.device)
    wide[..., ::2] = x
    return wide[..., ::2]


# --- the tables' derivatives


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
def test_unary_derivative(row, device):
    function = getattr(torch, row.name)
    x = leaf(spread(max(row.low, -4), min(row.high, 4), (2, 3)), device)
    assert gradcheck(function, (x,))
    assert gradcheck(lambda v: function(strided(v.t())), (x,))
    assert gradgradcheck(function, (x,))


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
def test_unary_derivative_in_place(row, device):
    x = leaf(spread(max(row.low, -4), min(row.high, 4), (2, 3)), device)
    assert gradcheck(lambda v: getattr(v * 1, row.name + "_")(), (x,))


@pytest.mark.parametrize("row", DIFFERENTIABLE_PAIRS, ids=lambda row: row.name)
@pytest.mark.parametrize(
    "shapes", [((2, 3), (2, 3)), ((2, 1), (3,)), ((), (2,)), ((2, 2), ())], ids=str
)
def test_binary_derivative(row, shapes, device):
    function = getattr(torch, row.name)
    low, high = max(row.low, -4), min(row.high, 4)
    a = leaf(spread(low, high, shapes[0], 1), device)
    b = leaf(spread(low, high, shapes[1], 2) + 0.03, device)
    if not row.differentiable[0]:
        a = a.detach()
    if not row.differentiable[1]:
        b = b.detach()
    assert gradcheck(function, (a, b))
    if row.name not in ("remainder", "fmod"):
        assert gradgradcheck(function, (a, b))


@pytest.mark.parametrize("row", DIFFERENTIABLE_PAIRS, ids=lambda row: row.name)
def test_binary_derivative_with_numbers(row, device):
    function = getattr(torch, row.name)
    x = leaf(spread(max(row.low, 0.6), min(row.high, 3), (5,), 3), device)
    if row.name in TAKE_NO_NUMBERS:
        return
    if row.differentiable[0]:
        assert gradcheck(lambda v: function(v, 2.25), (x,))
    if row.name in ("copysign", "clamp_min", "clamp_max", "fmod"):
        return
    assert gradcheck(lambda v: function(2.25, v), (x,))


@pytest.mark.parametrize("row", DIFFERENTIABLE_PAIRS, ids=lambda row: row.name)
def test_binary_derivative_in_place(row, device):
    a = leaf(spread(max(row.low, 0.6), min(row.high, 3), (2, 3), 4), device)
    b = leaf(spread(max(row.low, 0.6), min(row.high, 3), (3,), 5) + 0.03, device)
    name = row.name + "_"
    if not hasattr(a, name):
        return
    if not row.differentiable[0]:
        a = a.detach()
    assert gradcheck(lambda v, w: getattr(v * 1, name)(w), (a, b))
    if row.name not in TAKE_NO_NUMBERS and row.differentiable[0]:
        assert gradcheck(lambda v: getattr(v * 1, name)(1.75), (a,))


def test_every_row_says_what_its_derivative_is():
    assert {row.name for row in DIFFERENTIABLE} >= {
        "exp",
        "log",
        "relu",
        "sigmoid",
        "tanh",
    }
    for row in (*UNARY, *BINARY):
        floating = row.takes("float32") and row.kind != "PREDICATE"
        # PyTorch has a derivative for neither.
        constant = row.name in ("floor_divide", "heaviside")
        assert any(row.differentiable) == (floating and not constant), row


def test_derivatives_that_tests_call_otherwise(device):
    x = leaf([0.3, 1.6, 4.2], device)
    for n in (0, 1, 2):
        assert gradcheck(lambda v, n=n: torch.polygamma(n, v), (x,))
        assert gradgradcheck(lambda v, n=n: v.polygamma(n), (x,))
    p = leaf([0.05, 0.3, 0.97], device)
    assert gradcheck(lambda v: torch.logit(v, 0.1), (p,))
    assert gradcheck(lambda v: torch.rsub(v, 3, alpha=2), (x,))
    assert gradcheck(lambda v: torch.float_power(v, 1.5), (x,))
    assert gradcheck(lambda v: torch.nan_to_num(v * v), (x,))
    y = torch.tensor([1.0, math.nan, math.inf, -math.inf], device=device)
    y.requires_grad_()
    assert grad(torch.nan_to_num(y).sum(), y)[0].tolist() == [1, 0, 0, 0]
    z = torch.tensor([0.0, 0.0], device=device, requires_grad=True)
    assert grad(torch.xlogy(z, z.detach()).sum(), z)[0].tolist() == [0, 0]
    assert grad(torch.sinc(z).sum(), z)[0].tolist() == [0, 0]
    a = torch.tensor([1.0, math.nan, 2.0], device=device, requires_grad=True)
    b = torch.tensor([math.nan, 1.0, 2.0], device=device, requires_grad=True)
    ga, gb = grad(torch.fmax(a, b).sum(), (a, b))
    assert ga.tolist() == [1, 0, 1] and gb.tolist() == [0, 1, 0]


def test_power_at_zero(device):
    x = torch.zeros(3, device=device, requires_grad=True)
    (x**2).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    x = torch.zeros(2, device=device, requires_grad=True)
    (x**0).sum().backward()
    assert x.grad.tolist() == [0, 0]
    e = torch.tensor([0.0, 1.0, 2.0], device=device, requires_grad=True)
    (torch.zeros(3, device=device) ** e).sum().backward()
    assert e.grad.tolist() == [0, 0, 0]


# --- reductions, views, products


REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "sum of one": lambda x: x.sum(1),
    "sum of several, kept": lambda x: x.sum((0, 2), keepdim=True),
    "mean": lambda x: x.mean(),
    "mean of one": lambda x: x.mean(-1),
    "prod": lambda x: x.prod(),
    "prod of one": lambda x: x.prod(1),
    "amax": lambda x: x.amax(1),
    "amin of several": lambda x: x.amin((0, 1)),
    "max": lambda x: x.max(),
    "max along": lambda x: x.max(1).values,
    "min along, kept": lambda x: x.min(2, keepdim=True).values,
    "norm": lambda x: x.norm(),
    "norm 1": lambda x: x.norm(1),
    "norm 3 of one": lambda x: x.norm(3, dim=1),
    "norm inf": lambda x: x.norm(float("inf"), dim=2),
}


VIEWS = {
    "reshape": lambda x: x.reshape(4, -1),
    "reshape of a transpose": lambda x: x.transpose(0, 1).reshape(-1),
    "view": lambda x: x.view(-1),
    "flatten": lambda x: x.flatten(1),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(0, -1),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "t": lambda x: x[0].t(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "expand": lambda x: x[:, :1].expand(2, 5, 4),
    "select": lambda x: x[1],
    "slice": lambda x: x[:, ::2, 1:3],
    "index": lambda x: x[..., None, -1],
    "narrow": lambda x: x.narrow(2, 1, 2),
    "split": lambda x: x.split(2, dim=2)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "iteration": lambda x: list(x)[1],
    "as_strided": lambda x: x.as_strided((2, 2), (12, 3), 1),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.permute(2, 1, 0).contiguous(),
    "to float32 and back": lambda x: x.to(torch.float32).to(torch.float64) * 0 + x,
    "where": lambda x: torch._C.maximum(x, x * 0.5),
    "broadcast_to": lambda x: x.broadcast_to(3, 2, 3, 4),
    "movedim": lambda x: x.movedim(0, 2),
}


@pytest.mark.parametrize("name", [*REDUCTIONS, *VIEWS])
def test_reduction_or_view_derivative(name, device):
    function = {**REDUCTIONS, **VIEWS}[name]
    x = leaf(spread(0.3, 3, (2, 3, 4), 7), device)
    eps = 1e-6
    assert gradcheck(function, (x,), eps=eps, atol=1e-4)
    if name not in ("to float32 and back",):
        assert gradgradcheck(lambda v: function(v * v), (x,), atol=1e-4)


def test_prod_with_zeros(device):
    for zeros in (1, 2):
        values = [2.0, 0.0, 3.0, 4.0] if zeros == 1 else [2.0, 0.0, 3.0, 0.0]
        x = leaf(values, device)
        x.prod().backward()
        others = [np.prod(values[:i] + values[i + 1 :]) for i in range(4)]
        assert x.grad.tolist() == others


def test_ties_share_the_gradient_of_an_extreme(device):
    x = torch.tensor([1.0, 3.0, 3.0], device=device, requires_grad=True)
    x.amax().backward()
    assert x.grad.tolist() == [0, 0.5, 0.5]


PRODUCTS = [
    ("mm", (2, 3), (3, 4)),
    ("mv", (2, 3), (3,)),
    ("dot", (3,), (3,)),
    ("bmm", (2, 3, 4), (2, 4, 2)),
    ("matmul", (3,), (3,)),
    ("matmul", (2, 3), (3,)),
    ("matmul", (3,), (3, 2)),
    ("matmul", (2, 3), (3, 2)),
    ("matmul", (2, 3, 4), (4, 2)),
    ("matmul", (2, 3, 4), (4,)),
    ("matmul", (4,), (2, 4, 3)),
    ("matmul", (2, 1, 3, 4), (3, 4, 2)),
    ("matmul", (3, 4), (2, 4, 2)),
]


@pytest.mark.parametrize("name, left, right", PRODUCTS)
def test_product_derivative(name, left, right, device):
    a, b = leaf(spread(-2, 2, left, 8), device), leaf(spread(-2, 2, right, 9), device)
    function = getattr(torch, name)
    assert gradcheck(function, (a, b))
    assert gradgradcheck(function, (a, b))
    np.testing.assert_allclose(
        function(a, b).detach().cpu().numpy(),
        np.matmul(a.detach().cpu().numpy(), b.detach().cpu().numpy()),
    )


def test_addmm_derivative(device):
    c, a, b = (
        leaf(spread(-2, 2, s, 10 + i), device)
        for i, s in enumerate([(4,), (2, 3), (3, 4)])
    )
    assert gradcheck(lambda *t: torch.addmm(*t, beta=0.5, alpha=2), (c, a, b))
    assert gradgradcheck(torch.addmm, (c, a, b))
