"""Habits of speech that a reader has to read twice become rarer.

A pattern finds a habit; its limits say how often it stands in the C sources, in the
Python package and in the pages. They may only fall: lower them with the counts.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def texts(*globs):
    return [path.read_text() for glob in globs for path in sorted(ROOT.glob(glob))]


PLACES = ("csrc", "pydevtensor", "docs")
TEXTS = {
    "csrc": texts("csrc/**/*.[ch]", "csrc/**/*.cpp", "csrc/**/*.cu", "csrc/**/*.def"),
    "pydevtensor": texts("pydevtensor/**/*.py"),
    "docs": texts("*.md", "docs/*.md"),
}
# A comment, a docstring or a paragraph begins.
START = r'^[ \t]*(?://|/?\*+|# |""")?[ \t]*'
HABITS = {
    "Of what": (START + r"Of [a-z]", (0, 0, 0)),
    "What it is": (START + r"What [a-z]", (1, 0, 0)),
    "is none": (r"(?<![Tt]here )\b(?:is|are) none\b", (4, 0, 0)),
    "is no leaf": (r"(?<![Tt]here )\b(?:is|are) no (?!longer|more)[a-z]", (5, 0, 0)),
    "lies in": (r"\b(?:lies|lie) (?:in|as|on|behind|before|there)\b", (41, 1, 0)),
    "is told": (r"\b(?:told|tells? of)\b(?!\s+apart)", (73, 1, 0)),
    "in one go": (r"\bin one go\b", (11, 0, 0)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("habit", HABITS)
def test_a_habit_becomes_rarer(habit, place):
    pattern, limits = HABITS[habit]
    limit = limits[PLACES.index(place)]
    found = sum(len(re.findall(pattern, text, re.M)) for text in TEXTS[place])
    assert found <= limit, f"{pattern}: say it as a maintainer of SQLite would"


def test_patterns_find_their_habits():
    for habit, (pattern, _) in HABITS.items():
        assert re.search(pattern, habit, re.M), habit
