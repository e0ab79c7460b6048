"""Compiles the CUDA C of a program for simulated GPUs, and keeps what it has compiled.

The host's compiler makes a library of the program's kernels and csrc/sim/module.h,
which is installed as _module.h. Libraries are kept in a folder by a digest of all that
they depend on, and loaded for each GPU from a copy, so that each GPU has its own
__device__ variables.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydevtensor import _C, __version__
from pydevtensor.cuda import _kernel_source
from pydevtensor.cuda.checks import program_level
from pydevtensor.cuda.kernels import SHARED, CompileError

HEADER = Path(__file__).parents[1] / "_module.h"
FILE = "kernel.cu"  # the program's source in messages of the compiler
FLAGS = (
    *("-x", "c++", "-c", "-O2", "-fPIC", "-fvisibility=hidden", "-w", "-pipe"),
    # As nvcc has it, or more tolerant: char is signed, memory has no types, and NULL is
    # an address.
    *("-fsigned-char", "-fno-strict-aliasing", "-fno-delete-null-pointer-checks"),
    *("-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
    *("-ftabstop=1", "-fdiagnostics-color=never"),
    "-fno-exceptions",
)
LINKED = ("-shared", "-Wl,-z,defs")
# For checked kernels: the compiler's instrumentation, lines, and few optimizations, so
# that there is a call for each access of the source, on its line.
CHECKED = (
    *("-DSIM_CHECKED", "-O1", "-g1", "-gdwarf-4", "-gz=none"),
    *("-fno-optimize-sibling-calls", "-fno-finite-loops"),
)
CHECKED_GCC = (
    *(
        "-fsanitize=thread,bounds-strict,alignment",
        "--param=tsan-distinguish-volatile=1",
    ),
    *("-fno-tree-loop-im", "-fno-tree-ch", "-fno-tree-sra", "-fno-ssa-phiopt"),
    *("-fno-tree-sink", "-fno-tree-dse"),
)
CHECKED_CLANG = (
    *("-fsanitize=thread,array-bounds,alignment", "-mllvm"),
    *("-tsan-distinguish-volatile=1", "-fno-vectorize", "-fno-slp-vectorize"),
)
# Locals that are read before they are written, as far as the compiler sees them.
DOUBTS_GCC = ("-Wuninitialized", "-Wmaybe-uninitialized")
DOUBTS_CLANG = ("-Wuninitialized", "-Wconditional-uninitialized")
TAKEN = re.compile(r"-[DUI].+|--?std=(c|gnu)\+\+\d\w")
OLD = re.compile(r"--?std=.*(03|0x|11|1y|14|98)")  # C++17 is the least that works
# They say how a GPU's code is made.
IGNORED = re.compile(
    r"-G|-g|-O[0-3]|-w|--?(use_fast_math|lineinfo|generate-line-info|device-debug|"
    r"restrict|extra-device-vectorization|default-device|dopt|disable-warnings)|"
    r"--?(arch|gpu-architecture|code|gpu-code|gencode|maxrregcount|fmad|ftz|prec-div|"
    r"prec-sqrt|relocatable-device-code|rdc|diag-suppress|dopt)=.*"
)

# The headers of CUDA's that HEADER has on request, by what requests them.
STUBS = {
    "SIM_HALVES": ("cuda_fp16.h", "cuda_bf16.h"),
    "SIM_GROUPS": (
        *("cooperative_groups.h", "cooperative_groups/reduce.h"),
        *("cooperative_groups/scan.h", "cooperative_groups/memcpy_async.h"),
    ),
    "SIM_COMPLEX": ("cuComplex.h",),
}

_lock = threading.Lock()
_modules: dict[tuple[str, int], int] = {}


def compiler() -> list[str]:
    """The command of the host's compiler."""
    named = os.environ.get("CXX", "").split()
    for candidate in [named] if named else [["c++"], ["g++"], ["clang++"], _zig()]:
        if path := _which(candidate[0]):
            return [path, *candidate[1:]]
    raise RuntimeError(
        f"compile_kernel(): CXX is {' '.join(named)}, which is not found; set "
        "it to a C++ compiler, or unset it"
        if named
        else "compile_kernel(): simulated GPUs need a C++ compiler, and none of c++, "
        "g++ and clang++ is found; install one, on Debian and Ubuntu with: sudo "
        "apt-get install g++, elsewhere with: pip install ziglang"
    )


