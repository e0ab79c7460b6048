"""Programs of libraries written for PyTorch print PyTorch's numbers, where they are
installed: `make libraries` installs all of them, and runs their own tests too."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools" / "libraries"))

import catalogue  # noqa: E402
import runs  # noqa: E402

LIBRARIES = catalogue.libraries()
PROGRAMS = [program for library in LIBRARIES.values() for program in library.programs]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=runs.name)
def test_program(program):
    if find_spec(program.parent.name) is None:
        pytest.skip(f"{program.parent.name} is not installed")
    assert runs.problem(program) == ""


def test_each_program_has_the_lines_of_pytorch():
    one_process = {runs.name(p) for p in PROGRAMS if not runs.is_launched(p)}
    assert one_process == {*runs.wanted()}
    folders = {path.name for path in catalogue.FOLDER.iterdir() if path.is_dir()}
    assert folders == {*LIBRARIES} == {program.parent.name for program in PROGRAMS}


def test_results_are_of_the_catalogue():
    results = catalogue.results()
    assert [*results] == sorted(results) == sorted(LIBRARIES)
    for name, row in results.items():
        assert row["programs"].keys() == {p.stem for p in LIBRARIES[name].programs}
        assert ("tests" in row) == bool(LIBRARIES[name].tests), name


def test_a_row_of_the_table(tmp_path, monkeypatch):
    row = {"version": "1.0", "day": "2026-11-28", "programs": {"layers": "stops"}}
    row["tests"] = {"passed": 3, "skipped": 1, "failures": []}
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"einops": row}))
    monkeypatch.setattr(catalogue, "RESULTS", path)
    ((name, version, day, what, tests, stops),) = catalogue.rows()
    assert (name, version, day) == ("einops", "1.0", "2026-11-28")
    assert "`rearrange`" in what and tests == "3 pass, 1 skip"
    assert stops.endswith("layers: stops")
