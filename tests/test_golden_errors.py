"""Wrong calls raise what PyTorch raises, with a message that helps, and change nothing."""

import re
import warnings

import pytest
from golden.describe import exception, load

import pydevtensor as torch

GOLDEN = load("errors")
# A message has words of its own.
WORDS = re.compile(r"\s\S+\s")


@pytest.mark.parametrize(
    ("heading", "call", "expected"),
    [pytest.param(*row, id=f"{row[0]}: {row[1]}") for row in GOLDEN["cases"]],
)
def test_wrong_call(heading, call, expected, device):
    if device != "cpu" and heading.endswith("on the CPU"):
        pytest.skip("a GPU does not report it")
    if call == "torch.empty(2**50)" and device != "cpu":
        expected = {**expected, "raises": "OutOfMemoryError"}  # as PyTorch on a GPU
    names = {"torch": torch}
    with torch.device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(GOLDEN["setup"], names)
        before = {key: str(names[key]) for key in ("x", "v", "e", "i", "b")}
        with pytest.raises(Exception) as caught:
            exec(call, names)
        error = caught.value
        assert exception(error) == expected, repr(error)
        assert WORDS.search(str(error)), f"no help in {error!r}"
        # A call that failed has changed nothing, and the library works on.
        assert {key: str(names[key]) for key in before} == before
        assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]