def _zig() -> list[str]:
    """The compiler of the package ziglang, where it is installed."""
    from importlib.util import find_spec

    found = find_spec("ziglang")
    folders = (found and found.submodule_search_locations) or ["/nowhere"]
    return [os.path.join(folders[0], "zig"), "c++"]


def identity(command: Sequence[str]) -> str:
    """Differs between compilers, and versions of one; needs no process."""
    seen = [os.path.realpath(_which(word) or word) for word in command]
    facts = (os.stat(path) for path in seen if os.path.isfile(path))
    return repr((seen, [(f.st_size, f.st_mtime_ns) for f in facts]))


def flags_of(options: Sequence[str]) -> list[str]:
    """The options that the host's compiler takes."""
    if isinstance(options, str) or not all(isinstance(o, str) for o in options):
        raise TypeError(
            f"compile_kernel(): options is {options!r}; give a list of str, such as "
            "['-DN=16']"
        )
    taken = []
    for option in options:
        if OLD.fullmatch(option):
            continue
        if TAKEN.fullmatch(option):
            taken.append(re.sub("^--", "-", option))
        elif not IGNORED.fullmatch(option):
            raise ValueError(
                f"compile_kernel(): the option {option!r} is not known; give "
                "-DNAME=VALUE, -UNAME, -IFOLDER or -std=c++17, each as one str"
            )
    return taken


def _included(texts: Iterable[str], folders: Sequence[Path]) -> set[str]:
    """The names that texts include, and the files of folders that they reach so."""
    named: set[str] = set()
    waiting = [*texts]
    while waiting:
        text = waiting.pop()
        for _, _, name in _kernel_source.includes(text, _kernel_source.blank(text)):
            if name in named:
                continue
            named.add(name)
            paths = (folder / name for folder in folders)
            found = next((path for path in paths if path.is_file()), None)
            if found:
                folders = [*folders, found.parent]
                waiting.append(found.read_text(errors="replace"))
    return named


def macros(
    flags: Sequence[str], texts: Iterable[str], folders: Sequence[Path]
) -> tuple[str, list[str]]:
    """The macros among a program's options as text, and its other options.

    They come after all of HEADER that these texts include, also by files of the
    folders: it uses such names as T and N itself, which a program may define before it
    includes a header of CUDA's. Reserved names are for the system's headers, and NDEBUG
    for assert.
    """
    named = _included(texts, folders)
    said = [f"#include <{name}>" for name in stubs() if name in named]
    taken = []
    for flag in flags:
        name, equals, value = flag[2:].partition("=")
        if not re.match(r"-[DU](?!_|NDEBUG\b)", flag):
            taken.append(flag)
        elif flag.startswith("-D"):
            said.append(f"#define {name} {value if equals else 1}")
        else:
            said.append(f"#undef {name}")
    return "".join(f"{line}\n" for line in said), taken


def cache() -> Path | None:
    """The folder of libraries; None: the user wants none, or has none of their own."""
    chosen = os.environ.get("PYDEVTENSOR_KERNEL_CACHE")
    if chosen == "":
        return None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    folder = Path(chosen or os.path.join(base, "pydevtensor", "kernels")).expanduser()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
    except (OSError, RuntimeError):
        return None
    # Whoever can write there could have this process run their code.
    own = facts.st_uid == os.getuid() and not facts.st_mode & 0o022
    return folder if own and os.access(folder, os.W_OK) else None


def stubs() -> dict[str, str]:
    """Texts of headers that take more of HEADER."""
    return {
        name: f'#define {word}\n#include "{HEADER}"\n'
        for word, names in STUBS.items()
        for name in names
    }


