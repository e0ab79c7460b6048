"""Which Pythons `make wheels` builds for, and what it says of a failure."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "build"
sys.path.insert(0, str(TOOLS))

import environment  # noqa: E402
import wheels  # noqa: E402

NAME = f"{sys.version_info[0]}.{sys.version_info[1]}"


def fake(folder, name, facts):
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{facts}'\n")
    path.chmod(0o755)
    return str(path)


def test_this_python_is_one():
    assert wheels.version_of(sys.executable) == NAME
    assert wheels.pythons([sys.executable]) == {NAME: sys.executable}


@pytest.mark.parametrize(
    "facts",
    [
        "PyPy 3.11 final False",
        "CPython 3.10 final False",
        "CPython 3.14 candidate False",
        "CPython 3.13 final True",
        "",
    ],
)
def test_other_pythons_are_refused(facts, tmp_path):
    python = fake(tmp_path, "python", facts)
    assert wheels.version_of(python) is None
    with pytest.raises(wheels.Failed, match=r"no CPython of 3\.11, 3\.12"):
        wheels.pythons([python])


def test_one_of_each_version_in_order(tmp_path):
    given = [
        fake(tmp_path, "b", "CPython 3.14 final False"),
        fake(tmp_path, "a", "CPython 3.11 final False"),
        fake(tmp_path, "c", "CPython 3.11 final False"),
    ]
    assert [*wheels.pythons(given).items()] == [("3.11", given[1]), ("3.14", given[0])]


def test_a_failed_command_is_told():
    with pytest.raises(wheels.Failed, match=r"status 3\nwhy"):
        wheels.run(sys.executable, "-c", "print('why'); raise SystemExit(3)")


def test_a_wheel_that_no_tag_allows_stays_as_it_is(tmp_path, monkeypatch):
    wheel = tmp_path / "3.14" / "some.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"some")

    def fails(*command, **environment):
        raise wheels.Failed(said)

    monkeypatch.setattr(wheels, "run", fails)
    monkeypatch.setattr(wheels, "WORK", tmp_path)
    said = "the presence of too-recent versioned symbols."
    made = wheels.repair(wheel, tmp_path)
    assert made == tmp_path / "some.whl" and made.read_bytes() == b"some"
    said = "another reason"
    with pytest.raises(wheels.Failed, match="another reason"):
        wheels.repair(wheel, tmp_path)


def test_a_large_wheel_is_refused(tmp_path):
    path = tmp_path / "large.whl"
    with open(path, "wb") as file:
        file.truncate(wheels.LARGEST + 1)
    with pytest.raises(wheels.Failed, match=f"bytes, over {wheels.LARGEST}"):
        wheels.check(path, sys.executable)


def test_the_wheel_s_test_fails_where_numpy_is():
    pytest.importorskip("numpy")
    command = [sys.executable, "-I", str(TOOLS / "wheel_test.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "NumPy is installed" in done.stderr


def test_an_extra_includes_another_of_this_tree():
    full = environment.requirements("full")
    assert [word.split(";")[0] for word in full] == ["numpy>=1.26", "scipy-openblas64"]
    for extra in ("test", "notebook"):
        wanted = environment.requirements(extra)
        assert set(full) < set(wanted)
        assert not any(word.startswith("pydevtensor") for word in wanted)


def test_nothing_is_required():
    from importlib.metadata import requires

    assert [r for r in requires("pydevtensor") or () if "extra ==" not in r] == []


def test_a_release_is_built_with_a_pinned_nvcc():
    """Without one the wheels would have no CUDA backend, and nobody would say so."""
    text = (TOOLS.parents[1] / "pyproject.toml").read_text()
    build = tomllib.loads(text)["tool"]["cibuildwheel"]
    packages = re.findall(r"(nvidia-[a-z-]+)(\S*)", " ".join(build["before-all"]))
    assert "nvidia-cuda-nvcc" in dict(packages)
    assert all(re.fullmatch(r"==13\.0\.\d+", pin) for _, pin in packages), packages
    assert build["environment"]["PYDEVTENSOR_CUDA"] == "1"
    assert build["environment"]["CUDA_HOME"] in " ".join(build["before-all"])


def test_the_test_of_a_wheel_asks_for_the_cuda_backend(tmp_path):
    code = "import sys, wheel_test; wheel_test.check_cuda(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        cwd=tmp_path,
        # What else is there preloads a sanitizer's library.
        env={**os.environ, "PYTHONPATH": str(TOOLS)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "the wheel has no _cuda.so" in done.stderr
