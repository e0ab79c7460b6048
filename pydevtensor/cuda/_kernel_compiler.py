"""Compiles the CUDA C of a program for simulated GPUs, and keeps what it has compiled.

The host's compiler compiles the program's kernels, with csrc/sim/module.h before them
(installed as _module.h), to a shared library. Libraries are cached in a folder under a
digest of everything that they depend on. Each GPU loads a copy, so it has its own
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
from typing import Any, NamedTuple

from pydevtensor import _C, __version__
from pydevtensor.cuda import _kernel_object, _kernel_source
from pydevtensor.cuda._kernel_shared import SHARED
from pydevtensor.cuda.checks import program_level
from pydevtensor.cuda.kernels import CompileError

HEADER = Path(__file__).parents[1] / "_module.h"
FILE = "kernel.cu"  # the name of the program's source in the compiler's messages
FLAGS = (
    *("-x", "c++", "-c", "-O2", "-fPIC", "-fvisibility=hidden", "-w", "-pipe"),
    # nvcc's rules, or more tolerant ones: char is signed, no strict aliasing, and NULL
    # may be dereferenced.
    *("-fsigned-char", "-fno-strict-aliasing", "-fno-delete-null-pointer-checks"),
    *("-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
    *("-ftabstop=1", "-fdiagnostics-color=never"),
    *("-fno-exceptions", "-fno-threadsafe-statics"),
)
LINKED = ("-shared", "-Wl,-z,defs")
# For checked kernels: the compiler's instrumentation, lines, and few optimizations, so
# that there is a call for each access of the source, on its line.
CHECKED_LINES = ("-g1", "-gdwarf-4", "-gz=none")
CHECKED = (
    *("-DSIM_CHECKED", "-O1", *CHECKED_LINES),
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
# Warnings about locals that are read before they are written.
DOUBTS_GCC = ("-Wuninitialized", "-Wmaybe-uninitialized")
DOUBTS_CLANG = ("-Wuninitialized", "-Wconditional-uninitialized")
TAKEN = re.compile(r"-[DUI].+|--?std=(c|gnu)\+\+\d\w")
OLD = re.compile(r"--?std=.*(03|0x|11|1y|14|98)")  # older than C++17, which is required
# Options for a GPU's code generator, which have no effect here.
IGNORED = re.compile(
    r"-G|-g|-O[0-3]|-w|--?(use_fast_math|lineinfo|generate-line-info|device-debug|"
    r"restrict|extra-device-vectorization|default-device|dopt|disable-warnings)|"
    r"--?(arch|gpu-architecture|code|gpu-code|gencode|maxrregcount|fmad|ftz|prec-div|"
    r"prec-sqrt|relocatable-device-code|rdc|diag-suppress|dopt)=.*"
)

# The macros that NVRTC defines.
NVRTC = "".join(
    f"#define __{name}\n"
    for name in (
        "CUDACC__",
        "CUDACC_RTC__",
        "CUDACC_VER_MAJOR__ 13",
        "CUDACC_VER_MINOR__ 0",
    )
)
# Empty headers: HEADER has their names.
EMPTY = (
    *("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "cuda_profiler_api.h"),
    *("device_launch_parameters.h", "device_functions.h", "device_atomic_functions.h"),
    *("vector_types.h", "vector_functions.h", "math_functions.h", "math_constants.h"),
    *("driver_types.h", "host_defines.h", "sm_20_atomic_functions.h"),
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
_data: dict[str, bytes] = {}  # of simulated GPUs' libraries, by key


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
    """A text that differs between compilers and their versions. Starts no process."""
    seen = [os.path.realpath(_which(word) or word) for word in command]
    facts = (os.stat(path) for path in seen if os.path.isfile(path))
    return repr((seen, [(f.st_size, f.st_mtime_ns) for f in facts]))


def flags_of(options: Sequence[str]) -> list[str]:
    """The options for the host's compiler."""
    several = isinstance(options, Sequence) and not isinstance(options, str)
    if not several or not all(isinstance(o, str) for o in options):
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
    """The names that texts include, directly and through files of these folders."""
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

    The text is placed after the parts of HEADER that the program includes, directly or
    through files of the folders: HEADER uses names such as T and N itself, and a
    program may define them before it includes a header of CUDA's. Reserved names remain
    options, for the system's headers, and so does NDEBUG, for assert.
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
    """The cache's folder; None where it is turned off, or not the user's own."""
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
    # Anyone who can write there could make this process run their code.
    own = facts.st_uid == os.getuid() and not facts.st_mode & 0o022
    return folder if own and os.access(folder, os.W_OK) else None


def stubs() -> dict[str, str]:
    """Texts of headers that take more of HEADER."""
    # Which would be a GPU's code, if it saw these.
    hidden = ("__CUDACC__", "__CUDA_ARCH__")
    before = "".join(f'#pragma push_macro("{m}")\n#undef {m}\n' for m in hidden)
    after = "".join(f'#pragma pop_macro("{m}")\n' for m in hidden)
    return {
        name: f'{before}#define {word}\n#include "{HEADER}"\n{after}'
        for word, names in STUBS.items()
        for name in names
    }


