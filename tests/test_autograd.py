"""Gradients: derivatives against finite differences, graphs, modes, hooks, errors."""

import copy
import gc
import math
import pickle
import threading
import weakref

import numpy as np
import pytest
from op_tables import BINARY, UNARY

import pydevtensor as torch
from pydevtensor.autograd import (
    Function,
    GradcheckError,
    grad,
    gradcheck,
    gradgradcheck,
)

DIFFERENTIABLE = [row for row in UNARY if row.differentiable[0]]
# polygamma is one of a tensor and an int: test_derivatives_that_tests_call_otherwise.
DIFFERENTIABLE_PAIRS = [
    row for row in BINARY if any(row.differentiable) and row.name != "polygamma"
]
TAKE_NO_NUMBERS = {
    *("maximum", "minimum", "atan2", "fmax", "fmin", "hypot", "logaddexp"),
    *("logaddexp2", "igamma", "igammac"),
}


def spread(low, high, shape, seed=0):
    """Numbers between low and high, away from whole ones, where functions have steps."""
    random = np.random.default_rng(seed)
    values = random.uniform(low, high, shape)
    near = np.abs(values - np.round(values * 2) / 2) < 0.05
    return np.where(near, values + np.where(values + 0.12 < high, 0.11, -0.12), values)


def leaf(values, device):
    return torch.tensor(values, dtype=torch.float64, device=device).requires_grad_()


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


# --- graphs


def test_a_name_for_every_node():
    x = torch.ones(2, 2, requires_grad=True)
    names = {
        "AddBackward0": x + 1,
        "MulBackward0": 2 * x,
        "RsubBackward1": 1 - x,
        "PowBackward0": x**2,
        "PowBackward1": x**x,
        "PowBackward2": 2**x,
        "ExpBackward0": x.exp(),
        "Log1PBackward0": x.log1p(),
        "SumBackward0": x.sum(),
        "SumBackward1": x.sum(0),
        "MaxBackward1": x.max(),
        "MinBackward1": x.min(),
        "MaxBackward0": x.max(0).values,
        "MeanBackward0": x.mean(),
        "MmBackward0": x @ x,
        "MvBackward0": x @ x[0].detach(),
        "TransposeBackward0": x.transpose(0, 1),
        "TBackward0": x.t(),
        "ViewBackward0": x.view(4),
        "SelectBackward0": x[0],
        "SliceBackward0": x[:1],
        "CloneBackward0": x.clone(),
        "ToCopyBackward0": x.double(),
        "LinalgVectorNormBackward0": x.norm(),
        "ReluBackward0": x.relu(),
    }
    assert {y.grad_fn.name(): None for y in names.values()}.keys() == names.keys()
    assert repr(x.sum()) == "tensor(4., grad_fn=<SumBackward0>)"
    assert repr(x[0]) == "tensor([1., 1.], grad_fn=<SelectBackward0>)"


def test_next_functions():
    x = torch.ones(2, requires_grad=True)
    y = x * 2 + 1
    ((product, number),) = [e for e in y.grad_fn.next_functions if e[0]]
    assert (product.name(), number) == ("MulBackward0", 0)
    assert [e[0].name() for e in product.next_functions if e[0]] == ["AccumulateGrad"]
    assert y.grad_fn == y.grad_fn and y.grad_fn != product
    assert x.grad_fn is None and x.is_leaf and not y.is_leaf


def test_gradients_accumulate_in_place(device):
    x = torch.ones(3, device=device, requires_grad=True)
    (2 * x).sum().backward()
    first = x.grad
    address = first.data_ptr()
    (3 * x).sum().backward()
    assert x.grad.tolist() == [5, 5, 5] and x.grad.data_ptr() == address
    assert first.tolist() == [5, 5, 5]
    x.grad = None
    assert x.grad is None


def test_a_leaf_used_twice_and_a_diamond(device):
    x = torch.tensor(3.0, device=device, requires_grad=True)
    y = x * x
    (y + y * x).backward()
    assert x.grad.item() == 6 + 27


