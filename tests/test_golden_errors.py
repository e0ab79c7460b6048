"""Wrong calls raise what PyTorch raises, with a message that helps, and change nothing."""

import re
import warnings

import pytest
from cases import Cases
from golden.describe import exception, load

import pydevtensor as torch

GOLDEN = load("errors")
# A message has words of its own.
WORDS = re.compile(r"\s\S+\s")


SETUP = compile(GOLDEN["setup"], "<golden>", "exec")


@pytest.mark.parametrize("heading", dict.fromkeys(row[0] for row in GOLDEN["cases"]))
def test_wrong_calls(heading, device):
    if device != "cpu" and heading.endswith("on the CPU"):
        pytest.skip("a GPU does not report it")
    with Cases() as case:
        for _, call, expected in (r for r in GOLDEN["cases"] if r[0] == heading):
            with case(call):
                check(call, expected, device)


def check(call, expected, device):
    if call == "torch.empty(2**50)" and device != "cpu":
        expected = {**expected, "raises": "OutOfMemoryError"}  # as PyTorch on a GPU
    names = {"torch": torch}
    with torch.device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(SETUP, names)
        before = {key: str(names[key]) for key in ("x", "v", "e", "i", "b")}
        with pytest.raises(Exception) as caught:
            exec(call, names)
        error = caught.value
        assert exception(error) == expected, repr(error)
        assert WORDS.search(str(error)), f"no help in {error!r}"
        # A call that failed has changed nothing, and the library works on.
        assert {key: str(names[key]) for key in before} == before
        assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]
