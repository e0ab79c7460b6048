"""Activations: derivatives of every order, layouts, types, and writing in place.

tests/golden/activations.json has PyTorch's numbers.
"""

import functools

import pytest
from signatures import bound

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.autograd import gradcheck, gradgradcheck

F = nn.functional
CALLS = {
    "celu": lambda x: F.celu(x, 0.7),
    "clamp": lambda x: x.clamp(-0.8, 0.9),
    "clamp_max": lambda x: x.clamp_max(0.9),
    "clamp_min": lambda x: x.clamp_min(-0.8),
    "elu": lambda x: F.elu(x, 1.3),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, "tanh"),
    "glu": lambda x: F.glu(x, 0),
    "hardshrink": F.hardshrink,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardtanh": lambda x: F.hardtanh(x, -0.8, 0.9),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.3),
    "logsigmoid": F.logsigmoid,
    "mish": F.mish,
    "relu6": F.relu6,
    "rrelu": F.rrelu,
    "selu": F.selu,
    "silu": F.silu,
    "softplus": lambda x: F.softplus(x, 2.5, 4),
    "softshrink": F.softshrink,
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
    "threshold": lambda x: F.threshold(x, 0.4, 2),
}
IN_PLACE = {
    "celu": lambda x: F.celu(x, 0.7, True),
    "elu": lambda x: F.elu(x, 1.3, True),
    "hardsigmoid": lambda x: F.hardsigmoid(x, True),
    "hardswish": lambda x: F.hardswish(x, True),
    "hardtanh": lambda x: F.hardtanh(x, -0.8, 0.9, True),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.3, True),
    "mish": lambda x: F.mish(x, True),
    "relu6": lambda x: F.relu6(x, True),
    "rrelu": lambda x: F.rrelu(x, inplace=True),
    "selu": lambda x: F.selu(x, True),
    "silu": lambda x: F.silu(x, True),
    "threshold": lambda x: F.threshold(x, 0.4, 2, True),
}


def spread(device, dtype=torch.float64):
    """Numbers on all sides of the bounds, none of them next to one."""
    numbers = [-7.0, -3.6, -1.7, -0.6, -0.2, 0.25, 0.65, 1.1, 2.2, 4.5, 6.6, 30.0]
    return torch.tensor(numbers, dtype=dtype, device=device)


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_both_orders(name, device):
    x = spread(device).requires_grad_()
    assert gradcheck(CALLS[name], x)
    if name not in ("leaky_relu", "rrelu"):  # linear on either side, tested above
        assert gradgradcheck(CALLS[name], x)


@pytest.mark.parametrize("name", CALLS)
def test_fused_gradients_equal_recorded_ones(name, device):
    # A pass that is recorded for a second derivative computes by other operations.
    for dtype in (torch.float64, torch.float32):
        x = spread(device, dtype).requires_grad_()
        y = CALLS[name](x)
        g = torch.linspace(-1, 1, y.numel(), dtype=dtype, device=device)
        (fused,) = torch.autograd.grad(y, x, g, retain_graph=True)
        (recorded,) = torch.autograd.grad(y, x, g, create_graph=True)
        close = 1e-14 if dtype == torch.float64 else 1e-6
        assert torch.allclose(fused, recorded, rtol=close, atol=close), name


@pytest.mark.parametrize("name", CALLS)
def test_layouts_and_half_precision(name, device):
    x = spread(device, torch.float32).repeat(3, 8)
    expected = CALLS[name](x.t().contiguous())
    assert torch.equal(CALLS[name](x.t()), expected)
    for dtype in (torch.float16, torch.bfloat16):
        h = x.t().to(dtype).requires_grad_()
        y = CALLS[name](h)
        if name not in ("softsign", "tanhshrink"):  # of several functions, as PyTorch's
            assert torch.equal(y, CALLS[name](h.detach().float()).to(dtype))
        y.sum().backward()
        wide = h.detach().float().requires_grad_()
        CALLS[name](wide).sum().backward()
        assert torch.allclose(h.grad.float(), wide.grad, rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name, device):
    leaf = spread(device).requires_grad_()
    x = leaf * 1
    y = IN_PLACE[name](x)
    assert y is x
    assert torch.equal(y, CALLS[name](leaf))
    g = torch.linspace(-1, 1, 12, dtype=torch.float64, device=device)
    y.backward(g)
    (expected,) = torch.autograd.grad(CALLS[name](leaf), leaf, g)
    assert torch.equal(leaf.grad, expected)