def test_a_long_chain_neither_overflows_nor_stays():
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(200_000):
        y = y + 1
    z = y.sum()
    z.backward()
    assert x.grad.tolist() == [1, 1]
    del y, z  # freed in a loop, not in 200,000 nested calls


def test_a_dropped_graph_frees_its_tensors():
    x = torch.ones(1000, requires_grad=True)
    before = torch._C._storage_count(torch.device("cpu"))
    y = (x.exp() * x.sin()).sum()
    assert torch._C._storage_count(torch.device("cpu")) > before
    del y
    assert torch._C._storage_count(torch.device("cpu")) == before


def test_higher_derivatives(device):
    x = torch.tensor(2.0, dtype=torch.float64, device=device, requires_grad=True)
    y = x.exp() * x**3
    values = [y]
    for _ in range(3):
        values.append(grad(values[-1], x, create_graph=True)[0])
    e = np.exp(2)
    expected = [8 * e, (8 + 12) * e, (8 + 24 + 12) * e, (8 + 36 + 36 + 6) * e]
    np.testing.assert_allclose([v.item() for v in values], expected, rtol=1e-12)


def test_backward_that_is_recorded_accumulates_with_history():
    x = torch.tensor(2.0, requires_grad=True)
    (x**3).backward(create_graph=True)
    assert x.grad.requires_grad
    x.grad.backward()
    assert x.grad.item() == 12 + 12
    x.grad = None  # the gradient and the leaf refer to each other


def test_grad_leaves_leaves_alone(device):
    x = torch.ones(2, device=device, requires_grad=True)
    w = torch.ones(2, device=device, requires_grad=True)
    y = (x * w).sum()
    (gx,) = grad(y, [x], retain_graph=True)
    assert gx.tolist() == [1, 1] and x.grad is None and w.grad is None
    middle = x * 2
    (gm,) = grad((middle * middle).sum(), middle)
    assert gm.tolist() == [4, 4]
    other = torch.ones(2, device=device, requires_grad=True)
    assert grad(y, [other], allow_unused=True, retain_graph=True) == (None,)
    zeros = grad(y, [other], materialize_grads=True, retain_graph=True)
    assert zeros[0].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="not used"):
        grad(y, [other])


def test_backward_with_inputs(device):
    x = torch.ones(2, device=device, requires_grad=True)
    w = torch.ones(2, device=device, requires_grad=True)
    calls = []
    handle = x.register_post_accumulate_grad_hook(lambda x: calls.append(1))
    (x * w).sum().backward(inputs=[x])
    assert x.grad.tolist() == [1, 1] and w.grad is None and calls == [1]
    (x * w).sum().backward(inputs=[x, x])
    assert x.grad.tolist() == [2, 2]
    handle.remove()
    # A tensor that is not a leaf keeps its gradient from then on.
    y = x * 3
    (y * w).sum().backward(inputs=[x, y], retain_graph=True)
    assert x.grad.tolist() == [5, 5] and y.grad.tolist() == [1, 1]
    (y * w).sum().backward()
    assert y.grad.tolist() == [2, 2] and y.retains_grad and w.grad.tolist() == [3, 3]


def test_a_leaf_that_requires_none_any_more_gets_none(device):
    for end in (lambda x: x.requires_grad_(False), lambda x: x.detach_()):
        x = torch.ones(2, device=device, requires_grad=True)
        x.sum().backward()
        y = (x * 2).sum()
        end(x)
        y.backward()
        assert x.grad.tolist() == [1, 1]


def test_several_roots():
    x = torch.ones(2, requires_grad=True)
    torch.autograd.backward([x * 2, x * 3], [torch.ones(2), torch.tensor([1.0, 0.0])])
    assert x.grad.tolist() == [5, 2]


def test_gradient_argument(device):
    x = torch.ones(2, device=device, requires_grad=True)
    (x * 3).backward(torch.tensor([1.0, 2.0], device=device))
    assert x.grad.tolist() == [3, 6]
    with pytest.raises(RuntimeError, match=r"shape \[3\]"):
        (x * 3).backward(torch.ones(3, device=device))


