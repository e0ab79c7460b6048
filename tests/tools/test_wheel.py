"""Inspects the wheel, installs it into an empty environment, and imports it there."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from pydevtensor import __version__

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "build"))

import wheels  # noqa: E402

MADE = {".pyc", ".so", ".json", ".new", ".pyi"}
SUFFIXES = {".py", ".pyi", ".so", ".json", ".typed", ".h", ".txt"}
# What every Linux has; the C++ runtime is linked statically, CUDA's too.
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux[\w.-]*|ld-musl[\w.-]*)")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(os.environ.get("PYDEVTENSOR_SANITIZE")), reason="not a build for users"
    ),
]


def run(*command, **options):
    done = subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


# Ends a Python that asks for an address or connects to one.
NO_NETWORK = """
import os, sys
def look(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        print("the network was used:", event, arguments, flush=True)
        os._exit(97)
sys.addaudithook(look)
"""


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("offline")
    (folder / "sitecustomize.py").write_text(NO_NETWORK)
    return {**os.environ, "PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, offline):
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    flags = ("--no-index", "--no-build-isolation", "--no-deps", "-w", folder)
    run(*pip, "wheel", *flags, ROOT, cwd=folder, env=offline)
    (path,) = folder.iterdir()
    return path


def test_network_would_be_noticed(offline):
    code = "import socket; socket.create_connection(('127.0.0.1', 9))"
    done = subprocess.run([sys.executable, "-c", code], env=offline)
    assert done.returncode == 97


@pytest.fixture(scope="module")
def names(wheel):
    return [n for n in zipfile.ZipFile(wheel).namelist() if not n.endswith("/")]


@pytest.fixture(scope="module")
def libraries(wheel, names, tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    zipfile.ZipFile(wheel).extractall(folder)
    return {Path(n).name: folder / n for n in names if n.endswith(".so")}


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """A Python that has pydevtensor and neither NumPy nor a BLAS."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False)
    clean = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "--python", clean, "install", "--no-index", "--no-deps", wheel)
    return clean


def test_one_top_level_name(names):
    assert {name.split("/")[0] for name in names} == {
        "pydevtensor",
        f"pydevtensor-{__version__}.dist-info",
    }


def test_holds_only_what_runs(names):
    package = [name for name in names if name.startswith("pydevtensor/")]
    assert {Path(name).suffix for name in package} <= SUFFIXES
    assert "pydevtensor/__init__.py" in package
    for name in ("py.typed", "__init__.pyi", "_C.pyi"):
        assert f"pydevtensor/{name}" in package


def test_every_python_file_is_in(names):
    for path in (ROOT / "pydevtensor").rglob("*.py*"):
        if path.suffix in (".py", ".pyi"):
            assert path.relative_to(ROOT).as_posix() in names


def test_licence_and_bill_of_materials_are_in(names):
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("sboms/pydevtensor.cdx.json") for name in names)


def test_size(wheel):
    assert wheel.stat().st_size <= wheels.LARGEST


def test_both_runtimes_are_in(libraries):
    assert "_cuda_sim.so" in libraries
    assert [name for name in libraries if name.startswith("_C.cpython-")]


def test_needs_only_the_system(libraries):
    for name, path in libraries.items():
        dynamic = run("readelf", "-dW", path)
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
        assert needed, name
        assert [n for n in needed if not SYSTEM.fullmatch(n)] == [], name
        assert not re.search(r"\((RPATH|RUNPATH)\)", dynamic), name


def symbols(path, *which):
    lines = run("nm", "-D", *which, path).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def test_extension_exports_its_entry_alone(libraries):
    (path,) = (p for name, p in libraries.items() if name.startswith("_C."))
    assert symbols(path, "--defined-only") == {"PyInit__C"}
    foreign = re.compile(r"cuda|cublas|cu[A-Z]|_Z")
    undefined = symbols(path, "--undefined-only")
    assert [name for name in undefined if foreign.match(name)] == []


def test_backends_export_only_our_names(libraries):
    for name in libraries.keys() & {"_cuda.so", "_cuda_sim.so"}:
        exported = symbols(libraries[name], "--defined-only")
        assert exported
        # Whole programs link with CUDA's runtime of the simulator, whose names are C++'s.
        ours = r"dt_|_Z\d+cuda" if name == "_cuda_sim.so" else "dt_"
        assert [symbol for symbol in exported if not re.match(ours, symbol)] == []


def test_libraries_are_stripped(libraries):
    for name, path in libraries.items():
        assert ".symtab" not in run("readelf", "-SW", path), name


def test_import_is_light(python, tmp_path):
    code = (
        "import os, sys\n"
        "import pydevtensor\n"
        "print('threads', len(os.listdir('/proc/self/task')))\n"
        "print('maps', open('/proc/self/maps').read())\n"
    )
    said = run(python, "-I", "-X", "importtime", "-c", code, cwd=tmp_path)
    imported = re.findall(r"^import time:.*\| +(\S+)$", said, re.M)
    assert "pydevtensor._C" in imported
    heavy = {"numpy", "ctypes", "_ctypes", "torch", "asyncio", "multiprocessing"}
    assert heavy.isdisjoint(name.split(".")[0] for name in imported)
    assert "threads 1\n" in said
    maps = said.split("maps", 1)[1]
    assert not re.search(r"_cuda\w*\.so|libcu|openblas|libstdc", maps)


def test_works_without_numpy_and_blas(python, tmp_path):
    code = (
        "import pydevtensor as torch\n"
        "a = torch.ones(3, 4)\n"
        "print((a @ a.T).sum().item())\n"
    )
    assert run(python, "-I", "-c", code, cwd=tmp_path) == "36.0\n"


def test_source_distribution_is_complete(tmp_path):
    code = (
        "import setuptools.build_meta as backend, sys\n"
        "backend.build_sdist(sys.argv[1])\n"
    )
    run(sys.executable, "-c", code, tmp_path, cwd=ROOT)
    (path,) = tmp_path.iterdir()
    with tarfile.open(path) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"setup.py", "pyproject.toml", "LICENSE", "Makefile", ".clang-format"}
    for folder in ("csrc", "tools", "pydevtensor", "tests", "notebooks", "docs"):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and file.suffix not in MADE:
                needed.add(file.relative_to(ROOT).as_posix())
    assert needed <= inside
    assert not [n for n in inside if Path(n).suffix in (".so", ".a", ".o", ".pyc")]
