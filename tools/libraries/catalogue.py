"""What is tried: sections of catalogue.toml, and programs of tests/libraries."""

from __future__ import annotations

import ast
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "libraries"
RESULTS = Path(__file__).parent / "results.json"


@dataclass
class Library:
    name: str
    install: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    left: str = ""

    def __post_init__(self) -> None:
        self.install = self.install or [self.name]

    @property
    def distribution(self) -> str:
        """The name by which the registry knows it."""
        return self.install[0].partition("[")[0]

    @property
    def programs(self) -> list[Path]:
        return sorted((FOLDER / self.name).glob("*.py"))


def libraries() -> dict[str, Library]:
    text = (Path(__file__).parent / "catalogue.toml").read_text()
    return {name: Library(name, **row) for name, row in tomllib.loads(text).items()}


def says(program: Path) -> str:
    """What a program does: its docstring."""
    said = ast.get_docstring(ast.parse(program.read_text()))
    assert said, program
    return said


def results() -> dict[str, dict[str, object]]:
    """By library: version, day, programs, tests, as the last run of each left them."""
    found: dict[str, dict[str, object]] = json.loads(RESULTS.read_text())
    return found


def rows() -> list[list[str]]:
    """The cells of the table in docs/compatibility.md."""
    known = results()
    made = []
    for name, library in sorted(libraries().items()):
        if name not in known:
            continue
        row = known[name]
        programs = row["programs"]
        assert isinstance(programs, dict)
        what = "; ".join(says(p) for p in library.programs if p.stem in programs)
        stops = [f"{stem}: {problem}" for stem, problem in programs.items() if problem]
        left = "; ".join([library.left] * bool(library.left) + stops)
        cells = [name, row["version"], row["day"], what, counts(row.get("tests")), left]
        made.append([str(cell) for cell in cells])
    return made


def counts(tests: object) -> str:
    """`62 pass, 4 skip` of {"passed": 62, "skipped": 4}."""
    if not isinstance(tests, dict):
        return ""
    words = {"passed": "pass", "failed": "fail", "skipped": "skip"}
    return ", ".join(f"{tests[k]} {word}" for k, word in words.items() if tests.get(k))
