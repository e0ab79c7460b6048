"""The rows of csrc/ops/*.def as the tests need them: read, not repeated."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

OPS = Path(__file__).resolve().parents[1] / "csrc" / "ops"


class Row(NamedTuple):
    """One row: its columns as text; low and high as numbers."""

    name: str
    kind: str
    low: float
    high: float
    derivatives: tuple[str, ...]

    @property
    def differentiable(self) -> tuple[bool, ...]:
        """Whether there is a derivative for each input."""
        return tuple(d != "NONE" for d in self.derivatives)


def _columns(text: str) -> list[str]:
    columns, depth, quoted, start = [], 0, False, 0
    for i, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "()":
            depth += 1 if character == "(" else -1
        elif not quoted and depth == 0 and character == ",":
            columns.append(text[start:i].strip())
            start = i + 1
    columns.append(text[start:].strip())
    return columns


def _rows(file: str, word: str, derivatives: slice) -> list[Row]:
    text = re.sub(r"/\*.*?\*/", "", (OPS / file).read_text(), flags=re.DOTALL)
    rows = []
    for match in re.finditer(rf"^{word}\((.*?)\)$", text, re.MULTILINE | re.DOTALL):
        columns = _columns(match[1].replace("\n", " "))
        low, high = float(columns[2]), float(columns[3])
        rows.append(Row(columns[0], columns[1], low, high, tuple(columns[derivatives])))
    return rows


UNARY = _rows("unary.def", "UNARY", slice(5, 6))
BINARY = _rows("binary.def", "BINARY", slice(5, 7))
TERNARY = _rows("ternary.def", "TERNARY", slice(5, 8))
