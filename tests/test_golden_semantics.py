"""Every spelling of every operation gives what PyTorch gives, on every device."""

import warnings

import pytest
from golden.describe import describe, difference, load, run
from golden.missing import NEEDED, missing

import pydevtensor as torch

GOLDEN = load("semantics")
LATER = {row[1] for row in GOLDEN["later"]}
CASES = [*GOLDEN["cases"], *GOLDEN["later"]]


@pytest.mark.parametrize(
    ("source", "expected"),
    [pytest.param(row[1], row[2], id=f"{row[0]}: {row[1]}") for row in CASES],
)
def test_expression(source, expected, device):
    if device != "cpu" and source in GOLDEN["cpu_only"]:
        pytest.skip("PyTorch itself answers differently on a GPU")
    lacking = missing(source, torch)
    if lacking:
        pytest.skip(f"pydevtensor has no {lacking} yet")
    with torch.device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = run(f"{GOLDEN['setup']}; {source}", {"torch": torch})
        except (NotImplementedError, AttributeError) as error:
            if source not in LATER:
                raise
            # Only the text: the error itself would keep the tensors alive.
            lacking = str(error)
    if lacking:
        pytest.skip(lacking)
    if isinstance(value, torch.Tensor):
        assert value.device == torch.device(device)
    found = difference(expected, describe(value, torch))
    assert found is None, f"{source}: {found}"


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_the_names_of_the_gpu_chapter_exist(name):
    assert hasattr(torch, name) or hasattr(torch.Tensor, name)
