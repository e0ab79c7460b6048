"""Programs with types, right ones and wrong ones, as mypy and pyright judge them.

pyright is not a dependency: where it is not installed, its half is skipped.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pydevtensor as torch

PROGRAMS = Path(__file__).parent / "typed"
WRONG = (PROGRAMS / "wrong.py").read_text().splitlines()
# The part of the public names that pyright has to know the types of, in percent.
LEAST_KNOWN = 99.5

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(os.environ.get("PYDEVTENSOR_SANITIZE")),
        reason="a build with sanitizers has no stubs",
    ),
]


def planted(checker):
    """The numbers of the lines that the checker has to complain of."""
    marks = (f"# wrong for {checker}: ", "# wrong: ")
    return {
        number
        for number, line in enumerate(WRONG, 1)
        if any(mark in line for mark in marks)
    }


def run(command, folder):
    return subprocess.run(
        command,
        cwd=folder,
        env={
            "HOME": os.environ.get("HOME", str(folder)),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(Path(sys.executable).parents[1]),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ).stdout


def mypy(name, folder):
    """The lines of the program that mypy complains of, and what it says."""
    pytest.importorskip("mypy")
    (folder / "mypy.ini").write_text("[mypy]\n")
    # One cache for all tests of a run.
    cache = folder.parent / "mypy_cache"
    options = ("--strict", "--config-file", "mypy.ini", "--cache-dir", str(cache))
    said = run([sys.executable, "-P", "-m", "mypy", *options, name], folder)
    assert re.search(r"^(Success|Found)", said, re.M), said
    return {int(n) for n in re.findall(r"^\w+\.py:(\d+): error", said, re.M)}, said


def pyright_command():
    """pyright, or a skipped test."""
    beside = Path(sys.executable).parent / "pyright"
    found = str(beside) if beside.exists() else shutil.which("pyright")
    if found is None:
        pytest.skip("pyright is not installed")
    return found


def pyright(name, folder):
    """The lines of the program that pyright complains of, and what it says."""
    said = run([pyright_command(), "--outputjson", name], folder)
    found = json.loads(said[said.index("{") :])
    assert found["summary"]["filesAnalyzed"] == 1, said
    wrong = [d for d in found["generalDiagnostics"] if d["severity"] == "error"]
    return {d["range"]["start"]["line"] + 1 for d in wrong}, said


CHECKERS = {"mypy": mypy, "pyright": pyright}


@pytest.fixture(params=CHECKERS)
def checker(request):
    return request.param


@pytest.fixture
def folder(tmp_path):
    for path in PROGRAMS.glob("*.py"):
        shutil.copy(path, tmp_path)
    return tmp_path


def test_a_training_program_is_right(checker, folder):
    lines, said = CHECKERS[checker]("right.py", folder)
    assert not lines, said


def test_the_right_program_runs(folder):
    done = subprocess.run(
        [sys.executable, "-P", "right.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "epoch 1: " in done.stdout


def test_planted_mistakes_are_found(checker, folder):
    lines, said = CHECKERS[checker]("wrong.py", folder)
    wanted = planted(checker)
    assert len(wanted) > 40
    missed = sorted(wanted - lines)
    assert not missed, f"not found: {[WRONG[n - 1] for n in missed]}"
    assert lines == wanted, said


def public_imports():
    """A line for each public name, which imports it from its module."""
    import public_api

    for name in public_api.MODULES:
        module = public_api.module(name)
        for public in sorted(public_api.public_names(module)):
            own = f"{name}_{public}".replace(".", "_")
            yield f"from {module.__name__} import {public} as {own}"


def test_every_public_name_can_be_imported(checker, folder):
    """A name that a module only imports is none of its own to a type checker."""
    given = [*public_imports()]
    assert len(given) > 1400
    (folder / "names.py").write_text("\n".join(given) + "\n")
    lines, said = CHECKERS[checker]("names.py", folder)
    assert not lines, said
    (folder / "names.py").write_text("from pydevtensor.nn import math as _\n")
    assert CHECKERS[checker]("names.py", folder)[0] == {1}


def test_types_of_public_names_are_known(tmp_path):
    options = ("--verifytypes", "pydevtensor", "--ignoreexternal", "--outputjson")
    said = run([pyright_command(), *options], tmp_path)
    found = json.loads(said[said.index("{") :])["typeCompleteness"]
    unknown = [
        symbol["name"]
        for symbol in found["symbols"]
        if symbol["isExported"] and not symbol["isTypeKnown"]
    ]
    assert found["exportedSymbolCounts"]["withKnownType"] > 3000
    assert 100 * found["completenessScore"] >= LEAST_KNOWN, unknown


def test_data_classes_take_types_at_run_time():
    """What annotations say is an expression too, as in a base class."""
    data = torch.utils.data

    class Pairs(data.Dataset[tuple[int, int]]):
        def __getitem__(self, index):
            return index, -index

        def __len__(self):
            return 3

    loader: data.DataLoader[tuple[int, int]] = data.DataLoader(Pairs(), batch_size=3)
    ((first, second),) = loader
    assert first.tolist() == [0, 1, 2]
    assert second.tolist() == [0, -1, -2]
    for each in (data.IterableDataset, data.Sampler, data.Subset, data.ConcatDataset):
        assert each[int].__origin__ is each