# --- in place, and views


def test_in_place_changes_the_history(device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = x * 2
    y += 1
    y *= x
    y.sum().backward()
    assert x.grad.tolist() == [5, 5, 5]  # d (2x + 1) x


def test_writing_through_a_view_reaches_its_base(device):
    x = torch.ones(4, device=device, requires_grad=True)
    y = x * 2
    part = y[1:3]
    part *= 3
    (y * y).sum().backward()
    assert x.grad.tolist() == [8, 72, 72, 8]
    assert y.grad_fn.name() == "CopySlices"


def test_a_view_sees_what_was_written_to_its_base(device):
    x = torch.ones(4, device=device, requires_grad=True)
    y = x * 2
    part = y[1:3]
    y *= x
    part.sum().backward()
    assert part.grad_fn.name() == "AsStridedBackward0"
    assert x.grad.tolist() == [0, 4, 4, 0]


def test_assignment_is_recorded(device):
    x = torch.ones(3, device=device, requires_grad=True)
    w = torch.tensor([5.0, 7.0], device=device, requires_grad=True)
    y = x * 2
    y[1:] = w * 2
    y[0] = 4
    (y * y).sum().backward()
    assert x.grad.tolist() == [0, 0, 0] and w.grad.tolist() == [40, 56]
    blank = torch.zeros(2, 2, device=device)
    blank[:, 0] = w
    assert blank.requires_grad
    (g,) = grad((blank * 3).sum(), w)
    assert g.tolist() == [3, 3]


def test_assignment_derivative(device):
    a, b = (
        leaf(spread(-2, 2, (3, 4), 1), device),
        leaf(spread(-2, 2, (2, 2), 2), device),
    )

    def assign(x, y):
        z = x * x
        z[1:, ::2] = y * y
        z[0] *= 3
        z.t()[1].mul_(y[0, 0])
        return z * z

    assert gradcheck(assign, (a, b))
    assert gradgradcheck(assign, (a, b))


def test_a_leaf_is_not_written_in_place(device):
    x = torch.ones(3, device=device, requires_grad=True)
    for write in (
        lambda: x.add_(1),
        lambda: x.zero_(),
        lambda: x[0].fill_(2),
        lambda: x.__setitem__(0, 1.0),
        lambda: x.exp_(),
        lambda: x.normal_(),
        lambda: x.copy_(torch.zeros(3)),
        lambda: x.view(3, 1).mul_(2),
    ):
        with pytest.raises(RuntimeError, match="leaf"):
            write()
    assert x.tolist() == [1, 1, 1]
    with torch.no_grad():
        x.add_(1)
        x[0] = 5
    assert x.tolist() == [5, 2, 2] and x.requires_grad and x.is_leaf


def test_a_changed_tensor_is_noticed(device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = x.exp()
    z = y * 2
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    del z
    a = torch.ones(3, device=device)
    y = x * a
    a[0] = 2
    with pytest.raises(RuntimeError, match=r"MulBackward0.*version"):
        y.sum().backward()


def test_data_is_not_watched():
    x = torch.ones(3, requires_grad=True)
    y = x * x
    x.data[0] = 7
    x.data.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [16, 4, 4]
    assert not x.data.requires_grad
    x.data = torch.zeros(2)
    assert x.shape == (2,) and x.requires_grad
    x.grad = None
    (x + 1).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_versions_count_writes():
    x = torch.zeros(3)
    assert x._version == 0
    x.add_(1)
    x[0] = 2
    assert x._version == 2 and x[1:]._version == 2 and x.detach()._version == 2


# --- leaves


def test_requires_grad_rules(device):
    x = torch.zeros(2, device=device)
    assert not x.requires_grad and x.is_leaf and x.grad is None
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    for make in (torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn):
        assert make(2, device=device, requires_grad=True).requires_grad
    assert torch.tensor([1.0], device=device, requires_grad=True).requires_grad
    assert torch.arange(2.0, device=device, requires_grad=True).requires_grad
    assert torch.full((2,), 1.0, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating"):
        torch.ones(2, dtype=torch.int64, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="not a leaf"):
        (torch.ones(2, requires_grad=True) * 2).requires_grad_(False)
    y = torch.ones(2, requires_grad=True) * 2
    assert y.requires_grad_() is y


def test_integers_and_comparisons_have_no_gradient():
    x = torch.ones(3, requires_grad=True)
    for y in (x > 0, x.argmax(), x.long(), x == x, x.isnan(), x // 2 > 0):
        assert not y.requires_grad and y.grad_fn is None


def test_setting_grad():
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.tensor([1.0, 2.0])
    assert x.grad.tolist() == [1, 2]
    for wrong, error in (
        (torch.ones(3), RuntimeError),
        (torch.ones(2, dtype=torch.float64), RuntimeError),
        (1.0, TypeError),
        (x, RuntimeError),
    ):
        with pytest.raises(error):
            x.grad = wrong
    del x.grad
    assert x.grad is None


def test_detach(device):
    x = torch.ones(2, device=device, requires_grad=True)
    y = (x * 2).detach()
    assert not y.requires_grad and y.is_leaf
    z = x * 2
    assert z.detach_() is z and not z.requires_grad
    with pytest.raises(RuntimeError, match="view"):
        (x * 2)[0].detach_()
    d = x.detach()
    assert d.data_ptr() == x.data_ptr()


def test_numpy_wants_detach():
    x = torch.ones(2, requires_grad=True)
    for call in (x.numpy, lambda: np.asarray(x), (x * 2).numpy):
        with pytest.raises(RuntimeError, match="detach"):
            call()
    assert x.detach().numpy().tolist() == [1, 1]
    assert x.numpy(force=True).tolist() == [1, 1]


def test_copies_and_pickles_keep_the_wish():
    x = torch.ones(2, requires_grad=True)
    assert (
        copy.deepcopy(x).requires_grad and pickle.loads(pickle.dumps(x)).requires_grad
    )
    for call in (copy.deepcopy, pickle.dumps):
        with pytest.raises(RuntimeError, match="detach"):
            call(x * 2)


def test_out_and_gradients_do_not_mix():
    x = torch.ones(2, requires_grad=True)
    for call in (
        lambda: torch.add(x, 1, out=torch.empty(2)),
        lambda: torch.exp(x, out=torch.empty(2)),
        lambda: torch.sum(x, 0, out=torch.empty(())),
    ):
        with pytest.raises(RuntimeError, match="out="):
            call()


def test_gradients_cross_devices_and_types(gpu):
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3, device=gpu, dtype=torch.float64, requires_grad=True)
    (x.to(gpu) * w).sum().backward()
    assert x.grad.device.type == "cpu" and x.grad.dtype is torch.float32
    assert w.grad.device == torch.device(gpu) and w.grad.dtype is torch.float64
    scalar = torch.tensor(2.0, requires_grad=True)
    (scalar * w.detach()).sum().backward()
    assert scalar.grad.item() == 3 and scalar.grad.device.type == "cpu"


def test_backward_runs_on_the_streams_of_the_forward(gpu):
    x = torch.ones(1000, device=gpu, requires_grad=True)
    side = torch.cuda.Stream(gpu)
    side.wait_stream(torch.cuda.current_stream(gpu))
    with torch.cuda.stream(side):
        y = (x * 3).exp()
    z = None
    torch.cuda.current_stream(gpu).wait_stream(side)
    z = (y * 2).sum()
    z.backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), 6 * np.exp(3.0), rtol=1e-5)


# --- modes


def test_modes():
    x = torch.ones(2, requires_grad=True)
    assert torch.is_grad_enabled()
    with torch.no_grad():
        assert not torch.is_grad_enabled() and not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not (x * 2).requires_grad
    assert not torch.is_inference_mode_enabled()


def test_modes_are_left_by_exceptions_and_decorate():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0  # noqa: B018
    assert torch.is_grad_enabled()

    @torch.no_grad()
    def double(v):
        """Twice."""
        return v * 2

    @torch.no_grad
    def triple(v):
        return v * 3

    @torch.no_grad()
    def steps(v):
        for _ in range(2):
            yield v * 2

    assert not double(x).requires_grad and double.__doc__ == "Twice."
    assert not triple(x).requires_grad
    for y in steps(x):
        assert not y.requires_grad and torch.is_grad_enabled()
    assert double(x).tolist() == [2, 2]

    @torch.inference_mode()
    def infer(v):
        return v * 2

    assert not infer(x).requires_grad


def test_the_mode_is_a_threads_own():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_threads_share_leaves():
    w = torch.ones(1000, requires_grad=True)

    def work():
        for _ in range(50):
            (w * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.grad.tolist() == [400.0] * 1000


# --- hooks


def test_hooks_see_and_change_gradients(device):
    x = torch.ones(2, device=device, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    handle = x.register_hook(lambda g: g * 10)
    (y * 3).sum().backward()
    assert seen == [[3, 3]] and x.grad.tolist() == [60, 60]
    handle.remove()
    handle.remove()
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_hook_that_fails_reaches_the_user():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).sum().backward()
    y = torch.ones(2, requires_grad=True)
    y.register_hook(lambda g: "no")
    with pytest.raises(TypeError, match="hook"):
        (y * 2).sum().backward()
    with pytest.raises(RuntimeError, match="wants no gradient"):
        torch.ones(2).register_hook(print)
    with pytest.raises(TypeError):
        y.register_hook(3)


def test_hooks_after_accumulation(device):
    x = torch.ones(2, device=device, requires_grad=True)
    seen = []

    def step(leaf):
        assert leaf is x
        seen.append(leaf.grad.tolist())
        with torch.no_grad():
            leaf -= leaf.grad
        leaf.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    # Called once for all uses, and not where nothing is accumulated.
    (x * 2 + x * 3).sum().backward()
    assert seen == [[5, 5]] and x.grad is None and x.tolist() == [-4, -4]
    torch.autograd.grad((x * 2).sum(), x)
    assert len(seen) == 1
    handle.remove()
    (x * 2).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [2, 2]


def test_wrong_hooks_after_accumulation():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="is the result of an operation"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="wants no gradient"):
        torch.ones(2).register_post_accumulate_grad_hook(print)
    with pytest.raises(TypeError):
        x.register_post_accumulate_grad_hook(3)
    handle = x.register_post_accumulate_grad_hook(lambda leaf: 1)
    with pytest.raises(RuntimeError, match="has to return None"):
        (x * 2).sum().backward()
    handle.remove()
    x.register_post_accumulate_grad_hook(lambda leaf: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_a_leaf_with_a_hook_after_accumulation_is_freed():
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: 1 / 0)
    alive, y = weakref.ref(x), x * 2
    del x
    assert alive() is None
    y.sum().backward()  # nobody is left to be told
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf, me=x: None)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


