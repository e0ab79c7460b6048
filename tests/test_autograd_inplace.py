"""Gradients of what is written in place, through views too."""

import numpy as np
import pytest
from leaves import leaf, spread

import pydevtensor as torch
from pydevtensor.autograd import grad, gradcheck, gradgradcheck

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


# --- errors


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
