"""Gradients of what sorts and selects."""

import math

import numpy as np
import pytest

import pydevtensor as torch


def different(*shape, device="cpu", seed=0):
    """Numbers so far apart that a finite difference changes no order."""
    count = math.prod(shape)
    data = (
        np.random.default_rng(seed).permutation(count).astype(np.float64).reshape(shape)
    )
    return torch.tensor(data, device=device, requires_grad=True)


@pytest.mark.parametrize("dim", [0, 1])
def test_gradients(device, dim):
    def check(function, x):
        assert torch.autograd.gradcheck(function, (x,))
        assert torch.autograd.gradgradcheck(function, (x,))

    x = different(3, 4, device=device)
    check(lambda x: x.sort(dim)[0] * x, x)
    check(lambda x: x.sort(dim, descending=True)[0] ** 2, x)
    check(lambda x: x.topk(2, dim)[0] ** 2, x)
    check(lambda x: x.kthvalue(2, dim)[0] ** 2, x)
    check(lambda x: x.median(dim, True)[0] ** 2, x)
    check(lambda x: x.nanmedian(dim)[0] ** 2, x)
    check(lambda x: x.median() ** 2, x)
    check(lambda x: x.msort() ** 2, x)


def test_gradient_of_the_first_of_equal_elements(device):
    x = torch.tensor([1.0, 2, 2], device=device, requires_grad=True)
    x.topk(1)[0].sum().backward()
    assert x.grad.tolist() == [0, 1, 0]
    y = torch.tensor(2.0, device=device, requires_grad=True)
    y.sort()[0].backward()
    assert y.grad.item() == 1


def test_what_differs_has_no_gradient(device):
    x = torch.tensor([1.0, 2], device=device, requires_grad=True)
    assert "Unique2Backward0" in repr(x.unique().grad_fn)
    with pytest.raises(NotImplementedError):
        x.unique().sum().backward()
    assert not x.detach().unique().requires_grad


def test_topk_of_no_elements_without_dimensions(device):
    """The element itself: there is no smaller shape, and no memory is left unwritten."""
    x = torch.tensor(3.5, device=device)
    for k in (0, 1):
        values, indices = x.topk(k)
        assert values.item() == 3.5 and indices.item() == 0
