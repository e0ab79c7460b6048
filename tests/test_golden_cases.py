"""Expressions give what PyTorch gives, or raise what it raises, on every device."""

import re

import pytest
from golden.describe import answer, difference, load

import pydevtensor as torch

SETS = (
    "activations",
    "amp",
    "attention",
    "averages",
    "breadth",
    "edges",
    "composed",
    "conv",
    "distributions",
    "forms",
    "func",
    "half",
    "history",
    "hooks",
    "layers",
    "linalg",
    "losses",
    "modules",
    "nn",
    "parametrize",
    "pooling",
    "recurrent",
    "resampling",
    "semantics",
    "special",
)
# A message has words of its own.
WORDS = re.compile(r"\s\S+\s")


@pytest.mark.parametrize(
    ("setup", "heading", "source", "expected"),
    [
        pytest.param(golden["setup"], *row, id=f"{name}: {row[0]}: {row[1]}")
        for name, golden in ((name, load(name)) for name in SETS)
        for row in golden["cases"]
    ],
)
def test_case(setup, heading, source, expected, device):
    if device != "cpu" and heading.endswith("on the CPU"):
        pytest.skip("a GPU draws other numbers, and reports errors later")
    with torch.device(device):
        found, message = answer(setup, source, torch)
    fault = difference(expected, found)
    assert fault is None, f"{source}: {fault} {message or ''}"
    assert message is None or WORDS.search(message), f"no help in {message!r}"
