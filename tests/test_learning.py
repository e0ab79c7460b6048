"""Losses, layers, optimizers and schedules give PyTorch's numbers, on every device."""

import pytest
from golden.describe import load
from golden.learning import learn

import pydevtensor as torch

GOLDEN = load("learning")["found"]


@pytest.mark.filterwarnings("ignore")
def test_everything_is_as_in_pytorch(device):
    found = learn(torch, device)
    assert found.keys() == GOLDEN.keys()
    faults = []
    for name, expected in GOLDEN.items():
        value = found[name]
        if isinstance(expected, str):
            if value != expected:
                faults.append(f"{name}: {value!r}, expected {expected!r}")
        elif value != pytest.approx(expected, rel=2e-4, abs=2e-6, nan_ok=True):
            faults.append(f"{name}: {value}, expected {expected}")
    assert not faults, "\n".join(faults)