def test_retain_grad(device):
    x = torch.ones(2, device=device, requires_grad=True)
    y = x * 2
    assert not y.retains_grad and y.grad is None
    y.retain_grad()
    y.retain_grad()
    (y * y).sum().backward(retain_graph=True)
    assert y.retains_grad and y.grad.tolist() == [4, 4]
    with pytest.raises(RuntimeError):
        torch.ones(2).retain_grad()


def test_a_kept_gradient_follows_the_tensor_and_comes_after_hooks(device):
    x = torch.ones(2, device=device, requires_grad=True)
    y, z = x * 2, x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [5.0, 5.0]
    y.mul_(3)
    y.sum().backward(retain_graph=True)
    assert y.grad.tolist() == [6.0, 6.0] and x.grad.tolist() == [40.0, 40.0]
    v = z[:1]
    v.retain_grad()
    z.mul_(3)
    (v.sum() + z.sum()).backward()
    assert v.grad.tolist() == [1.0]
    # A recorded pass does not record what later ones add.
    y, x.grad = x * 2, None
    y.retain_grad()
    torch.autograd.grad((y * y).sum(), x, create_graph=True)
    assert y.grad.requires_grad
    y.sum().backward()
    assert y.grad.tolist() == [5.0, 5.0] and not y.grad.requires_grad


