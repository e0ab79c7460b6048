"""frexp, ldexp, nextafter and erfinv, beyond the golden files."""

import math

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor.autograd import gradcheck, gradgradcheck


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_parts_of_floats_are_those_of_numpy(name, device):
    information = np.finfo(name)
    values = np.concatenate(
        [numbers(12, 100).astype(name) * np.exp(30 * numbers(13, 100)).astype(name)]
        + [np.array([0, -0.0, information.tiny, information.max, 1, -1], dtype=name)]
        + [
            np.array(
                [information.tiny / 8, -information.smallest_subnormal], dtype=name
            )
        ]
    )
    x = torch.tensor(values, device=device)
    mantissa, exponent = torch.frexp(x)
    wanted = np.frexp(values)
    assert mantissa.tolist() == wanted[0].tolist()
    assert exponent.tolist() == wanted[1].tolist()
    other = torch.tensor(values[::-1].copy(), device=device)
    assert x.nextafter(other).tolist() == np.nextafter(values, values[::-1]).tolist()
    assert exponent.dtype == torch.int32


def test_gradients_of_parts_of_floats(device):
    x = torch.tensor([0.3, -5.0, 100.0], dtype=torch.float64, device=device)
    x.requires_grad_()
    powers = torch.tensor([2, -3, 0], device=device)
    assert gradcheck(lambda a: torch.ldexp(a, powers), (x,))
    assert gradcheck(lambda a: torch.frexp(a).mantissa, (x,))
    assert gradcheck(lambda a: torch.erfinv(a / 200), (x,))
    assert gradgradcheck(lambda a: torch.erfinv(a / 200), (x,))
    y = torch.tensor(numbers(14, 3, 4), device=device).requires_grad_()
    assert gradcheck(lambda a: a.renorm(3, 1, 1.2), (y,))
    assert gradcheck(lambda a: torch.gradient(a, edge_order=2), (y,))
    assert gradcheck(lambda a: torch.cumulative_trapezoid(a, dim=0), (y,))


def test_erfinv_is_the_inverse(device):
    y = torch.tensor(np.linspace(-5, 5, 401), device=device)
    found = torch.erf(y).erfinv()
    near = y.abs() < 2
    assert (found - y)[near].abs().max().item() < 1e-14
    for value in (1e-300, 1e-10, 0.0999, 0.1001, 0.5):
        x = torch.tensor(value, dtype=torch.float64, device=device).erfinv().item()
        assert math.erf(x) == pytest.approx(value, rel=4e-16)
