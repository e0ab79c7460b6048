"""Fourier transforms beside NumPy's; golden/fft.json has PyTorch's answers."""

import numpy as np
import pytest

import pydevtensor as torch
from pydevtensor._functions import fourier

# One product, products of products, and convolutions.
LENGTHS = (1, 2, 5, 64, 65, 67, 96, 131, 256, 2 * 67)


def signal(n, device, dtype=torch.complex128):
    angle = torch.arange(n, dtype=torch.float64, device=device) ** 2 / 7
    return torch.polar(torch.cos(angle / 3), angle).to(dtype)


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(device, n):
    x = signal(n, device)
    expected = np.fft.fft(x.cpu().numpy())
    np.testing.assert_allclose(torch.fft.fft(x).cpu(), expected, atol=1e-11)
    torch.testing.assert_close(torch.fft.ifft(torch.fft.fft(x)), x)
    torch.testing.assert_close(torch.fft.irfft(torch.fft.rfft(x.real), n), x.real)


@pytest.mark.parametrize("library", ["numpy", "none"])
def test_without_scipy(monkeypatch, library):
    x = signal(24, "cpu").reshape(4, 6)
    calls = [
        (torch.fft.fft2, x),
        (torch.fft.ifft, x.to(torch.complex64)),
        (torch.fft.rfftn, x.real),
        (torch.fft.irfft, x.to(torch.complex64)),
        (torch.fft.hfft, x),
    ]
    expected = [function(value) for function, value in calls]
    found = np.fft if library == "numpy" else None
    monkeypatch.setattr(fourier, "_library", lambda: found)
    for (function, value), answer in zip(calls, expected, strict=True):
        torch.testing.assert_close(function(value), answer)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_precision_stays(device, dtype):
    x = torch.ones(6, dtype=dtype, device=device)
    complex = {torch.float32: torch.complex64, torch.float64: torch.complex128}[dtype]
    half = torch.fft.rfft(x)
    assert half.dtype == complex and half.device == x.device
    assert torch.fft.irfft(half).dtype == dtype


def test_batches_without_elements(device):
    x = torch.ones(0, 6, device=device)
    assert torch.fft.fft(x).shape == (0, 6)
    assert torch.fft.rfft(x).shape == (0, 4)
    assert torch.fft.irfft(torch.fft.rfft(x)).shape == (0, 6)


def test_the_input_stays(device):
    x = signal(6, device)
    before = x.clone()
    torch.fft.fft(x, norm="ortho").zero_()
    assert torch.equal(x, before)


def test_a_result_in_out(device):
    out = torch.empty(4, dtype=torch.complex64, device=device)
    assert torch.fft.fft(torch.ones(4, device=device), out=out) is out
    torch.testing.assert_close(out.cpu(), torch.tensor([4 + 0j, 0, 0, 0]))