def test_hooks_are_removed_after_their_tensor_was_written(device):
    x = torch.ones(2, device=device, requires_grad=True)
    for write in (lambda y, v: y.mul_(2), lambda y, v: v.mul_(2)):
        y = x * 1
        v = y[:1]
        calls = []
        handles = [
            t.register_hook(lambda g, calls=calls: calls.append(1)) for t in (y, v)
        ]
        write(y, v)
        assert v.grad_fn and y.grad_fn
        for handle in handles:
            handle.remove()
        (y.sum() + v.sum()).backward()
        assert not calls


def test_a_handle_alone_keeps_no_hook_alive():
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    x = torch.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g, m=marker: None)
    del x, marker
    gc.collect()
    assert alive() is None
    handle.remove()


def test_a_hook_behind_a_written_view_is_freed():
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, me=[y], m=marker: None)
    y[:1] += x[1:] * y[1:]
    del x, y, marker
    gc.collect()
    assert alive() is None


def test_a_hook_over_a_graph_is_freed():
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, m=marker: None)
    del marker, y
    gc.collect()
    assert alive() is None


def test_a_cycle_through_a_hook_is_collected():
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g, me=x, m=marker: None)
    del x, marker
    gc.collect()
    assert alive() is None


# --- operations of one's own


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * gradient


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return gradient * y