def write_headers(folder: Path, texts: Mapping[str, str]) -> None:
    """Writes headers by their names, which may have folders in them."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Compiled:
    """Kernels and variables of a source, compiled at first use and kept in the cache.

    `name` is the kernel that was asked for, `named` are all.
    """

    suffix = ""  # of files in the cache

    def __init__(
        self,
        source: str,
        name: str,
        named: Sequence[str],
        options: Sequence[str],
        headers: Mapping[str, str],
        checked: bool = False,
    ) -> None:
        self.checked = checked
        self.source, self.name, self.headers = source, name, dict(headers)
        self.named, self.variables = named, _kernel_source.variables(source)
        self.doubtful = False  # the compiler has warned: the next program is, too
        self.flags = self.chosen(options)
        if not any(flag.startswith("-std=") for flag in self.flags):
            self.flags.append("-std=c++17")
        self.text = self.whole()
        parts = [__version__, HEADER.read_text(), *self.identity(), self.text]
        parts += [repr(self.flags), repr(sorted(self.headers.items()))]
        self.key = hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def chosen(self, options: Sequence[str]) -> list[str]:
        """The options that the compiler takes."""
        return flags_of(options)

    def whole(self) -> str:
        """The text for the compiler."""
        raise NotImplementedError

    def identity(self) -> list[str]:
        """All else that the result depends on."""
        raise NotImplementedError

    def compile(self) -> bytes:
        """The bytes to keep. CompileError"""
        raise NotImplementedError

    def loaded(self, module: int, data: bytes) -> None:
        """Called with each new module and what is kept of it."""

    def code(self, data: bytes) -> bytes:
        """The file to load, of what is kept."""
        return data

    def described(self, name: str) -> tuple[str, tuple[int, ...]]:
        """A kernel's name in the code, and its parameters if the code has them not."""
        return name, ()

    def on(self, device: int) -> Compiled:
        """The same for another GPU."""
        return self

    def variable(self, device: int, name: str, data: bytes | None = None) -> bytes:
        """The bytes of a variable; data: sets them."""
        module = self.module(device)
        value: bytes = _C._module_variable(module, device, self.symbol(name), data)
        return value

    def symbol(self, name: str) -> str:
        """A variable's name in the code."""
        return name

    def kernel(self, device: int, name: str) -> tuple[int, Any]:
        """The handle of a kernel on a GPU, and its parameters."""
        module = self.module(device)
        lowered, rows = self.described(name)
        found: tuple[int, Any] = _C._module_kernel(module, lowered, name, rows)
        return found

    def module(self, device: int) -> int:
        """The module of a GPU, compiled and loaded at its first use."""
        with _lock:
            if (self.key, device) not in _modules:
                _modules[self.key, device] = self._load(device)
            return _modules[self.key, device]

    def data(self) -> bytes:
        """The result of compiling, of the cache if that has it."""
        # Files of folders that -I names may change.
        folder = None if any(f.startswith("-I") for f in self.flags) else cache()
        kept = folder and folder / f"{self.key}{self.suffix}"
        data = _read(kept) if kept else b""
        if not data:
            data = self.compile()
            if folder and kept and not self.doubtful:
                # Whole or not at all; on a full disk, the next process compiles again.
                with suppress(OSError):
                    os.replace(_write(folder, data + _seal(data)), kept)
        return data

    def _load(self, device: int) -> int:
        data = self.data()
        # A copy of another name: the linker opens a library of one name once.
        uncached = any(f.startswith("-I") for f in self.flags)
        copy = _write(None if uncached else cache(), self.code(data))
        try:
            module: int = _C._module_load(device, os.fsencode(copy))
            self.loaded(module, data)
            return module
        except RuntimeError as error:
            raise RuntimeError(
                f"compile_kernel(): the compiled kernels cannot be loaded: {error}; "
                "set PYDEVTENSOR_KERNEL_CACHE to a folder whose files may be executed"
            ) from None
        finally:
            copy.unlink()

    def explain(self, errors: Iterable[tuple[int, int, str]], output: str) -> str:
        """The compiler's errors (see _errors) at the lines of the program."""
        errors = [*dict.fromkeys(errors)]
        said = self.quoted([e for e in errors if e[0]][:5])
        if not said and errors:
            text = errors[0][2]
            if "returning_void" in text:
                text = "it names no function that returns void, or several"
            said.append(f"{self.name}: {text}")
        said = said or [output.strip()[-1000:]]
        return "compile_kernel(): the source does not compile\n" + "\n".join(said)

    def quoted(self, errors: Iterable[tuple[int, int, str]]) -> list[str]:
        lines = self.source.splitlines()
        said = []
        for line, column, text in errors:
            said.append(f"line {line}, column {column}: {text}")
            if line <= len(lines):
                said += [f"    {lines[line - 1]}", "    " + " " * (column - 1) + "^"]
        return said


