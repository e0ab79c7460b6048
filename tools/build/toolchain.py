"""Finds compilers and headers, or says in one sentence what to install."""

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

ROOT = Path(__file__).resolve().parents[2]
SANITIZERS = ("address", "thread", "undefined")
INSTALL = "with: sudo apt-get install build-essential"


class BuildError(Exception):
    """Its text is the sentence that the user reads."""


@dataclass(frozen=True)
class Settings:
    """The switches of a build, as the environment gives them."""

    cuda: str
    archs: str
    werror: bool
    sanitize: tuple[str, ...]
    quick: bool  # soon there, and for this machine alone

    @staticmethod
    def from_environment() -> Settings:
        cuda = os.environ.get("PYDEVTENSOR_CUDA", "").strip() or "auto"
        if cuda not in ("0", "1", "auto"):
            raise BuildError(f"PYDEVTENSOR_CUDA is {cuda!r}; set it to 0, 1 or auto.")
        text = os.environ.get("PYDEVTENSOR_SANITIZE", "")
        sanitize = tuple(filter(None, re.split(r"[,;\s]+", text)))
        for part in sanitize:
            if part not in SANITIZERS:
                raise BuildError(
                    f"PYDEVTENSOR_SANITIZE names {part!r}; "
                    f"set it to some of {', '.join(SANITIZERS)}."
                )
        if {"address", "thread"} <= set(sanitize):
            raise BuildError(
                "PYDEVTENSOR_SANITIZE names address and thread, which no compiler "
                "combines; choose one of them."
            )
        return Settings(
            cuda=cuda,
            archs=os.environ.get("PYDEVTENSOR_CUDA_ARCHS", "").strip() or "release",
            werror=os.environ.get("PYDEVTENSOR_WERROR", "0") not in ("", "0"),
            sanitize=sanitize,
            quick=os.environ.get("PYDEVTENSOR_QUICK", "0") not in ("", "0"),
        )


def flags_of(variable: str) -> list[str]:
    return shlex.split(os.environ.get(variable, ""))


def tool_environment() -> dict[str, str]:
    """The environment for compilers: without the sanitizers of a test run."""
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


# --- compilers


@dataclass(frozen=True)
class Compiler:
    command: tuple[str, ...]

    @functools.cached_property
    def identity(self) -> str:
        """Differs between compilers and their versions."""
        path = shutil.which(self.command[0]) or self.command[0]
        return f"{os.path.realpath(path)} {output_of(*self.command, '--version')}"

    @functools.cached_property
    def is_clang(self) -> bool:
        return "clang" in output_of(*self.command, "--version")

    @functools.cached_property
    def is_x86_64(self) -> bool:
        return output_of(*self.command, "-dumpmachine").startswith("x86_64")

    def macros(self, *flags: str) -> set[str]:
        """The names that the compiler defines by itself."""
        text = output_of(*self.command, *flags, "-dM", "-E", "-x", "c", os.devnull)
        return {line.split()[1] for line in text.splitlines()}

    def file(self, name: str) -> str | None:
        """The full path of a library that the compiler would link, if it has it."""
        path = output_of(*self.command, f"-print-file-name={name}").strip()
        return path if os.path.isabs(path) else None


def _companion(cc: list[str]) -> list[str]:
    """The C++ compiler that belongs to a C compiler, or nothing."""
    folder, name = os.path.split(cc[0])
    for c, cxx in (("clang", "clang++"), ("gcc", "g++")):
        if c in name and cxx not in name:
            path = os.path.join(folder, name.replace(c, cxx, 1))
            return [path, *cc[1:]] if shutil.which(path) else []
    return []


def _find(variable: str, language: str, names: tuple[str, ...]) -> Compiler:
    named = flags_of(variable)
    if not named and variable == "CXX" and (cc := flags_of("CC")):
        named = _companion(cc)
    if named and not shutil.which(named[0]):
        raise BuildError(
            f"The {language} compiler {named[0]!r}, named by {variable}, was not "
            f"found; install it, or unset {variable} and install the usual one "
            + INSTALL
        )
    if not named:
        named = [name for name in names if shutil.which(name)][:1]
    if not named:
        raise BuildError(
            f"No {language} compiler was found (looked for {', '.join(names)}); "
            f"install one {INSTALL}"
        )
    return Compiler(tuple(named))


@functools.cache
def find_cc() -> Compiler:
    return _find("CC", "C", ("cc", "gcc", "clang"))


@functools.cache
def find_cxx() -> Compiler:
    return _find("CXX", "C++", ("c++", "g++", "clang++"))


def check_compilers() -> None:
    """Raises BuildError unless C and C++ programs can be built."""
    for compiler, language, suffix, header in (
        (find_cc(), "C", ".c", "stdio.h"),
        (find_cxx(), "C++", ".cpp", "vector"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe" + suffix)
            source.write_text(f"#include <{header}>\nint main(void)\n{{ return 0; }}\n")
            done = subprocess.run(
                [*compiler.command, "-o", str(source.with_suffix("")), str(source)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        if done.returncode:
            lines = done.stdout.strip().splitlines() or ["(it said nothing)"]
            raise BuildError(
                f"The {language} compiler {shlex.join(compiler.command)!r} cannot "
                f"build a program of three lines ({lines[0]}); install what it lacks "
                + INSTALL
            )


# --- headers


def python_include() -> list[str]:
    """The folders of Python's C headers."""
    folders = dict.fromkeys(sysconfig.get_path(k) for k in ("include", "platinclude"))
    found = [folder for folder in folders if folder]
    if not any(os.path.isfile(os.path.join(f, "Python.h")) for f in found):
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise BuildError(
            f"Python {version}'s C header Python.h is not in {found[0]}; install it "
            f"with: sudo apt-get install python{version}-dev"
        )
    return found


@functools.cache
def numpy_include() -> str:
    """The folder of NumPy's C headers: a link with the version in its name, because an
    isolated build has NumPy in a new folder each time."""
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
    name = f"build/include/numpy-{numpy.__version__}"
    link = ROOT / name
    if not link.is_symlink() or os.readlink(link) != numpy.get_include():
        link.parent.mkdir(parents=True, exist_ok=True)
        fresh = link.with_name(f"{link.name}.{os.getpid()}")
        fresh.symlink_to(numpy.get_include())
        fresh.replace(link)
    return name
