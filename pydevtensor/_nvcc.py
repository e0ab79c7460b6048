"""python -m pydevtensor nvcc: compile whole CUDA programs for simulated GPUs.

The host's preprocessor, cuda/_program_source.py and the host's compiler make objects,
which are linked with the simulator's library; the program needs no Python.
docs/kernels.md has the options.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
HEADERS = (HERE / "_module.h", HERE / "_program.h")
LIBRARY = HERE / "_cuda_sim.so"
USAGE = """\
usage: python -m pydevtensor nvcc PROGRAM.cu ... [-o NAME] [options]

Compiles CUDA programs for simulated GPUs, with nvcc's options: -o, -c, -dc, -run, -I,
-D, -U, -L, -l, -O, -g, -std=c++17, -Xcompiler; those that say how code for a GPU is
made, such as -arch=sm_80, are accepted and have no effect. The compiler is the one that
CXX names, c++, g++, clang++ or that of the package ziglang.

The program runs on one simulated T4. Choose with PYDEVTENSOR_SIM_CARD=h100 and
PYDEVTENSOR_SIM_GPUS=2 in its environment."""
# For all files of a program.
FLAGS = (
    *("-O2", "-g1", "-fPIE", "-w", "-pipe", "-pthread"),
    *("-fsigned-char", "-fno-strict-aliasing", "-fno-delete-null-pointer-checks"),
    *("-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
)
# A program's objects are linked between these two, which define the bounds of the
# section of __device__ variables, and C's assert(), which kernels may call too.
ENDS = (
    """\
#define PAGE %(page)s
extern "C" {
__attribute__((section("dt_device"), aligned(PAGE))) char dt_device_begin[PAGE] = {1};
}
""",
    """\
#define PAGE %(page)s
extern "C" {
__attribute__((section("dt_device"), aligned(PAGE))) char dt_device_end[PAGE] = {1};
extern const struct { const char *kernel; unsigned long bytes; } dt_program_arrays[] = {
    %(arrays)s {0, 0}};
void dt_program_assert(const char *, const char *, unsigned, const char *);
void __assert_fail(const char *text, const char *file, unsigned line, const char *name)
{
    dt_program_assert(text, file, line, name);
    __builtin_unreachable();
}
}
""",
)
# Options for a GPU's code generator and its reports, which have no effect here: without
# a value, and with one, after "=" or as the next word.
ALONE = re.compile(
    r"-G|-g|-w|-m64|-lineinfo|--?(use_fast_math|generate-line-info|device-debug|debug|"
    r"restrict|extra-device-vectorization|expt-relaxed-constexpr|extended-lambda|"
    r"expt-extended-lambda|disable-warnings|resource-usage|no-host-device-initializer-list|"
    r"res-usage|verbose|ptxas-options=-v|default-stream=legacy)|-O[0-3]?"
)
WITH_VALUE = re.compile(
    r"-arch|-code|-gencode|--?(gpu-architecture|gpu-code|generate-code|maxrregcount|fmad|"
    r"ftz|prec-div|prec-sqrt|relocatable-device-code|rdc|cudart|diag-suppress|threads|"
    r"ptxas-options|compiler-bindir|ccbin|split-compile)|-Xptxas|-Xnvlink|-Xcudafe|-t"
)
LIBRARIES = re.compile(
    r"-l(cublas\w*|curand|cufft\w*|cusparse|cusolver|cudnn\w*|nccl|npp\w*|nvrtc|nvml)"
)


class Wrong(Exception):
    """The command cannot be carried out; the text says why."""


class Command(NamedTuple):
    sources: list[str]  # and objects and libraries, in their order
    output: str | None
    objects_only: bool
    runs: bool
    flags: list[str]  # of the compiler
    linked: list[str]  # of the linker
    arguments: list[str]  # of the program that -run starts


class _Parser:
    """Reads the words of a command, one option at a time."""

    def __init__(self, words: Sequence[str]) -> None:
        self._rest = [*words]
        self._sources: list[str] = []
        self._flags: list[str] = []
        self._linked: list[str] = []
        self._output: str | None = None
        self._objects_only = self._runs = False

    def parse(self) -> Command:
        """The whole command. Raises Wrong."""
        while self._rest:
            word = self._rest.pop(0)
            if word == "--":
                break
            name = word.partition("=")[0]
            if not word.startswith("-"):
                self._sources.append(word)
            elif not (
                self._takes_output(word, name)
                or self._takes_compiling(word, name)
                or self._takes_linking(word, name)
            ):
                self._ignore(word, name)
        for library in self._linked:
            if LIBRARIES.fullmatch(library):
                raise Wrong(
                    f"{library}: simulated GPUs do not have this library of CUDA's"
                )
        return Command(
            self._sources,
            self._output,
            self._objects_only,
            self._runs,
            self._flags,
            self._linked,
            self._rest,
        )

    def _value(self, word: str, name: str) -> str:
        """An option's value: after its name, after "=", or the next word."""
        if word != name:
            return word[len(name) :].removeprefix("=")
        if not self._rest:
            raise Wrong(f"the option {name} needs a value")
        return self._rest.pop(0)

    def _takes_output(self, word: str, name: str) -> bool:
        """Whether it is an option that says what to make, and whether to run it."""
        if name in ("-o", "--output-file"):
            self._output = self._value(word, name)
        elif word in ("-c", "-dc", "--compile", "--device-c"):
            self._objects_only = True
        elif word in ("-run", "--run"):
            self._runs = True
        else:
            return False
        return True

    def _takes_compiling(self, word: str, name: str) -> bool:
        """Whether it is an option for the compiler, which gets it."""
        if name in ("-Xcompiler", "--compiler-options"):
            self._flags += self._value(word, name).replace(",", " ").split()
        elif name in ("-std", "--std"):
            standard = self._value(word, name)
            if not re.fullmatch(r"c\+\+(03|11|14|17|20|23|2a|2b)", standard):
                raise Wrong(f"the option {word} is not known; give such as -std=c++17")
            if standard not in ("c++03", "c++11", "c++14"):
                self._flags.append(f"-std={standard}")
        elif name in ("--include-path", "--define-macro", "--undefine-macro"):
            self._flags.append(f"-{name[2].upper()}{self._value(word, name)}")
        elif name == "-isystem":
            self._flags.append(f"-I{self._value(word, name)}")
        elif word[:2] in ("-I", "-D", "-U"):
            self._flags.append(word[:2] + self._value(word, word[:2]))
        else:
            return False
        return True

    def _takes_linking(self, word: str, name: str) -> bool:
        """Whether it is an option for the linker, which gets it."""
        if name in ("-Xlinker", "--linker-options"):
            self._linked.append("-Wl," + self._value(word, name))
        elif name in ("--library", "--library-path"):
            letter = "L" if "path" in name else "l"
            self._linked.append(f"-{letter}{self._value(word, name)}")
        elif word[:2] in ("-L", "-l") and word not in ("-lineinfo", "-lib"):
            self._linked.append(word[:2] + self._value(word, word[:2]))
        else:
            return False
        return True

    def _ignore(self, word: str, name: str) -> None:
        """Skip an option that has no effect here. Raises Wrong for any other."""
        if re.fullmatch("--?(ptx|cubin|fatbin|shared|lib)", word):
            raise Wrong(
                f"{word} makes code for a GPU or a library; simulated GPUs have "
                "programs alone"
            )
        if name in ("-x", "--x") or (
            WITH_VALUE.fullmatch(name) and not ALONE.fullmatch(word)
        ):
            self._value(word, name)
        elif not ALONE.fullmatch(word):
            raise Wrong(f"the option {word!r} is not known")