class Both(Function):
    @staticmethod
    def forward(ctx, x, y, factor):
        ctx.factor = factor
        ctx.save_for_backward(x, y)
        return x * y * factor, x + y

    @staticmethod
    def backward(ctx, product, total):
        x, y = ctx.saved_tensors
        return product * y * ctx.factor + total, product * x * ctx.factor + total, None


def test_function(device):
    x = leaf([0.5, -1.25, 2.0], device)
    y = leaf([1.5, 0.25, -1.0], device)
    assert gradcheck(Cube.apply, (x,)) and gradgradcheck(Cube.apply, (x,))
    assert gradcheck(Exp.apply, (x,)) and gradgradcheck(Exp.apply, (x,))
    assert gradcheck(lambda a, b: Both.apply(a, b, 3.0), (x, y))
    assert Cube.apply(x).grad_fn.name() == "CubeBackward"
    product, _ = Both.apply(x, y, 2.0)
    product.sum().backward()  # the other result's gradient is zeros
    np.testing.assert_allclose(x.grad.tolist(), [3, 0.5, -2])


def test_missing_gradients_as_zeros_or_as_none(device):
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, fills):
            ctx.set_materialize_grads(fills)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            seen.append((first, second))
            return None if second is None else second * 3, None

    x = torch.ones(2, device=device, requires_grad=True)
    for fills in (True, False):
        Two.apply(x, fills)[1].sum().backward()
        Two.apply(x, fills)[0].sum().backward()
    (zeros, _), (_, more), (none, _), (_, other) = seen
    assert none is None and other is None
    assert zeros.tolist() == more.tolist() == [0, 0] and str(zeros.device) == device
    assert x.grad.tolist() == [6, 6]


def test_equal_singular_values_have_gradients(device):
    """Zeros for the vectors' gradients would be divided by a difference of 0."""
    a = torch.eye(2, device=device, requires_grad=True)
    torch.linalg.svd(a)[1].sum().backward()
    assert a.grad.tolist() == [[1, 0], [0, 1]]


