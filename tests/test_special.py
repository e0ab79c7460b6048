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


def mean_over_the_circle(f):
    """The mean of f(t) over t from 0 to pi: exact, since f is periodic and smooth."""
    t = (torch.arange(4096, dtype=F64) + 0.5) * (math.pi / 4096)
    return f(t).mean(-1)


def test_bessel_functions_of_the_first_and_second_kind(device):
    x = torch.tensor(
        [1e-8, 0.5, 1.999, 2.0, 5.1, 12.0, 60.0, 900.0], dtype=F64, device=device
    )
    y = x.cpu()[:, None]
    for order, found in enumerate((s.bessel_j0(x), s.bessel_j1(x))):
        exact = mean_over_the_circle(lambda t, n=order: (n * t - y * t.sin()).cos())
        assert ((found.cpu() - exact).abs() < 4e-15).all()
    for order, found in enumerate((s.modified_bessel_i0(x), s.modified_bessel_i1(x))):
        exact = mean_over_the_circle(
            lambda t, n=order: (y * t.cos() - y).exp() * (n * t).cos()
        )
        assert ((found * (-x).exp()).cpu() - exact)[:-1].abs().max() < 4e-15
    # Wronskians: Abramowitz and Stegun, 9.1.16 and 9.6.15.
    cross = s.bessel_j1(x) * s.bessel_y0(x) - s.bessel_j0(x) * s.bessel_y1(x)
    assert ((cross * x * math.pi / 2 - 1).abs() < 2e-14).all()
    k0, k1 = s.scaled_modified_bessel_k0(x), s.scaled_modified_bessel_k1(x)
    assert ((x * (s.i0e(x) * k1 + s.i1e(x) * k0) - 1).abs() < 2e-14).all()
    x = x[:-2]
    assert torch.allclose(s.modified_bessel_k0(x), k0[:-2] * (-x).exp(), rtol=1e-14)
    assert torch.allclose(s.modified_bessel_k1(x), k1[:-2] * (-x).exp(), rtol=1e-14)
    assert torch.equal(s.bessel_j1(-x), -s.bessel_j1(x))


def test_airy_function(device):
    # By mpmath 1.3, with 30 digits.
    known = {
        -10.0: 0.04024123848644319,
        -2.5: -0.11232506769296609,
        -1.0: 0.5355608832923521,
        0.0: 0.3550280538878172,
        0.999: 0.13545163140435457,
        1.0: 0.13529241631288141,
        4.0: 0.0009515638512048018,
        30.0: 3.2082175915504954e-49,
    }
    x = torch.tensor([*known], dtype=F64, device=device)
    exact = torch.tensor([*known.values()], dtype=F64, device=device)
    assert ((s.airy_ai(x) / exact - 1).abs() < 2e-13).all()


def test_orthogonal_polynomials(device):
    from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

    x = torch.tensor([-1.2, -1.0, -0.37, 0.0, 0.6, 1.0, 1.1], dtype=F64, device=device)
    a = x.cpu().numpy()
    for n in (0, 1, 2, 5, 30, 90):
        unit = [0.0] * n + [1.0]
        t = torch.from_numpy(chebyshev.chebval(a, unit)).to(device)
        for name, module in (
            ("hermite_polynomial_h", hermite.hermval),
            ("hermite_polynomial_he", hermite_e.hermeval),
            ("laguerre_polynomial_l", laguerre.lagval),
            ("legendre_polynomial_p", legendre.legval),
        ):
            exact = torch.from_numpy(module(a, unit)).to(device)
            found = getattr(s, name)(x, n)
            assert torch.allclose(found, exact, rtol=1e-9, atol=1e-11), (name, n)
        assert torch.allclose(s.chebyshev_polynomial_t(x, n), t, rtol=1e-9, atol=1e-11)
        # Mason and Handscomb, 1.2.3: the other kinds by the first one.
        u, v, w = (getattr(s, "chebyshev_polynomial_" + k)(x, n) for k in "uvw")
        u_before = s.chebyshev_polynomial_u(x, n - 1)
        for found, exact in ((u - u_before, v), (u + u_before, w)):
            assert torch.allclose(found, exact, rtol=1e-8, atol=1e-10)
        assert torch.allclose(u - x * u_before, t, rtol=1e-7, atol=1e-10)
        for kind in "tuvw":
            shifted = getattr(s, "shifted_chebyshev_polynomial_" + kind)(x, n)
            plain = getattr(s, "chebyshev_polynomial_" + kind)(2 * x - 1, n)
            assert torch.equal(shifted, plain)
    great = torch.tensor(2**62, device=device)  # no loop of so many steps
    for name in ("hermite_polynomial_he", "laguerre_polynomial_l"):
        assert getattr(s, name)(x, great).isnan().all()
    assert s.chebyshev_polynomial_t(x[1:-1], great)[[0, -1]].tolist() == [1.0, 1.0]
    degrees = torch.tensor([0, 3, 1], device=device)
    assert s.legendre_polynomial_p(0.5, degrees).tolist() == [1.0, -0.4375, 0.5]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_special_functions_of_other_types(dtype, device):
    x = torch.linspace(0.5, 8, 40, device=device).to(dtype)
    for name in ("airy_ai", "bessel_y1", "scaled_modified_bessel_k0"):
        found = getattr(s, name)(x)
        assert found.dtype == dtype
        assert torch.equal(found, getattr(s, name)(x.double()).to(dtype)), name
    out = torch.empty(0, dtype=dtype, device=device)
    assert torch.equal(s.bessel_j0(x, out=out), s.bessel_j0(x))
    y = x.reshape(4, 10).t()
    assert torch.equal(s.bessel_j0(y), s.bessel_j0(y.contiguous()))
    with pytest.raises(TypeError):
        s.laguerre_polynomial_l(0.5, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_median_is_zero(dtype, device):
    assert torch.special.ndtri(torch.tensor(0.5, dtype=dtype, device=device)) == 0
