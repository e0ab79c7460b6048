"""Modules look, answer and refuse as PyTorch's do, on every device."""

import re
import warnings

import pytest
from golden.describe import builtin_name, describe_or_text, difference, load, run

import pydevtensor as torch

GOLDEN = load("modules")
OUR_WORDS = re.compile(r"\s\S+\s")


def answer(source, device):
    """As tools/golden/modules_cases.py has it; the message of an error beside it."""
    with torch.device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = run(f"{GOLDEN['setup']}\n{source}", {"torch": torch})
        except Exception as error:
            raised = {"raises": type(error).__name__, "builtin": builtin_name(error)}
            return raised, str(error)
        return describe_or_text(value, torch), None


@pytest.mark.parametrize(
    ("heading", "source", "expected"),
    [pytest.param(*row, id=f"{row[0]}: {row[1]}") for row in GOLDEN["cases"]],
)
def test_case(heading, source, expected, device):
    if device != "cpu" and heading.endswith("on the CPU"):
        pytest.skip("a GPU draws other numbers, and reports errors later")
    found, message = answer(source, device)
    fault = difference(expected, found)
    assert fault is None, f"{source}: {fault} {message or ''}"
    assert message is None or OUR_WORDS.search(message), f"no help in {message!r}"
