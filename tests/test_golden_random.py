"""The CPU's generator gives PyTorch's numbers for the same seed."""

import math
import struct

import pytest
from golden.describe import dtype_name, flat, load
from golden.missing import missing

import pydevtensor as torch

GOLDEN = load("random")


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def close(call, dtype, expected, got):
    """Uniform numbers and integers are equal. Those that pass through a logarithm or a sine
    may differ in the last bit, in float32 (where PyTorch uses its own vector functions) by
    3e-7, times the standard deviation, at most 3 in these scripts."""
    if isinstance(expected, str):
        expected = float.fromhex(expected)
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
        for script in [*GOLDEN["scripts"], *GOLDEN["later"]]
    ],
)
def test_numbers_after_a_seed(script):
    for call, _ in script["steps"]:
        lacking = missing(call, torch)
        if lacking:
            pytest.skip(f"pydevtensor has no {lacking} yet")
    torch.manual_seed(script["seed"])
    for call, expected in script["steps"]:
        value = eval(call, {"torch": torch})
        if not isinstance(value, torch.Tensor):
            compare_plain(call, expected, value)
            continue
        assert dtype_name(value.dtype) == expected["tensor"], call
        assert list(value.shape) == expected["shape"], call
        got = flat(value.tolist())
        for place, (number, other) in enumerate(
            zip(expected["values"], got, strict=True)
        ):
            assert close(call, expected["tensor"], number, other), (
                f"after manual_seed({script['seed']}), {call} has {other!r} at {place}, "
                f"expected {number}"
            )


def compare_plain(call, expected, value):
    if isinstance(expected, dict):
        kind, inner = next(iter(expected.items()))
        got = {"Size": list, "dtype": dtype_name, "device": str}[kind](value)
        assert got == inner, call
    else:
        assert (type(value), value) == (type(expected), expected), call


def test_small_normal_numbers_are_exact():
    """Fewer than 16 come from double precision, so not even the last bit is left open."""
    checked = 0
    for script in GOLDEN["scripts"]:
        (call, expected), *more = script["steps"]
        if more or "randn" not in call or math.prod(expected["shape"]) >= 16:
            continue
        torch.manual_seed(script["seed"])
        got = flat(eval(call, {"torch": torch}).tolist())
        wanted = [float.fromhex(number) for number in expected["values"]]
        if expected["tensor"] == "float32":
            assert [float32(number) for number in got] == wanted, call
            checked += 1
    assert checked