def write_headers(folder: Path, texts: Mapping[str, str]) -> None:
    """Write headers under their names, which may contain folders."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Error(NamedTuple):
    """A message of the compiler, with its line."""

    line: int  # 0: outside of the program
    column: int
    text: str
    file: str = ""  # the program's header that has the line; "": its source


class Compiled:
    """Kernels and variables of a source, compiled at first use and kept in the cache.

    `name` is the kernel that the program wants, `named` are all that it may ask for.
    """

    suffix = ""  # of the cache's files

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
        self._fixed: dict[str, int] = {}
        self.doubtful = False  # the compiler has warned, and is to warn again
        self.flags = self.chosen(options)
        if not any(flag.startswith("-std=") for flag in self.flags):
            self.flags.append("-std=c++17")
        self.text = self.whole()
        parts = [__version__, HEADER.read_text(), *self.identity(), self.text]
        parts += [repr(self.flags), repr(sorted(self.headers.items()))]
        self.key = hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def chosen(self, options: Sequence[str]) -> list[str]:
        """The options for the compiler."""
        return flags_of(options)

    def whole(self) -> str:
        """The text for the compiler."""
        raise NotImplementedError

    def identity(self) -> list[str]:
        """Everything else that the result depends on."""
        raise NotImplementedError

    def compile(self) -> bytes:
        """Compile. Returns the bytes to cache. Raises CompileError."""
        raise NotImplementedError

    def loaded(self, module: int, data: bytes) -> None:
        """Called with each new module and its cached bytes."""

    def code(self, data: bytes) -> bytes:
        """The file to load, from the cached bytes."""
        return data

    def described(self, name: str) -> tuple[str, tuple[int, ...]]:
        """A kernel's symbol, and its parameters if the code does not describe them."""
        return name, ()

    def on(self, device: int) -> Compiled:
        """The same program for another GPU."""
        return self

    def fixed(self, kernel: str) -> int:
        """Bytes of a kernel's __shared__ arrays of fixed size, where the GPU's driver
        does not know."""
        return 0

    def variable(self, device: int, name: str, data: bytes | None = None) -> bytes:
        """The bytes of a variable. data: write these to it first."""
        module = self.module(device)
        value: bytes = _C._module_variable(module, device, self.symbol(name), data)
        return value

    def symbol(self, name: str) -> str:
        """A variable's symbol."""
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
        """The result of compiling, from the cache if it is there."""
        # Files in folders of -I may change.
        folder = None if any(f.startswith("-I") for f in self.flags) else cache()
        kept = folder and folder / f"{self.key}{self.suffix}"
        data = _read(kept) if kept else b""
        if not data:
            data = self.compile()
            if folder and kept and not self.doubtful:
                # Atomic. On a full disk the next process compiles again.
                with suppress(OSError):
                    os.replace(_write(folder, data + _seal(data)), kept)
        return data

    def _load(self, device: int) -> int:
        data = self.data()
        # A copy: the dynamic linker loads a path only once.
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

    def explain(self, errors: Iterable[Error], output: str) -> str:
        """The compiler's errors, with lines of the program."""
        errors = [*dict.fromkeys(errors)]
        said = self.quoted([e for e in errors if e.line][:5])
        if not said and errors:
            text = errors[0].text
            if "returning_void" in text:
                text = "it names no function that returns void, or several"
            said.append(f"{self.name}: {text}")
        said = said or [output.strip()[-1000:] or "no message; is CXX a C++ compiler?"]
        return "compile_kernel(): the source does not compile\n" + "\n".join(said)

    def quoted(self, errors: Iterable[Error]) -> list[str]:
        said = []
        for line, column, text, file in errors:
            lines = self.headers.get(file, self.source).splitlines()
            where = f"{file}, line {line}" if file else f"line {line}"
            said.append(f"{where}, column {column}: {text}")
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
        # After the headers, which would expect a GPU's compiler.
        card = _C._device_properties(_C._device_index(None))
        macros = f"#define __CUDA_ARCH__ {100 * card['major'] + 10 * card['minor']}\n"
        return (
            f'{self.macros}{NVRTC}{macros}#line 1 "{FILE}"\n'
            f"{_kernel_source.prepared(self.source)}\n"
            f'#line 1 "pydevtensor"\nSIM_MODULE_KERNELS({entries})\n'
            f"SIM_MODULE_VARIABLES({variables})\n"
        )

    def identity(self) -> list[str]:
        checks = (*CHECKED, *CHECKED_GCC) if self.checked else ()
        return [identity(self.command), repr((*FLAGS, *checks))]

    def fixed(self, kernel: str) -> int:
        if kernel not in self._fixed:
            texts = (self.source, *self.headers.values())
            made = _kernel_object.Object(_data[self.key])
            self._fixed[kernel] = _kernel_object.fixed(made, texts, kernel)
        return self._fixed[kernel]

    def loaded(self, module: int, data: bytes) -> None:
        _data[self.key] = data
        if self.checked:
            from pydevtensor.cuda import _kernel_checks

            _kernel_checks.register(module, data, self.source, self.headers)

    def compile(self) -> bytes:
        data, made = self._built()
        runs = made.runs_when_loaded()
        # The line tables say where that code is.
        lined = self._built(CHECKED_LINES)[0] if runs and not self.checked else data
        whole = _kernel_object.Object(lined)
        line, text = _kernel_object.first_value(whole, runs, self.source, FILE)
        if line:
            raise CompileError(self.explain([Error(line, 1, text)], ""))
        self._check_arrays(whole)
        return data

    def _built(self, more: Sequence[str] = ()) -> tuple[bytes, _kernel_object.Object]:
        """The library, and its object file. more: further flags."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="pydevtensor-") as name:
            scratch = Path(name)
            (scratch / "source.cpp").write_text(self.text)
            empty = dict.fromkeys((*EMPTY, "assert.h", "cassert"), "")
            texts = {**empty, **stubs(), **self.headers}
            write_headers(scratch / "headers", texts)
            made, library = str(scratch / "made.o"), str(scratch / "made.so")
            flags = [*(self._checks() if self.checked else FLAGS), *self.flags, *more]
            flags += ["-include", str(HEADER), "-I", str(scratch / "headers")]
            # Keep the symbols: they have the sizes of shared arrays.
            strip = () if self.checked or more else ("-Wl,-S",)
            # To link C++, zig would first compile its C++ library for a minute.
            zig = os.path.basename(self.command[0]) == "zig"
            linker = [self.command[0], "cc"] if zig else self.command
            for command in (
                [*self.command, *flags, str(scratch / "source.cpp"), "-o", made],
                # A separate step, so that no sanitizer runtime is linked.
                [*linker, *LINKED, *strip, made, "-o", library, "-lm"],
            ):
                done = _ran(command)
                if done.returncode:
                    errors = _errors(done.stdout, str(scratch / "headers"))
                    raise CompileError(self.explain(errors, done.stdout))
                self._warn(done.stdout)
            data = (scratch / "made.so").read_bytes()
            return data, _kernel_object.Object((scratch / "made.o").read_bytes())

    def _check_arrays(self, made: _kernel_object.Object) -> None:
        """Raise CompileError where a function's __shared__ arrays exceed the limit."""
        sums = _kernel_object.arrays(made, (self.source, *self.headers.values()))
        for where, size in sums.items():
            if size > SHARED:
                raise CompileError(
                    f"compile_kernel(): {_kernel_object.function(where)} has more than "
                    f"{SHARED} bytes of __shared__ arrays, the limit of those of fixed "
                    "size; make them smaller, or use dynamic shared memory"
                )

    def _checks(self) -> list[str]:
        clang = "clang" in _ran([*self.command, "--version"]).stdout
        own = (*CHECKED_CLANG, *DOUBTS_CLANG) if clang else (*CHECKED_GCC, *DOUBTS_GCC)
        return [*(flag for flag in FLAGS if flag != "-w"), *CHECKED, *own]

    def _warn(self, output: str) -> None:
        """Warn about locals that are read before they are written."""
        row = rf"^{FILE}:(\d+):(\d+): warning: (.*) \[-W\w*-?uninitialized\]$"
        found = dict.fromkeys(re.findall(row, output, re.M))
        said = self.quoted(
            Error(int(line), int(column), t) for line, column, t in found
        )
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


