"""Expressions give what PyTorch gives, or raise what it raises, on every device."""

import re

import pytest
from cases import Cases
from golden.describe import answer, difference, load

import pydevtensor as torch

SETS = (
    "activations",
    "amp",
    "attention",
    "averages",
    "benchmark",
    "breadth",
    "edges",
    "complex",
    "complex_linalg",
    "fft",
    "composed",
    "conv",
    "distributions",
    "forms",
    "func",
    "fx",
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
    "prune",
    "recurrent",
    "resampling",
    "semantics",
    "sparse",
    "sparse_gradients",
    "special",
    "trees",
)
# A message has words of its own.
WORDS = re.compile(r"\s\S+\s")


GOLDEN = {name: load(name) for name in SETS}


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        pytest.param(name, heading, id=f"{name}: {heading}")
        for name, golden in GOLDEN.items()
        for heading in dict.fromkeys(row[0] for row in golden["cases"])
    ],
)
def test_cases(name, heading, device):
    if device != "cpu" and heading.endswith("on the CPU"):
        pytest.skip("a GPU draws other numbers, and reports errors later")
    golden = GOLDEN[name]
    with Cases() as case:
        for _, source, expected in (r for r in golden["cases"] if r[0] == heading):
            with case(source):
                with torch.device(device):
                    found, message = answer(golden["setup"], source, torch)
                fault = difference(expected, found)
                assert fault is None, f"{fault} {message or ''}"
                if message is not None:
                    assert WORDS.search(message), f"no help in {message!r}"
