"""Checks the subject lines of commits: `area: verb object`, at most 72 characters.

python tools/build/subjects.py           the commits since BASE
python tools/build/subjects.py FILE      the message in a file, as a commit-msg hook
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The commits up to this one were made before there was a check.
BASE = "0bcc7399"
LONGEST = 72
FORM = re.compile(r"[\w./+-]+(, [\w./+-]+)*: \S")
# Git writes these itself; a fixup goes before it is pushed.
OF_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ", "amend! ")


def fault(subject: str) -> str | None:
    """What is wrong with a subject line, or None."""
    if subject.startswith(OF_GIT):
        return None
    if len(subject) > LONGEST:
        return f"it has {len(subject)} characters, and may have {LONGEST}"
    if not FORM.match(subject):
        return "it does not begin with an area, as in `optim: add Muon`"
    return None


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else ""


def subjects_since_base() -> list[str]:
    # A shallow clone, which lacks BASE, has at least its last commit checked.
    found = _git("log", "--format=%s", f"{BASE}..HEAD")
    return (found or _git("log", "-1", "--format=%s")).splitlines()


def main(arguments: list[str]) -> int:
    if arguments:
        subjects = Path(arguments[0]).read_text().splitlines()[:1]
    else:
        subjects = subjects_since_base()
    faults = [(subject, fault(subject)) for subject in subjects]
    wrong = [f"{subject!r}: {why}" for subject, why in faults if why]
    for line in wrong:
        print(f"commit subject {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
