"""Functions of three tensors, products, norms and indexing give and raise what PyTorch does."""

import warnings

import pytest
from golden.describe import builtin_name, describe, difference, load, run

import pydevtensor as torch

GOLDEN = load("composed")


def without_strides(described):
    if isinstance(described, dict):
        rest = {key: value for key, value in described.items() if key != "stride"}
        return {key: without_strides(value) for key, value in rest.items()}
    if isinstance(described, list):
        return [without_strides(each) for each in described]
    return described


def with_strides(described):
    """As difference() wants them: none of ours are compared."""
    if isinstance(described, dict):
        rest = {key: with_strides(value) for key, value in described.items()}
        return {**rest, "stride": []} if "tensor" in rest else rest
    if isinstance(described, list):
        return [with_strides(each) for each in described]
    return described


@pytest.mark.parametrize(
    ("source", "expected"),
    [pytest.param(row[1], row[2], id=f"{row[0]}: {row[1]}") for row in GOLDEN["cases"]],
)
def test_case(source, expected, device):
    with torch.device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = run(f"{GOLDEN['setup']}\n{source}", {"torch": torch})
        except Exception as error:
            found, said = {"raises": builtin_name(error)}, str(error)
        else:
            found, said = without_strides(describe(value, torch)), None
            value = None
    if said is not None and "raises" in expected:
        assert found == expected, f"{source}: {said}"
        assert len(said) > 20 or found["raises"] == "TypeError", said
        return
    assert said is None, f"{source} raises {said}"
    assert "raises" not in expected, f"{source} gives {found}"
    apart = difference(with_strides(expected), with_strides(found))
    assert apart is None, f"{source}: {apart}"
