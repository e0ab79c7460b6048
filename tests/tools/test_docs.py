"""The table of operations in docs/ is what calls give."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "operations.py"
PAGE = ROOT / "docs" / "operations.md"

pytestmark = pytest.mark.slow


def test_table_of_operations():
    done = subprocess.run(
        [sys.executable, TOOL, "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_table_has_what_it_should():
    rows = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| "):
            rows[cells[0].strip("`")] = cells[1:]
    types = rows[""]
    assert {"bool", "uint8", "int64", "float32", "float64"} <= set(types)
    marks = {name: dict(zip(types, cells, strict=True)) for name, cells in rows.items()}
    assert len(marks) > 200
    assert marks["add"] == dict.fromkeys(types, "●")
    assert marks["mean"]["int64"] == ""  # as in PyTorch, a mean of integers is an error
    assert marks["bitwise_xor"]["float32"] == ""
    assert marks["bitwise_xor"]["bool"] == "●"