def _run(command: Sequence[str], folder: str | None) -> str:
    """The output of a program, whose messages are shown."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        env={**os.environ, "LC_ALL": "C"},
    )
    said = done.stderr.encode(errors="replace").decode(errors="replace")
    sys.stderr.write(_of_the_program(said))
    if done.returncode:
        raise Wrong("")
    return done.stdout


def _of_the_program(said: str) -> str:
    """A compiler's messages without those about code that a launch was translated to.

    On the line of a launch, columns are those of the translated text.
    """
    messages: list[list[str]] = [[]]
    waiting: list[str] = []  # they may belong to the next message
    for row in said.splitlines(True):
        if re.match(r"In file included| +from |.*: (In |  required from)", row):
            waiting.append(row)
            continue
        if re.match(r".+?:\d+:\d+: +(fatal )?(error|warning)", row):
            messages.append([])
        messages[-1] += [*waiting, row]
        waiting = []
    own = re.compile(r"sim::|sim_a|_program\.h|auto:\d")

    def is_ours(message: list[str]) -> bool:
        return any(own.search(row) for row in message if ": note:" not in row)

    kept = [m for m in messages if m and not is_ours(m)] or messages
    shown = []
    for message in kept:
        if any("<<<" in row for row in message):
            message = [
                re.sub(r"^(.+?:\d+):\d+:", r"\1:", row)
                for row in message
                if not re.match(r" +\|", row)
            ]
        shown += message
    return "".join(shown)


def _of_the_compiler(flags: Sequence[str]) -> list[str]:
    """The flags without those for the preprocessor."""
    return [flag for flag in flags if not flag.startswith(("-I", "-D", "-U"))]


def _check(path: Path, source: str) -> None:
    """Raise for what simulated GPUs do not support, with its line."""
    from pydevtensor.cuda import _kernel_source

    if not path.is_file():
        raise Wrong(f"{source} is not a file")
    try:
        _kernel_source.check(path.read_text(errors="replace"), whole=True)
    except _kernel_source.Lacking as error:
        raise Wrong(
            f"{source}:{error.line}: error: simulated GPUs do not have {error.what}"
        ) from None


def _object(
    command: Command,
    compiler: Sequence[str],
    source: str,
    target: Path,
    folder: str | None,
) -> None:
    from pydevtensor.cuda import _kernel_compiler, _program_source

    _check(Path(folder or "", source), source)
    with tempfile.TemporaryDirectory(prefix="pydevtensor-") as name:
        scratch = Path(name)
        texts = {
            **dict.fromkeys(_kernel_compiler.EMPTY, ""),
            **_kernel_compiler.stubs(),
        }
        _kernel_compiler.write_headers(scratch / "stubs", texts)
        path = Path(folder or "") / source
        given = path.read_text(errors="replace")
        folders = [flag[2:] for flag in command.flags if flag.startswith("-I")]
        paths = [path.parent, *(Path(folder or "") / each for each in folders)]
        macros, flags = _kernel_compiler.macros(command.flags, [given], paths)
        (scratch / "macros.h").write_text(macros)
        if not any(flag.startswith("-std=") for flag in flags):
            flags.append("-std=gnu++17")
        before = ["-DSIM_PROGRAM", "-D__CUDACC__", "-D__NVCC__"]
        before += ["-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0"]
        first = (*HEADERS, scratch / "macros.h")
        before += [word for header in first for word in ("-include", str(header))]
        before += ["-isystem", str(scratch / "stubs")]
        words = [*compiler, "-E", "-x", "c++", "-pthread", *flags, *before, source]
        text = _run(words, folder)
        try:
            text = _program_source.rewritten(text, tuple(map(str, HEADERS)))
        except _program_source.SourceError as error:
            raise Wrong(str(error)) from None
        made = scratch / Path(source).name  # the name in debug information
        made.write_text(text, errors="surrogateescape")
        words = [*compiler, "-x", "c++", *FLAGS, *_of_the_compiler(flags)]
        words += ["-c", str(made)]
        _run([*words, "-o", str(target)], folder)


def _link(
    command: Command,
    compiler: Sequence[str],
    parts: Sequence[str],
    output: str,
    folder: str | None,
) -> None:
    import platform

    from pydevtensor.cuda import _program_source

    page = "4096" if platform.machine() == "x86_64" else "65536"
    with tempfile.TemporaryDirectory(prefix="pydevtensor-") as name:
        ends = [Path(name) / "begin.cpp", Path(name) / "end.cpp"]
        for path, text in zip(ends, ENDS, strict=True):
            path.write_text(
                text % {"page": page, "arrays": _program_source.arrays(parts, folder)}
            )
        first, last = (str(path) for path in ends)
        linked = [f for f in command.linked if not re.fullmatch(r"-lcud\w+", f)]
        words = [*compiler, *FLAGS, "-pie", *_of_the_compiler(command.flags)]
        words += [first, *parts, last, str(LIBRARY), *linked, "-lm", "-o", output]
        _run(words, folder)


def parse(words: Sequence[str]) -> Command:
    """The command of these words. Raises Wrong."""
    return _Parser(words).parse()


def build(command: Command, folder: str | None = None) -> int:
    """Carry out the command in a folder. Returns its exit status. Raises Wrong, and
    RuntimeError where there is no compiler."""
    from pydevtensor.cuda import _kernel_compiler

    if not command.sources:
        raise Wrong("no source is given, such as program.cu")
    compiler = _kernel_compiler.compiler()
    with tempfile.TemporaryDirectory(prefix="pydevtensor-") as name:
        parts = []
        for number, source in enumerate(command.sources):
            if Path(source).suffix in (".o", ".a", ".so"):
                parts.append(source)
                continue
            stem = Path(source).stem
            target = Path(name) / f"{number}-{stem}.o"
            if command.objects_only:
                target = Path(command.output or f"{stem}.o")
            _object(command, compiler, source, target, folder)
            parts.append(str(target))
        if command.objects_only:
            return 0
        output = command.output or "a.out"
        if command.runs and not command.output:
            output = str(Path(name) / "a.out")
        _link(command, compiler, parts, output, folder)
        if command.runs:
            program = os.path.abspath(output)
            return subprocess.run([program, *command.arguments]).returncode
    return 0


def report(error: Exception) -> None:
    """Show the message of an error of parse() or build()."""
    text = str(error).removeprefix("compile_kernel(): ")
    if text:
        print(text if ": error:" in text else f"nvcc: {text}", file=sys.stderr)


def main(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    if words[0] in ("-V", "--version"):
        from pydevtensor import __version__

        print(f"pydevtensor {__version__}, for simulated GPUs, with CUDA 13.0's names")
        return 0
    try:
        return build(parse(words))
    except (Wrong, RuntimeError) as error:
        report(error)
        return 1
