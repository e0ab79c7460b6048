"""Special functions: against identities; values against PyTorch's in golden/special.json."""

import math

import pytest

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck

F64 = torch.float64
s = torch.special


def test_names_are_the_packages():
    assert s.gammaln is torch.lgamma
    assert s.psi is torch.digamma
    assert s.expit is torch.sigmoid
    x = torch.tensor([0.5, 1.5])
    assert torch.equal(s.log_softmax(x, 0), torch.log_softmax(x, 0))


def test_parts_of_the_gamma_distribution(device):
    a = torch.tensor([0.01, 1.0, 20.0, 300.0, 5e5, 3e6], dtype=F64, device=device)
    for factor in (0.3, 0.999, 1.0, 1.001, 3.0):
        below, above = torch.igamma(a, a * factor), torch.igammac(a, a * factor)
        assert ((below + above - 1).abs() < 1e-9).all()
        # Of the next shape it is less by one term.
        x = a * factor
        term = (a * x.log() - x - (a + 1).lgamma()).exp()
        assert ((below - torch.igamma(a + 1, x) - term).abs() < 1e-8).all()


def test_inverse_of_the_normal_distribution(device):
    p = torch.tensor(
        [1e-300, 1e-20, 0.1, 0.5, 0.9, 1 - 1e-10], dtype=F64, device=device
    )
    assert ((s.log_ndtr(s.ndtri(p)) - p.log()).abs() < 1e-12 * (1 - p.log())).all()
    x = torch.tensor([-37.0, -1.0, 0.0, 3.0], dtype=F64, device=device)
    assert ((s.ndtr(x).log() - s.log_ndtr(x)).abs() < 1e-12 * (1 + x * x)).all()


def test_bessel_functions_at_large_numbers(device):
    x = torch.tensor([19.999, 20.0, 600.0, 713.0, -713.0], dtype=F64, device=device)
    half = (x.abs() / 2).exp()
    assert ((s.i0(x) / (s.i0e(x) * half * half) - 1).abs() < 1e-12).all()
    assert ((s.i1e(x) / s.i0e(x)).abs() < 1).all()
    assert s.i0(torch.tensor(800.0, device=device)).item() == math.inf


def test_derivatives():
    x = torch.tensor([-2.5, -0.4, 0.7, 3.2], dtype=F64, requires_grad=True)
    for function in (s.i0, s.i0e, s.i1, s.i1e, s.erfcx, s.log_ndtr, s.ndtr):
        assert gradcheck(function, (x,))
        assert gradgradcheck(function, (x,))
    p = torch.tensor([0.1, 0.5, 0.95], dtype=F64, requires_grad=True)
    for function in (s.ndtri, s.entr, lambda v: s.multigammaln(v + 2, 3)):
        assert gradcheck(function, (p,))
        assert gradgradcheck(function, (p,))
    a = torch.tensor([0.5, 1.0, 4.0], dtype=F64)
    for function in (s.gammainc, s.gammaincc):
        assert gradcheck(lambda v, f=function: f(a, v), (p,))
        assert gradgradcheck(lambda v, f=function: f(a, v), (p,))
    assert gradcheck(lambda v: s.zeta(a + 2, v), (p,))
    assert gradcheck(s.xlog1py, (p, p.detach().clone().requires_grad_()))


def test_second_derivative_of_log_ndtr_in_both_tails(device):
    def second(x):
        (first,) = torch.autograd.grad(s.log_ndtr(x).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0].double()

    x = torch.tensor([-20.0, -5, -1, 0, 1, 5, 9, 12, 14, 40, 100], device=device)
    found = second(x.requires_grad_())
    exact = second(x.detach().double().requires_grad_())
    assert ((found - exact).abs() <= 1e-4 * exact.abs() + 1e-37).all()
    assert (exact <= 0).all() and (exact[-2:] == 0).all()


def test_gradients_that_do_not_exist():
    a = torch.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError):
        torch.igamma(a, torch.tensor([1.0])).sum().backward()


def test_wrong_arguments():
    with pytest.raises(RuntimeError):
        s.multigammaln(torch.ones(2), 0)
    with pytest.raises(RuntimeError):
        torch.igamma(torch.ones(2), torch.ones(2, dtype=F64))
    with pytest.raises(NotImplementedError):
        torch.igamma(torch.ones(2).long(), torch.ones(2).long())
