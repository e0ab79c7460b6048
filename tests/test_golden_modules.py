"""Modules, and operations on rows, look, answer and refuse as PyTorch's do, on every
device."""

import re
import warnings

import pytest
from golden.describe import builtin_name, describe_or_text, difference, load, run

import pydevtensor as torch

SETS = {name: load(name) for name in ("half", "modules", "rowwise")}
OUR_WORDS = re.compile(r"\s\S+\s")


def answer(setup, source, device):
    """As tools/golden/modules_cases.py has it; the message of an error beside it."""
    with torch.device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = run(f"{setup}\n{source}", {"torch": torch})
        except Exception as error:
            raised = {"raises": type(error).__name__, "builtin": builtin_name(error)}
            return raised, str(error)
        return describe_or_text(value, torch), None


@pytest.mark.parametrize(
    ("name", "heading", "source", "expected"),
    [
        pytest.param(name, *row, id=f"{row[0]}: {row[1]}")
        for name, golden in SETS.items()
        for row in golden["cases"]
    ],
)
def test_case(name, heading, source, expected, device):
    if device != "cpu" and heading.endswith("on the CPU"):
        pytest.skip("a GPU draws other numbers, and reports errors later")
    found, message = answer(SETS[name]["setup"], source, device)
    fault = difference(expected, found)
    assert fault is None, f"{source}: {fault} {message or ''}"
    assert message is None or OUR_WORDS.search(message), f"no help in {message!r}"
