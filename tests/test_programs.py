"""The programs of tests/programs print PyTorch's numbers, on the CPU and on GPUs."""

import json
import sys
from pathlib import Path

import pytest
from conftest import ON_A_GPU_SLOWLY
from golden import programs

GOLDEN = Path(__file__).parent / "golden" / "programs.json"
WANTED = json.loads(GOLDEN.read_text())["programs"]
US = [sys.executable, "-m", "pydevtensor", "run"]


@pytest.mark.parametrize("device", ON_A_GPU_SLOWLY)
@pytest.mark.parametrize("name", programs.NAMES)
def test_program(name, device, tmp_path):
    text = (programs.FOLDER / f"{name}.py").read_text()
    if device != "cpu" and ".to(device)" not in text:
        pytest.skip("it computes on the CPU alone")
    found = programs.printed(US, name, device, tmp_path)
    assert programs.difference(found, WANTED[name]) is None


def test_thirty_programs_of_many_kinds():
    assert len(programs.NAMES) >= 30 and sorted(WANTED) == programs.NAMES


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (["1 2.5 [0.1]"], None),
        (["1 2.5005 [0.1]"], None),
        (["1 2.51 [0.1]"], "off at 2.51"),
        (["1 2.5 [nan]"], "off at nan"),
        (["1 2.5 (0.1)"], "expected"),
        ([], "0 lines and not 1"),
    ],
)
def test_differences_are_found(found, words):
    said = programs.difference(found, ["1 2.5 [0.1]"])
    assert said is None if words is None else words in said
