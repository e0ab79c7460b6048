"""The CPU's generator gives PyTorch's numbers for the same seed."""

import math

import pytest
from golden.describe import load
from golden.random import numbers

import pydevtensor as torch

GOLDEN = load("random")


def value_of(number):
    return float.fromhex(number) if isinstance(number, str) else number


def close(call, dtype, expected, got):
    """Uniform numbers and integers are equal. Those that pass through a logarithm or a sine
    may differ in the last bit, in float32 (where PyTorch uses its own vector functions) by
    3e-7, times the standard deviation, at most 3 in these scripts."""
    if expected == got:
        return True
    if not any(name in call for name in ("randn", "normal", "exponential")):
        return False
    if dtype == "float64":
        return math.isclose(expected, got, rel_tol=1e-14, abs_tol=1e-16)
    if dtype in ("float16", "bfloat16"):  # may fall to the other side of a middle
        step = 2.0 ** -(10 if dtype == "float16" else 7)
        return abs(expected - got) <= step * abs(expected)
    return abs(expected - got) <= (3e-7 if "randn" in call else 9e-7) * max(
        1, abs(expected)
    )


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=f"{script['seed']}: {script['steps'][0][0]}")
        for script in GOLDEN["scripts"]
    ],
)
def test_numbers_after_a_seed(script):
    torch.manual_seed(script["seed"])
    for call, expected in script["steps"]:
        found = numbers(call, torch)
        if not isinstance(expected, dict) or "tensor" not in expected:
            assert (type(found), found) == (type(expected), expected), call
            continue
        assert (found["tensor"], found["shape"]) == (
            expected["tensor"],
            expected["shape"],
        ), call
        for i, (number, other) in enumerate(
            zip(expected["values"], found["values"], strict=True)
        ):
            assert close(call, expected["tensor"], value_of(number), value_of(other)), (
                f"after manual_seed({script['seed']}), {call} has {other} at {i}, "
                f"expected {number}"
            )


def test_small_normal_numbers_are_exact():
    """Fewer than 16 are computed in double precision, so even the last bit is the same."""
    checked = 0
    for script in GOLDEN["scripts"]:
        (call, expected), *more = script["steps"]
        if more or "randn" not in call or math.prod(expected["shape"]) >= 16:
            continue
        torch.manual_seed(script["seed"])
        if expected["tensor"] == "float32":
            assert numbers(call, torch) == expected, call
            checked += 1
    assert checked
