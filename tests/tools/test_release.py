"""The version, which docs/contributing.md says how to release."""

import re
from pathlib import Path

import pydevtensor

ROOT = Path(__file__).resolve().parents[2]
CHANGES = (ROOT / "CHANGELOG.md").read_text()


def test_one_file_says_the_version():
    paths = [ROOT / "pyproject.toml", ROOT / "setup.py", *ROOT.glob("*.md")]
    for folder, pattern in (
        ("docs", "*.md"),
        ("pydevtensor", "*.py"),
        ("tools", "*.py"),
    ):
        paths += (ROOT / folder).rglob(pattern)
    whole = re.compile(rf"(?<![\d.]){re.escape(pydevtensor.__version__)}(?![\d.]*\d)")
    found = {
        p.relative_to(ROOT).as_posix() for p in paths if whole.search(p.read_text())
    }
    assert found == {"CHANGELOG.md", "pydevtensor/__init__.py"}


def test_the_changes_begin_with_the_version():
    title = re.search(r"^## (.*), (.*)$", CHANGES, re.MULTILINE)
    assert title[1] == pydevtensor.__version__
    assert re.fullmatch(r"not released yet|\d{1,2} [A-Z][a-z]+ \d{4}", title[2])
