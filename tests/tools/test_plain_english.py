"""Habits of speech that a reader has to read twice do not come back.

A pattern finds a habit, which no C source, Python module or page has.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def texts(*globs):
    return [path.read_text() for glob in globs for path in sorted(ROOT.glob(glob))]


TEXTS = {
    "csrc": texts("csrc/**/*.[ch]", "csrc/**/*.cpp", "csrc/**/*.cu", "csrc/**/*.def"),
    "pydevtensor": texts("pydevtensor/**/*.py"),
    "docs": texts("*.md", "docs/*.md"),
}
# A comment, a docstring or a paragraph begins.
START = r'^[ \t]*(?://|/?\*+|# |""")?[ \t]*'
HABITS = {
    "Of what": START + r"Of [a-z]",
    "What it is": START + r"What [a-z]",
    "Those of it": START + r"Those (?:of|that|in|with|which) [a-z]",
    "is none": r"(?<![Tt]here )\b(?:is|are) none\b",
    "is no leaf": r"(?<![Tt]here )\b(?:is|are) no (?!longer|more)[a-z]",
    "lies in": r"\b(?:lies|lie)\b(?!\s(?:below|above|outside|about|reads)\b)",
    "is told": r"\b(?:told|tells? of)\b",
    "in one go": r"\bin one go\b",
    "to and fro": r"\bto and fro\b",
    "%s have none": r"%s have none\b",
}


@pytest.mark.parametrize("place", TEXTS)
@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_does_not_come_back(habit, place):
    pattern = HABITS[habit]
    found = [m[0] for text in TEXTS[place] for m in re.finditer(pattern, text, re.M)]
    assert found == [], "say it as a maintainer of SQLite would"


def test_patterns_find_their_habits():
    for habit, pattern in HABITS.items():
        assert re.search(pattern, habit, re.M), habit