class Library(Compiled):
    """A library for simulated GPUs."""

    suffix = ".so"

    def chosen(self, options: Sequence[str]) -> list[str]:
        given = super().chosen(options)
        texts = (self.source, *self.headers.values())
        folders = [Path(flag[2:]) for flag in given if flag.startswith("-I")]
        self.macros, taken = macros(given, texts, folders)
        return taken

    def whole(self) -> str:
        self.command = compiler()
        texts = (self.source, *self.headers.values())
        code = "\n".join(map(_kernel_source.blank, texts))
        waits = bool(_kernel_source.WAITS.search(code))
        apart = not _kernel_source.FIXED.search(code)
        entries = ", ".join(
            f"sim::kernel_named<sim::returning_void(&{name})>"
            f'("{name}", {waits:d}, {apart:d})'
            for name in self.named
        )
        variables = "".join(f"SIM_VARIABLE({name}) " for name in self.variables)
        return (
            f'{self.macros}#line 1 "{FILE}"\n'
            f"{_kernel_source.prepared(self.source)}\n"
            f'#line 1 "pydevtensor"\nSIM_MODULE_KERNELS({entries})\n'
            f"SIM_MODULE_VARIABLES({variables})\n"
        )

    def identity(self) -> list[str]:
        checks = (*CHECKED, *CHECKED_GCC) if self.checked else ()
        return [identity(self.command), repr((*FLAGS, *checks))]

    def loaded(self, module: int, data: bytes) -> None:
        if self.checked:
            from pydevtensor.cuda import _kernel_checks

            _kernel_checks.register(module, data, self.source, self.headers)

    def compile(self) -> bytes:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="pydevtensor-") as name:
            scratch = Path(name)
            (scratch / "source.cpp").write_text(self.text)
            write_headers(scratch / "headers", {**stubs(), **self.headers})
            made, library = str(scratch / "made.o"), str(scratch / "made.so")
            flags = [*(self._checks() if self.checked else FLAGS), *self.flags]
            flags += ["-include", str(HEADER), "-I", str(scratch / "headers")]
            strip = () if self.checked else ("-Wl,-s",)
            # As C++, zig would compile a library of C++ first, for a minute.
            zig = os.path.basename(self.command[0]) == "zig"
            linker = [self.command[0], "cc"] if zig else self.command
            for command in (
                [*self.command, *flags, str(scratch / "source.cpp"), "-o", made],
                # Apart, so that no runtime of the instrumentation is linked.
                [*linker, *LINKED, *strip, made, "-o", library, "-lm"],
            ):
                done = _ran(command)
                if done.returncode:
                    raise CompileError(self.explain(_errors(done.stdout), done.stdout))
                self._warn(done.stdout)
            data = (scratch / "made.so").read_bytes()
            if self.checked:
                self._check_arrays(data)
            return data

    def _check_arrays(self, data: bytes) -> None:
        """Raise CompileError where a function's __shared__ arrays exceed the limit."""
        from pydevtensor.cuda import _kernel_checks, _kernel_object

        shared = _kernel_checks.shared_names((self.source, *self.headers.values()))
        sums: dict[str, int] = {}
        for symbol in _kernel_object.Object(data).variables():
            function = re.match(r"_ZZN?L?(\d+)(\w+)", symbol.name)
            if function and _kernel_checks.plain_name(symbol.name) in shared:
                where = symbol.name[: symbol.name.rindex("E")]
                sums[where] = sums.get(where, 0) + symbol.bytes
                if sums[where] > SHARED:
                    raise CompileError(
                        f"compile_kernel(): {function[2][: int(function[1])]} has more "
                        f"than {SHARED} bytes of __shared__ arrays, the limit of those "
                        "of fixed size; make them smaller, or use dynamic shared memory"
                    )

    def _checks(self) -> list[str]:
        clang = "clang" in _ran([*self.command, "--version"]).stdout
        own = (*CHECKED_CLANG, *DOUBTS_CLANG) if clang else (*CHECKED_GCC, *DOUBTS_GCC)
        return [*(flag for flag in FLAGS if flag != "-w"), *CHECKED, *own]

    def _warn(self, output: str) -> None:
        """Warns of locals without a value."""
        row = rf"^{FILE}:(\d+):(\d+): warning: (.*) \[-W\w*-?uninitialized\]$"
        found = dict.fromkeys(re.findall(row, output, re.M))
        said = self.quoted((int(line), int(column), t) for line, column, t in found)
        if said:
            self.doubtful = True
            text = "\n".join(
                [
                    f"{self.name}(): a local variable may be read before it is written",
                    *said,
                ]
            )
            warnings.warn(text, RuntimeWarning, stacklevel=program_level())


