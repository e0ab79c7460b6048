"""Wrong calls raise what PyTorch raises, and say something of use."""

import math
import re
import warnings

import pytest
from golden.describe import builtin_name, load
from golden.missing import missing

import pydevtensor as torch

GOLDEN = load("errors")
# Python's own words, and those of NumPy, are not for us to choose.
OUR_WORDS = re.compile(r"\s\S+\s")


@pytest.mark.parametrize(
    ("heading", "call", "name", "builtin"),
    [pytest.param(*row, id=f"{row[0]}: {row[1]}") for row in GOLDEN["calls"]],
)
def test_wrong_call(heading, call, name, builtin, device):
    if heading == "integer arithmetic" and device != "cpu":
        pytest.skip("a GPU divides by zero without a word, in PyTorch too")
    if heading == "NumPy" and device != "cpu":
        pytest.skip("NumPy's arrays are on the CPU")
    if call == "torch.empty(2**50)" and device != "cpu":
        name = "OutOfMemoryError"  # what PyTorch raises there; the golden call ran on a CPU
    lacking = missing(call, torch)
    if lacking:
        pytest.skip(f"pydevtensor has no {lacking} yet")
    names = {"torch": torch, "math": math}
    if "numpy" in call:
        names["numpy"] = pytest.importorskip("numpy")
    with torch.device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(GOLDEN["setup"], names)
        before = {key: str(names[key]) for key in ("x", "v", "e", "i", "b")}
        with pytest.raises(Exception) as caught:
            exec(call, names)
        error = caught.value
        assert (type(error).__name__, builtin_name(error)) == (name, builtin), repr(
            error
        )
        assert OUR_WORDS.search(str(error)), f"no help in {error!r}"
        # A call that failed has changed nothing, and the library works on.
        assert {key: str(names[key]) for key in before} == before
        assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]