def test_function_faults():
    x = torch.ones(2, requires_grad=True)

    class TooMany(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return gradient, gradient

    class NoTensor(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return 3

    class WrongShape(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return torch.ones(5)

    class Raises(Cube):
        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("mine")

    for function, error, text in (
        (TooMany, RuntimeError, "returned 2 gradients"),
        (NoTensor, TypeError, "return Tensors"),
        (WrongShape, RuntimeError, r"shape \[5\]"),
        (Raises, KeyError, "mine"),
    ):
        with pytest.raises(error, match=text):
            function.apply(x).sum().backward()
    assert not Cube.apply(torch.ones(2)).requires_grad
    with torch.no_grad():
        assert not Cube.apply(x).requires_grad
    with pytest.raises(RuntimeError, match="apply"):
        Cube()
    changed = x * 2
    y = Cube.apply(changed)
    changed.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


def test_gradcheck_notices_a_wrong_derivative():
    class Wrong(Cube):
        @staticmethod
        def backward(ctx, gradient):
            return gradient

    x = leaf([0.5, 2.0], "cpu")
    with pytest.raises(GradcheckError, match="finite differences give"):
        gradcheck(Wrong.apply, (x,))
    assert not gradcheck(Wrong.apply, (x,), raise_exception=False)


# --- errors


def test_gradcheck_refuses_checks_that_it_does_not_make():
    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    for name in ("check_forward_ad", "check_batched_grad"):
        with pytest.raises(NotImplementedError, match=name):
            gradcheck(torch.sin, (x,), **{name: True})
    with pytest.raises(NotImplementedError, match="check_fwd_over_rev"):
        gradgradcheck(torch.sin, (x,), check_fwd_over_rev=True)


def test_seeds_of_gradgradcheck_can_have_gaps():
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            seen.append(gradient.is_contiguous())
            return gradient * 2

    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(Double.apply, (x,)) and all(seen)
    assert gradgradcheck(Double.apply, (x,), gen_non_contig_grad_outputs=True)
    assert not all(seen)


def test_deprecated_arguments_warn(device):
    x = torch.ones(2, device=device, requires_grad=True)
    with pytest.warns(FutureWarning, match="grad_tensors") as warned:
        torch.autograd.backward(x * 2, grad_variables=torch.ones_like(x))
    assert x.grad.tolist() == [2, 2]
    with pytest.warns(FutureWarning, match="only_inputs") as again:
        (found,) = torch.autograd.grad((x * 3).sum(), x, only_inputs=False)
    assert found.tolist() == [3, 3] and x.grad.tolist() == [2, 2]
    assert {each[0].filename for each in (warned, again)} == {__file__}


def test_backward_errors(device):
    x = torch.ones(2, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="scalar"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones((), device=device).backward()
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(TypeError):
        (x * 2).backward(3)
    with pytest.raises(ValueError):
        grad(y, [])
    with pytest.raises(RuntimeError, match="require grad"):
        grad((x * x).sum(), torch.ones(2))


def test_a_result_has_no_grad_and_says_so(device, recwarn):
    x = torch.ones(2, device=device, requires_grad=True)
    y = x * 2
    assert x.grad is None and x.detach().grad is None and not recwarn.list
    for _ in range(2):
        with pytest.warns(UserWarning, match="MulBackward0 computed it"):
            assert y.grad is None
    y.retain_grad()
    assert y.grad is None
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0] and not recwarn.list


def test_hooks_that_remove_hooks(device):
    calls, handles = [], []

    def once(number, *also):
        def hook(grad):
            calls.append(number)
            for i in (number, *also):
                handles[i].remove()

        return hook

    for leaf in (True, False):
        calls.clear()
        handles.clear()
        x = torch.ones(2, device=device, requires_grad=True)
        y = x if leaf else x * 2
        hooks = [once(i, *([2, 3] if i == 1 else [])) for i in range(12)]
        for hook in hooks:
            handles.append(y.register_hook(hook))
        del hooks, hook
        for _ in range(2):  # in the second pass none is left
            (y * 3).sum().backward(retain_graph=True)
        assert calls == [0, 1, *range(4, 12)]


OVERWRITES = {
    "zero_": lambda y: y.zero_(),
    "fill_": lambda y: y.fill_(2),
    "copy_": lambda y: y.copy_(torch.ones(2)),
    "[...]": lambda y: y.__setitem__(..., 3.0),
    "normal_": lambda y: y.normal_(),
    "cauchy_": lambda y: y.cauchy_(),
    "gt_": lambda y: y.gt_(1),
}


@pytest.mark.parametrize("write", OVERWRITES.values(), ids=OVERWRITES)
def test_the_gradient_of_what_was_overwritten_is_zeros(device, write):
    x = torch.ones(2, device=device, requires_grad=True)
    y = x * 1
    write(y)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


FLAT = {
    "gt_": lambda y: y.gt_(1),
    "eq_": lambda y: y.eq_(y.detach().clone()),
    "logical_not_": lambda y: y.logical_not_(),
    "div_": lambda y: y.div_(2, rounding_mode="floor"),
}


@pytest.mark.parametrize("name", FLAT)
def test_writing_without_a_derivative_ends_the_history(name, device):
    """What is overwritten has no part in the result any more."""
    x = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
    y = x * 3
    FLAT[name](y)
    (y * 2 + x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    y = x * 3
    FLAT[name](y[:1])
    x.grad = None
    (y + x).sum().backward()
    assert x.grad.tolist() == [1.0, 4.0]


def test_in_place_composites_save_what_they_overwrite(device):
    x = torch.tensor([3.0, 5.0], device=device)
    power = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
    assert x.ldexp_(power) is x and x.tolist() == [6.0, 20.0]
    x.sum().backward()
    np.testing.assert_allclose(
        power.grad.tolist(), np.log(2) * np.array([6, 20]), rtol=1e-6
    )


def test_once_differentiable(device):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return x**3 + y, y * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g, h):
            (x,) = ctx.saved_tensors
            assert not torch.is_grad_enabled()
            return 3 * x * x * g, None

    x = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
    y = torch.ones(2, device=device)
    (found,) = torch.autograd.grad(Cube.apply(x, y)[0].sum(), x)
    assert found.tolist() == [3, 12] and not found.requires_grad
    seed = torch.ones(2, device=device, requires_grad=True)
    (found,) = torch.autograd.grad(Cube.apply(x, y)[0], x, seed, create_graph=True)
    assert found.tolist() == [3, 12] and found.requires_grad
    with pytest.raises(RuntimeError, match="once_differentiable"):
        found.sum().backward()


# --- anomaly mode


def test_nan_is_found_with_the_line_of_the_program(device):
    x = torch.tensor([4.0, 0.0], device=device, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x.sqrt()  # this line
        loss = (y * torch.tensor([1.0, 0.0], device=device)).sum()
        with pytest.raises(RuntimeError, match="SqrtBackward0 gave NaN") as caught:
            loss.backward()
    text = str(caught.value)
    assert "input 0" in text and "y = x.sqrt()  # this line" in text
    assert __file__ in text and "anomaly_mode.py" not in text
    assert x.grad is None


def test_a_failing_backward_function_names_its_line(device):
    x = torch.ones(3, device=device, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        y = x.exp()
        z = y * 2
        y.zero_()
        with pytest.raises(RuntimeError, match="ExpBackward0 was called here") as error:
            z.sum().backward()
    assert "y = x.exp()" in str(error.value)


def test_anomaly_mode_is_as_in_pytorch():
    assert not torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    with pytest.warns(UserWarning, match="slower"):
        mode = torch.autograd.detect_anomaly(check_nan=False)
    assert not torch.is_anomaly_enabled()
    with mode:
        assert torch.is_anomaly_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
        with torch.autograd.set_detect_anomaly(True):
            assert torch.is_anomaly_check_nan_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
        x = torch.zeros(1, requires_grad=True)
        (x.sqrt() * 0).sum().backward()  # NaN is not looked for
        assert x.grad.isnan().all()
    assert not torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(True)
    try:
        assert torch.is_anomaly_check_nan_enabled()
    finally:
        torch.autograd.set_detect_anomaly(False)
    x = torch.zeros(1, requires_grad=True)
    (x.sqrt() * 0).sum().backward()
    with pytest.raises(TypeError):
        torch.autograd.set_detect_anomaly()


def test_infinities_and_integers_are_no_nan(device):
    x = torch.tensor([0.0, 1.0], device=device, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (x.log().sum() + x.long().sum()).backward()
        torch.empty(0, device=device, requires_grad=True).sum().backward()
    assert x.grad.tolist() == [float("inf"), 1.0]
