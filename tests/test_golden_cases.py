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
    "flex",
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
    "masked",
    "signal",
    "sparse",
    "sparse_gradients",
    "special",
    "trees",
)
# What a real GPU may answer otherwise: cuBLAS chooses other pivots, either of two writes
# to an element may be the last, and cuFFT rounds at another place.
OWN_ON_GPUS = {
    "torch.lu_unpack(*torch.lu(batch))",
    "torch.zeros(2, 3, dtype=torch.complex128).scatter(1, "
    "torch.tensor([[0, 2], [1, 1]]), m[:, :2])",
    "torch.fft.fft(torch.sin(torch.arange(200.0)))[::20].abs()",
}
# A message has words of its own.
WORDS = re.compile(r"\s\S+\s")


GOLDEN = {name: load(name) for name in SETS}


def is_real(device):
    return device != "cpu" and not torch.cuda.is_simulated()


def test_cases_that_gpus_answer_otherwise_are_there():
    assert {row[1] for set in GOLDEN.values() for row in set["cases"]} >= OWN_ON_GPUS


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
            if is_real(device) and source in OWN_ON_GPUS:
                continue
            with case(source):
                with torch.device(device):
                    found, message = answer(golden["setup"], source, torch)
                fault = difference(expected, found)
                assert fault is None, f"{fault} {message or ''}"
                if message is not None:
                    assert WORDS.search(message), f"no help in {message!r}"
