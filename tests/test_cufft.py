"""Transforms by cuFFT: on real GPUs that of the machine, on simulated ones a stand-in."""

import numpy as np
import pytest
from conftest import SIMULATED
from isolated import python

import pydevtensor as torch
from pydevtensor import _C

SIM = {"PYDEVTENSOR_SIM_GPUS": "1"}


@pytest.fixture
def cufft(here):
    if not _C._cufft_version():
        pytest.skip("needs cuFFT (nvidia-cufft)")
    return here


def complex_of(*shape, device, dtype=torch.complex128):
    angle = torch.arange(np.prod(shape), dtype=torch.float64).reshape(shape) ** 2 / 7
    return torch.polar(torch.cos(angle / 3), angle).to(device, dtype)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 60, 64, 65, 97, 1000, 1021])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_one_dimension(cufft, n, dtype):
    x = complex_of(3, n, device=cufft, dtype=dtype)
    close = {"rtol": 1e-5, "atol": 1e-5 * n if dtype == torch.complex64 else 1e-11 * n}
    wide = x.cpu().numpy().astype(np.complex128)
    for ours, numpys in (
        (torch.fft.fft(x), np.fft.fft(wide)),
        (torch.fft.ifft(x, norm="forward"), np.fft.ifft(wide, norm="forward")),
        (torch.fft.rfft(x.real), np.fft.rfft(wide.real)),
        (torch.fft.hfft(x, n), np.fft.hfft(wide, n)),
    ):
        np.testing.assert_allclose(ours.cpu(), numpys, **close)
    again = torch.fft.irfft(torch.fft.rfft(x.real), n)
    torch.testing.assert_close(again, x.real.contiguous(), **close)


@pytest.mark.parametrize(
    "dim", [(0,), (1, 2), (4, 3, 2), (0, 1, 2, 3, 4), (-1, 0), (3, 1)]
)
def test_several_dimensions(cufft, dim):
    x = complex_of(2, 4, 5, 3, 6, device=cufft)
    expected = np.fft.fftn(x.cpu().numpy(), axes=dim)
    found = torch.fft.fftn(x, dim=dim)
    assert found.is_contiguous()
    np.testing.assert_allclose(found.cpu(), expected, atol=1e-9)
    # An input that is not contiguous, and of a step.
    part = x.transpose(0, 4)[::2]
    expected = np.fft.fftn(part.cpu().numpy(), axes=dim)
    np.testing.assert_allclose(torch.fft.fftn(part, dim=dim).cpu(), expected, atol=1e-9)


def test_real_elements_along_any_dimension(cufft):
    x = complex_of(4, 6, 5, device=cufft).real
    array = x.cpu().numpy()
    for dim in range(3):
        half = torch.fft.rfft(x, dim=dim)
        np.testing.assert_allclose(half.cpu(), np.fft.rfft(array, axis=dim), atol=1e-12)
        kept = half.clone()
        found = torch.fft.irfft(half, x.shape[dim], dim=dim)
        torch.testing.assert_close(found, x.contiguous())
        assert torch.equal(half, kept)  # cuFFT may spoil what it makes real
    found = torch.fft.irfftn(torch.fft.rfftn(x), x.shape)
    torch.testing.assert_close(found, x.contiguous())


def test_gradients(cufft):
    x = complex_of(2, 6, device=cufft).real.contiguous().requires_grad_()
    assert torch.autograd.gradcheck(torch.fft.rfft, (x,))
    z = complex_of(2, 4, device=cufft).requires_grad_()
    assert torch.autograd.gradcheck(torch.fft.fft2, (z,))
    assert torch.autograd.gradcheck(lambda z: torch.fft.irfft(z, 7), (z,))


def test_the_order_of_streams(cufft, schedule):
    x = complex_of(8, 50, device=cufft)
    expected = torch.fft.fft(x * 2) + 1
    side = torch.cuda.Stream(cufft)
    torch.cuda.synchronize(cufft)
    results = []
    for _ in range(3):
        # One plan serves both streams, with a workspace of each.
        results.append(torch.fft.fft(x * 2) + 1)
        with torch.cuda.stream(side):
            results.append(torch.fft.fft(x * 2) + 1)
    torch.cuda.synchronize(cufft)
    for result in results:
        torch.testing.assert_close(result, expected)


def test_a_graph_captures_it(cufft):
    x = complex_of(2, 30, device=cufft)
    torch.fft.fft(x)  # the plan
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.fft.fft(x) * 3
    x.copy_(complex_of(2, 30, device="cpu") + 1)
    graph.replay()
    torch.testing.assert_close(y, torch.fft.fft(x) * 3)
    other = complex_of(2, 31, device=cufft)
    with (
        pytest.raises(RuntimeError, match="plan a transform while a graph is captured"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        torch.fft.fft(other)
    assert torch.fft.fft(other).shape == (2, 31)


@pytest.mark.parametrize(
    "arguments",
    [
        (0, True),
        (4, True),
        (3, True),
        (1, True, -1),
        (1, False, 3),
    ],
)
def test_wrong_calls(cufft, arguments):
    with pytest.raises(RuntimeError, match=r"dimensions of complex128|for 3 real ones"):
        _C._fourier(complex_of(3, 4, device=cufft), *arguments)


def test_other_devices_have_none():
    with pytest.raises(RuntimeError, match="without a library of transforms"):
        _C._fourier(torch.ones(3), 1, True)
    with pytest.raises(RuntimeError, match="1 of float32 or float64"):
        device = "cuda" if torch.cuda.is_available() else pytest.skip("needs a GPU")
        _C._fourier(torch.ones(3, dtype=torch.int64, device=device), 1, True)


PROGRAM = """
import pydevtensor as torch
for _ in range(2):
    x = torch.arange(12.0, device="cuda").reshape(2, 6)
    try:
        y = torch.fft.rfft(x)
        print(torch.allclose(y.cpu(), torch.fft.rfft(x.cpu()), atol=1e-5))
    except torch.AcceleratorError as error:
        print(error)
print(torch._C._cufft_version(), (x + 1).sum().item())
"""


@pytest.mark.skipif(not SIMULATED, reason="of simulated GPUs")
def test_without_it_products_compose_transforms():
    assert python(PROGRAM, **SIM) == "True\nTrue\n12000 78.0\n"
    out = python(PROGRAM, **SIM, PYDEVTENSOR_SIM_CUFFT="0")
    assert out == "True\nTrue\nNone 78.0\n"


@pytest.mark.skipif(not SIMULATED, reason="of simulated GPUs")
def test_a_plan_that_finds_no_memory():
    # Once: what the allocator caches may be enough. Always: an error, and on it goes.
    assert python(PROGRAM, **SIM, PYDEVTENSOR_SIM_FAIL="cufft:1")[:10] == "True\nTrue\n"
    out = python(PROGRAM, **SIM, PYDEVTENSOR_SIM_FAIL="cufft:1+").splitlines()
    assert len(out) == 3 and all("cuFFT" in line for line in out[:2]), out
    assert out[2] == "12000 78.0"
