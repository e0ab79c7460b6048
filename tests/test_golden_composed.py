"""Functions of three tensors, products, norms, indexing, and what is made of other functions
give and raise what PyTorch does."""

import warnings

import pytest
from golden.describe import builtin_name, describe, difference, load, run

import pydevtensor as torch

GOLDEN = {name: load(name) for name in ("composed", "breadth")}


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
    ("setup", "source", "expected"),
    [
        pytest.param(golden["setup"], *row[1:], id=f"{row[0]}: {row[1]}")
        for golden in GOLDEN.values()
        for row in golden["cases"]
    ],
)
def test_case(setup, source, expected, device):
    if "manual_seed" in source and device != "cpu":
        pytest.skip("GPUs have random numbers of their own")
    with torch.device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = run(f"{setup}\n{source}", {"torch": torch})
        except Exception as error:
            found, said = {"raises": builtin_name(error)}, str(error)
        else:
            found, said = without_strides(describe(value, torch)), None
            value = None
    raises = isinstance(expected, dict) and "raises" in expected
    if said is not None and raises:
        assert found == expected, f"{source}: {said}"
        assert len(said) > 20 or found["raises"] == "TypeError", said
        return
    assert said is None, f"{source} raises {said}"
    assert not raises, f"{source} gives {found}"
    apart = difference(with_strides(expected), with_strides(found))
    assert apart is None, f"{source}: {apart}"