def test_inplace_means_the_same_for_every_row(device):
    names = {name for name, (form, *_) in bound() if "inplace: Truth" in form}
    for name in [*IN_PLACE, "relu"]:
        assert f"nn.functional.{name}" in names
        rest = {"threshold": 0.5, "value": 2} if name == "threshold" else {}
        function = functools.partial(getattr(F, name), **rest)
        x = spread(device)
        expected = function(x)
        assert function(x, inplace=False) is not x
        version = x._version
        assert function(x, inplace=1) is x
        assert x._version == version + 1
        assert torch.equal(x, expected)
        y = spread(device).requires_grad_() * 1
        z = y * y  # whose node needs y as it was
        assert function(input=y, inplace=True) is y
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
        with pytest.raises(RuntimeError, match=rf"^{name}(\(\))?: a leaf Variable"):
            function(spread(device).requires_grad_(), inplace=True)


def test_no_activation_has_a_hidden_second_name():
    rows = [row[0] for row in torch._C._operations()]
    assert [name for name in rows if hasattr(torch._C, f"_{name}")] == []


def test_an_alpha_of_zero_is_refused():
    for call in (torch.celu, torch.celu_, F.celu):
        with pytest.raises(RuntimeError, match=r"celu\(\): alpha is 0"):
            call(torch.ones(2), 0)


def test_derivatives_of_prelu(device):
    x = spread(device).reshape(2, 3, 2).requires_grad_()
    for weight in ([0.3], [0.1, 0.2, 0.3]):
        w = torch.tensor(weight, dtype=torch.float64, device=device, requires_grad=True)
        assert gradcheck(F.prelu, (x, w))
        assert gradgradcheck(F.prelu, (x, w))


def test_a_bound_that_is_a_tensor_gets_its_gradient(device):
    x = spread(device).requires_grad_()
    low = torch.full((12,), -0.8, dtype=torch.float64, device=device).requires_grad_()
    high = torch.tensor(0.9, dtype=torch.float64, device=device, requires_grad=True)
    assert gradcheck(torch.clamp, (x, low, high))
    assert gradcheck(lambda x, high: x.clamp(-0.8, high), (x, high))


def test_nothing_is_infinite_where_a_choice_drops_it(device):
    x = torch.tensor([300.0, -300.0], device=device, requires_grad=True)
    for call in (F.elu, F.celu, F.selu, F.softplus, F.mish, F.logsigmoid):
        (first,) = torch.autograd.grad(call(x).sum(), x, create_graph=True)
        assert first.isfinite().all()
        (second,) = torch.autograd.grad((first * first).sum(), x)
        assert second.isfinite().all()


def test_random_slopes_are_within_their_bounds(device):
    x = torch.full((1000,), -1.0, device=device, requires_grad=True)
    y = F.rrelu(x, 0.2, 0.4, training=True)
    assert ((y <= -0.2) & (y >= -0.4)).all()
    assert y.std() > 0.03
    y.sum().backward()
    assert torch.allclose(x.grad, -y)
    kept = torch.ones(5, device=device)
    assert torch.equal(F.rrelu(kept, training=True), kept)


def test_gumbel_softmax(device):
    torch.manual_seed(0)
    x = torch.tensor([0.0, 1.0, 2.0], device=device).repeat(4000, 1).requires_grad_()
    hard = F.gumbel_softmax(x, hard=True)
    assert torch.equal(hard.max(1)[0], torch.ones(4000, device=device))
    shares = hard.mean(0)
    assert torch.allclose(shares, x[0].softmax(0), atol=0.05)
    hard[:, 0].sum().backward()
    assert x.grad.abs().sum() > 0
