"""gradient, histogram and windows, beyond the golden files."""

import numpy as np
import pytest

import pydevtensor as torch


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_is_that_of_numpy(edge_order, device):
    f = numbers(7, 5, 6)
    places = [np.cumsum(np.abs(numbers(k, n)) + 0.1) for k, n in ((8, 5), (9, 6))]
    x = torch.tensor(f, device=device)
    for spacing in ([2.0, 0.5], places):
        wanted = np.gradient(f, *spacing, edge_order=edge_order)
        ours = [
            torch.tensor(s, device=device) if isinstance(s, np.ndarray) else s
            for s in spacing
        ]
        found = torch.gradient(x, spacing=ours, edge_order=edge_order)
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine.cpu().numpy(), theirs, rtol=1e-10)


def test_histogram_is_that_of_numpy(device):
    x, weight = numbers(10, 200), np.abs(numbers(11, 200))
    given = torch.tensor(x, device=device)
    for bins, limits in (
        (7, None),
        (5, (-1.0, 0.75)),
        (np.array([-1, 0, 0.1, 2]), None),
    ):
        for density in (False, True):
            wanted, edges = np.histogram(
                x, bins, range=limits, weights=weight, density=density
            )
            ours = torch.tensor(bins, device=device) if limits is None else bins
            ours = bins if isinstance(bins, int) else ours
            found = given.histogram(
                ours,
                range=limits,
                weight=torch.tensor(weight, device=device),
                density=density,
            )
            np.testing.assert_allclose(found.bin_edges.cpu().numpy(), edges, rtol=1e-12)
            np.testing.assert_allclose(found.hist.cpu().numpy(), wanted, rtol=1e-10)


def test_windows_are_those_of_numpy(device):
    words = {"dtype": torch.float64, "device": device}
    for n in (2, 5, 8):
        for name in ("bartlett", "blackman", "hamming"):
            found = getattr(torch, f"{name}_window")(n, False, **words)
            wanted = getattr(np, name)(n)
            np.testing.assert_allclose(found.cpu().numpy(), wanted, atol=1e-15)
        found = torch.hann_window(n, False, **words)
        np.testing.assert_allclose(found.cpu().numpy(), np.hanning(n), atol=1e-15)
        for beta in (0.0, 3.0, 12.0, 60.0):
            found = torch.kaiser_window(n, False, beta, **words)
            wanted = np.kaiser(n, beta)
            np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-12)
    assert torch.hann_window(8, device=device).device == torch.device(device)


def test_diff_of_order_0_ignores_what_is_beside(device):
    x = torch.tensor([1.0, 3.0], device=device)
    assert x.diff(0, prepend=x, append=x).tolist() == [1.0, 3.0]
