"""Finds the compilers, and says in one sentence what to install for a missing one."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

# What a release carries: cubins run on later minor versions of their major one, so
# 8.6 or 8.9 need none of their own; PTX of the newest covers what comes later.
RELEASE_ARCHS = (75, 80, 90, 100, 120)
# A development build on a machine without a GPU.
FALLBACK_ARCH = 90

SANITIZERS = ("address", "undefined")


class BuildError(Exception):
    """Carries the sentence that the user is to read."""


@dataclass(frozen=True)
class Settings:
    """The switches of a build, as the environment gives them."""

    cuda: str
    archs: str
    werror: bool
    sanitize: tuple[str, ...]

    @staticmethod
    def from_environment() -> Settings:
        cuda = os.environ.get("PYDEVTENSOR_CUDA", "auto").strip() or "auto"
        if cuda not in ("0", "1", "auto"):
            raise BuildError(f"PYDEVTENSOR_CUDA is {cuda!r}; set it to 0, 1 or auto.")
        text = os.environ.get("PYDEVTENSOR_SANITIZE", "")
        sanitize = tuple(part for part in re.split(r"[,;\s]+", text) if part)
        for part in sanitize:
            if part not in SANITIZERS:
                raise BuildError(
                    f"PYDEVTENSOR_SANITIZE names {part!r}; "
                    f"set it to {','.join(SANITIZERS)} or to one of them."
                )
        return Settings(
            cuda=cuda,
            archs=os.environ.get("PYDEVTENSOR_CUDA_ARCHS", "").strip() or "release",
            werror=os.environ.get("PYDEVTENSOR_WERROR", "0") not in ("", "0"),
            sanitize=sanitize,
        )


def flags_of(variable: str) -> list[str]:
    return shlex.split(os.environ.get(variable, ""))


def tool_environment() -> dict[str, str]:
    """The environment for compilers: a test run's sanitizers are not meant for them."""
    kept = dict(os.environ)
    if "asan" in kept.get("LD_PRELOAD", ""):
        del kept["LD_PRELOAD"]
    return kept


