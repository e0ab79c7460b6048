"""The dtype of every operation on every pair of dtypes, or the exception instead."""

import pytest
from cases import Cases
from golden.describe import load
from golden.promotion import SECTIONS, table

import pydevtensor as torch

GOLDEN = load("promotion")
# PyTorch's CPU lacks a kernel that its GPUs have: a GPU may answer either way.
CPU_LACKS = "N"


def differences(expected, found, device, where=""):
    """Where two tables differ, as lines."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            yield from differences(value, found[key], device, f"{where} {key}:")
    else:
        rows = zip(expected.split(), found.split(), strict=True)
        for i, (row, other) in enumerate(rows):
            if device != "cpu":
                row = "".join(
                    b if a == CPU_LACKS else a for a, b in zip(row, other, strict=True)
                )
            if row != other:
                yield f"{where} row {i} is {other}, expected {row}"


@pytest.mark.parametrize("section", SECTIONS)
def test_dtypes(section, device):
    with Cases() as case:
        for source, expected in GOLDEN[section].items():
            with case(source):
                found = table(section, source, GOLDEN, torch, device)
                wrong = [*differences(expected, found, device)]
                assert not wrong, "\n".join([GOLDEN["dtypes"], *wrong[:20]])