def _ran(command: Sequence[str]) -> Any:
    import subprocess

    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    )


def _errors(output: str) -> Iterator[tuple[int, int, str]]:
    """Line and column (0: unknown) and text of each error.

    One in a template of ours is the program's where it used the template; gcc says so
    before the error, clang after it.
    """
    before, pending = (0, 0), ""
    for row in output.splitlines():
        found = re.match(r"(.+?):(\d+):(\d+): +(.*)", row)
        linked = re.search(r"undefined reference to [`'](.+)'", row)
        if linked:
            name = linked[1].split("(")[0]
            yield 0, 0, f"{name} is declared, and nothing defines it"
        if not found:
            continue
        at = (int(found[2]), int(found[3])) if found[1] == FILE else (0, 0)
        error = re.match(r"(?:fatal )?error: (.*)", found[4])
        if pending and (at[0] or error):
            yield *(at if at[0] and not error else (0, 0)), pending
            pending = ""
        if error and (at[0] or before[0]):
            yield *(at if at[0] else before), error[1]
        elif error:
            pending = error[1]
        before = at if at[0] and not error else (0, 0) if error else before
    if pending:
        yield 0, 0, pending


def _seal(data: bytes) -> bytes:
    """Ends a file of the cache: opening a damaged library could end the process."""
    return hashlib.sha256(data).digest()


def _read(kept: Path) -> bytes:
    """The library in a file of the cache; nothing where it is missing or damaged."""
    try:
        data = kept.read_bytes()
    except OSError:
        return b""
    data, seal = data[:-32], data[-32:]
    return data if seal == _seal(data) else b""


def _write(folder: Path | None, data: bytes) -> Path:
    """A new file, in the folder or where temporary files are."""
    if not folder:
        import tempfile

        folder = Path(tempfile.gettempdir())
    path = folder / f".{os.getpid()}-{os.urandom(8).hex()}.so"
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return path


def _which(word: str) -> str | None:
    """The path of a program."""
    folders = [""] if "/" in word else os.environ.get("PATH", os.defpath).split(":")
    paths = (os.path.join(folder, word) for folder in folders)
    return next((p for p in paths if os.path.isfile(p) and os.access(p, os.X_OK)), None)
