"""The programs in docs/errors.md raise the errors that the page shows."""

import re
from pathlib import Path

import pytest
from conftest import GPUS

import pydevtensor as torch

PAGE = (Path(__file__).parents[1] / "docs" / "errors.md").read_text()
# A heading, its program, and its message, which may end with ... for the rest.
CASES = re.findall(
    r"^### ([^\n]*)\n\n```python\n(.*?)```\n\n```pytb\n(.*?)```\n\n\*\*Cause\.\*\* .*?^\*\*Cure\.\*\* ",
    PAGE,
    re.MULTILINE | re.DOTALL,
)


def same(shown, raised):
    """Whether an error is the one shown, but for the breaks of lines."""
    wanted = " ".join(shown.split())
    found = " ".join(f"{type(raised).__name__}: {raised}".split())
    if wanted.endswith("..."):
        return found.startswith(wanted.removesuffix("...").rstrip())
    return found == wanted


def test_the_page_explains_twenty():
    assert len(CASES) == PAGE.count("\n### ") == 20
    assert len({message for _, _, message in CASES}) == 20


@pytest.mark.parametrize(
    ("program", "message"), [pytest.param(p, m, id=title) for title, p, m in CASES]
)
def test_error(program, message):
    if not GPUS and "cuda" in program:
        pytest.skip("needs a GPU")
    with pytest.raises(Exception) as caught:
        exec(program, {"torch": torch})
    assert same(message, caught.value), f"raises {caught.value!r}; correct the page"


def test_another_error_is_seen():
    error = RuntimeError("add: shapes do\nnot broadcast")
    assert same("RuntimeError: add: shapes\ndo not broadcast\n", error)
    assert same("RuntimeError: add: shapes ...", error)
    assert not same("RuntimeError: add: shapes", error)
    assert not same("ValueError: add: shapes ...", error)
    assert not same("RuntimeError: mul: ...", error)