def _errors(output: str, headers: str) -> Iterator[Error]:
    """Yield the errors. headers: the folder of the program's headers.

    An error in a template of HEADER is reported where the program uses the template.
    gcc says where before the error, clang after it.
    """
    nowhere = Error(0, 0, "")
    before, pending = nowhere, ""
    for row in output.splitlines():
        found = re.match(r"(.+?):(\d+):(\d+): +(.*)", row)
        linked = re.search(r"undefined reference to [`'](.+)'", row)
        if linked:
            name = linked[1].split("(")[0]
            yield Error(0, 0, f"{name} is declared, and nothing defines it")
        if not found:
            continue
        at = nowhere
        own = found[1].removeprefix(headers + "/")
        if found[1] == FILE or (own != found[1] and own not in stubs()):
            file = "" if found[1] == FILE else own
            at = Error(int(found[2]), int(found[3]), "", file)
        error = re.match(r"(?:fatal )?error: (.*)", found[4])
        if pending and (at.line or error):
            yield (at if not error else nowhere)._replace(text=pending)
            pending = ""
        if error and (at.line or before.line):
            yield (at if at.line else before)._replace(text=error[1])
        elif error:
            pending = error[1]
        before = at if at.line and not error else nowhere if error else before
    if pending:
        yield Error(0, 0, pending)


def _seal(data: bytes) -> bytes:
    """The end of a cached file: to load a damaged library could crash the process."""
    return hashlib.sha256(data).digest()


def _read(kept: Path) -> bytes:
    """The library in a cached file; empty if it is missing or damaged."""
    try:
        data = kept.read_bytes()
    except OSError:
        return b""
    data, seal = data[:-32], data[-32:]
    return data if seal == _seal(data) else b""


def _write(folder: Path | None, data: bytes) -> Path:
    """Write a new file, in the folder or, without one, where temporary files are."""
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