@functools.cache
def output_of(*command: str) -> str:
    """What a command prints on both streams; empty if it cannot be run or fails."""
    try:
        done = subprocess.run(
            command,
            env=tool_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


@dataclass(frozen=True)
class Compiler:
    command: tuple[str, ...]

    @functools.cached_property
    def identity(self) -> str:
        """Differs between compilers and their versions; part of each object's key."""
        path = shutil.which(self.command[0]) or self.command[0]
        return f"{os.path.realpath(path)} {output_of(*self.command, '--version')}"

    @functools.cached_property
    def is_clang(self) -> bool:
        return "clang" in output_of(*self.command, "--version")

    @functools.cached_property
    def is_x86_64(self) -> bool:
        return output_of(*self.command, "-dumpmachine").startswith("x86_64")

    def file(self, name: str) -> str | None:
        """The full path of a library that the compiler would link, if it has it."""
        path = output_of(*self.command, f"-print-file-name={name}").strip()
        return path if os.path.isabs(path) else None


def _companion(cc: list[str]) -> str | None:
    """The C++ compiler that belongs to a C compiler the user has named."""
    name = os.path.basename(cc[0])
    for c, cxx in (("clang", "clang++"), ("gcc", "g++")):
        if c in name and cxx not in name:
            path = os.path.join(os.path.dirname(cc[0]), name.replace(c, cxx, 1))
            return path if shutil.which(path) else None
    return None


def _find(variable: str, language: str, names: tuple[str, ...]) -> Compiler:
    named = flags_of(variable)
    if not named and variable == "CXX" and (cc := flags_of("CC")):
        other = _companion(cc)
        named = [other, *cc[1:]] if other else []
    if named:
        if not shutil.which(named[0]):
            raise BuildError(
                f"The {language} compiler {named[0]!r}, named by {variable}, was not "
                f"found; install it, or unset {variable} and install the usual one "
                "with: sudo apt-get install build-essential"
            )
        return Compiler(tuple(named))
    for name in names:
        if shutil.which(name):
            return Compiler((name,))
    raise BuildError(
        f"No {language} compiler was found (looked for {', '.join(names)}); install "
        "one with: sudo apt-get install build-essential"
    )


@functools.cache
def find_cc() -> Compiler:
    return _find("CC", "C", ("cc", "gcc", "clang"))


@functools.cache
def find_cxx() -> Compiler:
    return _find("CXX", "C++", ("c++", "g++", "clang++"))


def _must_compile(compiler: Compiler, language: str, suffix: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe" + suffix)
        source.write_text(text)
        done = subprocess.run(
            [*compiler.command, "-o", str(source.with_suffix("")), str(source)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    if done.returncode:
        lines = done.stdout.strip().splitlines() or ["(it said nothing)"]
        raise BuildError(
            f"The {language} compiler {shlex.join(compiler.command)!r} cannot build a "
            f"program of three lines ({lines[0]}); install what it lacks with: "
            "sudo apt-get install build-essential"
        )


def check_compilers() -> None:
    """Raises BuildError unless C and C++ programs can be built."""
    cc, cxx = find_cc(), find_cxx()
    _must_compile(cc, "C", ".c", "#include <stdio.h>\nint main(void)\n{ return 0; }\n")
    _must_compile(cxx, "C++", ".cpp", "#include <vector>\nint main()\n{ return 0; }\n")


def python_include() -> list[str]:
    """The folders of Python's C headers; BuildError where Python.h is missing."""
    folders = dict.fromkeys(sysconfig.get_path(k) for k in ("include", "platinclude"))
    found = [folder for folder in folders if folder]
    if not any(os.path.isfile(os.path.join(f, "Python.h")) for f in found):
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise BuildError(
            f"Python {version}'s C header Python.h is not in {found[0]}; install it "
            f"with: sudo apt-get install python{version}-dev"
        )
    return found


def numpy_include() -> tuple[str, str]:
    """The folder of NumPy's C headers, and NumPy's version."""
    try:
        import numpy
    except ImportError:
        raise BuildError(
            "NumPy's C headers are needed to build pydevtensor without build "
            "isolation; install them with: pip install 'numpy>=2.0'"
        ) from None
    if int(numpy.__version__.split(".")[0]) < 2:
        raise BuildError(
            f"NumPy {numpy.__version__} is too old to build pydevtensor with; "
            "install a newer one with: pip install 'numpy>=2.0'"
        )
    return numpy.get_include(), numpy.__version__


@dataclass(frozen=True)
class Nvcc:
    path: str

    @functools.cached_property
    def version(self) -> tuple[int, int]:
        found = re.search(r"release (\d+)\.(\d+)", output_of(self.path, "--version"))
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @functools.cached_property
    def identity(self) -> str:
        host = shutil.which((os.environ.get("NVCC_CCBIN") or "g++").split()[0]) or ""
        return (
            f"{os.path.realpath(self.path)} {output_of(self.path, '--version')} "
            f"{output_of(host, '--version')}"
        )

    @functools.cached_property
    def known_archs(self) -> tuple[int, ...]:
        text = output_of(self.path, "--list-gpu-code")
        return tuple(sorted({int(n) for n in re.findall(r"\bsm_(\d+)\b", text)}))


@functools.cache
def find_nvcc() -> Nvcc | None:
    """nvcc from PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda."""
    found = shutil.which("nvcc")
    homes = [os.environ.get(v) for v in ("CUDA_HOME", "CUDA_PATH")]
    for home in [*homes, "/usr/local/cuda"]:
        if not found and home:
            found = shutil.which("nvcc", path=os.path.join(home, "bin"))
    nvcc = Nvcc(found) if found else None
    # A wrapper whose toolkit is gone answers nothing.
    return nvcc if nvcc and nvcc.version >= (11, 0) and nvcc.known_archs else None


def _native_archs() -> list[int]:
    text = output_of("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    return sorted({int(a + b) for a, b in re.findall(r"^(\d+)\.(\d)$", text, re.M)})


def choose_archs(nvcc: Nvcc, wanted: str) -> tuple[int, ...]:
    """The architectures to build, ascending; BuildError for one nvcc does not know."""
    known = nvcc.known_archs
    version = ".".join(map(str, nvcc.version))
    if wanted == "release":
        archs = [arch for arch in RELEASE_ARCHS if arch in known]
        if not archs:
            raise BuildError(
                f"nvcc {version} knows none of the GPUs of a release; "
                "install CUDA 12 or newer, or set PYDEVTENSOR_CUDA=0."
            )
        return tuple(archs)
    if wanted == "native":
        archs = [arch for arch in _native_archs() if arch in known]
        return tuple(archs) or (FALLBACK_ARCH if FALLBACK_ARCH in known else known[-1],)
    archs = []
    for part in re.split(r"[;,\s]+", wanted):
        number = re.fullmatch(r"(?:sm_)?(\d+)\.?(\d)", part)
        arch = int(number[1] + number[2]) if number else 0
        if arch not in known:
            raise BuildError(
                f"PYDEVTENSOR_CUDA_ARCHS names {part!r}, which nvcc {version} does not "
                "build; set it to release, native, or a list of "
                + " ".join(map(str, known))
            )
        archs.append(arch)
    return tuple(sorted(set(archs)))
