"""What docs/contributing.md asks of commits, and the hooks that help to keep it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import subjects  # noqa: E402


@pytest.mark.parametrize(
    "subject",
    [
        "optim: add Muon",
        "ops, cuda: name the divisor of a window once",
        "csrc/cpu: remove a copy",
        "Merge branch 'main'",
        "x: " + "a" * 69,
    ],
)
def test_subjects_that_pass(subject):
    assert subjects.fault(subject) is None


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ("Add Muon", "begin with an area"),
        ("optim:add Muon", "begin with an area"),
        ("optim: ", "begin with an area"),
        ("x: " + "a" * 70, "73 characters"),
        ("", "begin with an area"),
    ],
)
def test_subjects_that_do_not(subject, words):
    assert words in subjects.fault(subject)


def test_a_message_in_a_file(tmp_path):
    message = tmp_path / "message"
    message.write_text("no area here\n\nThe reason.\n")
    command = [sys.executable, "tools/build/subjects.py", str(message)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "'no area here'" in done.stderr
    message.write_text("area: say the reason\n")
    assert subprocess.run(command, cwd=ROOT).returncode == 0


def test_the_hooks_run_what_there_is():
    """Each entry of the pre-commit configuration names a pinned tool or a file."""
    pins = (ROOT / "pyproject.toml").read_text()
    config = (ROOT / ".pre-commit-config.yaml").read_text()
    entries = re.findall(r"entry: \.venv/bin/(\S+)(.*)", config)
    assert len(entries) >= 4
    for tool, arguments in entries:
        scripts = re.findall(r"tools/\S+\.py", arguments)
        assert tool == "python" or f'"{tool}==' in pins
        assert all((ROOT / script).is_file() for script in scripts)
