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
# Files that the headers above stand for.
STUBS = (
    *("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "cuda_profiler_api.h"),
    *("device_launch_parameters.h", "device_functions.h", "device_atomic_functions.h"),
    *("vector_types.h", "vector_functions.h", "math_functions.h", "math_constants.h"),
    *("driver_types.h", "host_defines.h", "sm_20_atomic_functions.h"),
)
# The objects that a program's are linked between: where __device__ variables are, from
# the first page on; and C's assert(), which a kernel may call too.
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
void dt_program_assert(const char *, const char *, unsigned, const char *);
void __assert_fail(const char *text, const char *file, unsigned line, const char *name)
{
    dt_program_assert(text, file, line, name);
    __builtin_unreachable();
}
}
""",
)
# Options that say how code for a GPU is made or what is reported of it: alone, with a
# value after "=", and with a value after "=" or as the next word.
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
    """The command cannot be carried out: what to tell the user."""


class Command(NamedTuple):
    sources: list[str]  # and objects and libraries, in their order
    output: str | None
    objects_only: bool
    runs: bool
    flags: list[str]  # of the compiler
    linked: list[str]  # of the linker
    arguments: list[str]  # of the program that -run starts


def _parsed(words: Sequence[str]) -> Command:
    sources: list[str] = []
    flags: list[str] = []
    linked: list[str] = []
    output, only, runs = None, False, False
    rest = [*words]

    def value(word: str, name: str) -> str:
        if word != name:
            return word[len(name) :].removeprefix("=")
        if not rest:
            raise Wrong(f"the option {name} needs a value")
        return rest.pop(0)

    while rest:
        word = rest.pop(0)
        name = word.partition("=")[0]
        if word == "--":
            return Command(sources, output, only, runs, flags, linked, rest)
        if not word.startswith("-"):
            sources.append(word)
        elif name in ("-o", "--output-file"):
            output = value(word, name)
        elif word in ("-c", "-dc", "--compile", "--device-c"):
            only = True
        elif word in ("-run", "--run"):
            runs = True
        elif name in ("-Xcompiler", "--compiler-options"):
            flags += value(word, name).replace(",", " ").split()
        elif name in ("-Xlinker", "--linker-options"):
            linked += ["-Wl," + value(word, name)]
        elif name in ("-std", "--std"):
            standard = value(word, name)
            if not re.fullmatch(r"c\+\+(03|11|14|17|20|23|2a|2b)", standard):
                raise Wrong(f"the option {word} is not known; give such as -std=c++17")
            if standard not in ("c++03", "c++11", "c++14"):
                flags.append(f"-std={standard}")
        elif name in ("--include-path", "--define-macro", "--undefine-macro"):
            flags.append(f"-{name[2].upper()}{value(word, name)}")
        elif name in ("--library", "--library-path"):
            linked.append(f"-{'L' if 'path' in name else 'l'}{value(word, name)}")
        elif name == "-isystem":
            flags.append(f"-I{value(word, name)}")
        elif word[:2] in ("-I", "-D", "-U"):
            flags.append(word[:2] + value(word, word[:2]))
        elif word[:2] in ("-L", "-l") and word not in ("-lineinfo", "-lib"):
            linked.append(word[:2] + value(word, word[:2]))
        elif name in ("-x", "--x"):
            value(word, name)
        elif re.fullmatch("--?(ptx|cubin|fatbin|shared|lib)", word):
            raise Wrong(
                f"{word} makes code for a GPU or a library; simulated GPUs have "
                "programs alone"
            )
        elif ALONE.fullmatch(word):
            pass
        elif WITH_VALUE.fullmatch(name):
            value(word, name)
        else:
            raise Wrong(f"the option {word!r} is not known")
    for library in linked:
        if LIBRARIES.fullmatch(library):
            raise Wrong(f"{library}: simulated GPUs do not have this library of CUDA's")
    return Command(sources, output, only, runs, flags, linked, [])


def _run(command: Sequence[str], folder: str | None) -> str:
    """The output of a program; what it complains of is shown."""
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
    """A compiler's messages without those of what a launch was made to.

    On the line of a launch columns are those of the rewritten text.
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
    """Without what the preprocessor has done."""
    return [flag for flag in flags if not flag.startswith(("-I", "-D", "-U"))]


def _check(path: Path, source: str) -> None:
    """Names what simulated GPUs do not have, with its line."""
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
        texts = {**dict.fromkeys(STUBS, ""), **_kernel_compiler.stubs()}
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
        made = scratch / Path(source).name  # debug information names it
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

    page = "4096" if platform.machine() == "x86_64" else "65536"
    with tempfile.TemporaryDirectory(prefix="pydevtensor-") as name:
        ends = [Path(name) / "begin.cpp", Path(name) / "end.cpp"]
        for path, text in zip(ends, ENDS, strict=True):
            path.write_text(text % {"page": page})
        first, last = (str(path) for path in ends)
        linked = [f for f in command.linked if not re.fullmatch(r"-lcud\w+", f)]
        words = [*compiler, *FLAGS, "-pie", *_of_the_compiler(command.flags)]
        words += [first, *parts, last, str(LIBRARY), *linked, "-lm", "-o", output]
        _run(words, folder)


def build(words: Sequence[str], folder: str | None = None) -> int:
    """Does what the command says, in a folder; gives its exit status."""
    from pydevtensor.cuda import _kernel_compiler

    command = _parsed(words)
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


def main(words: Sequence[str], folder: str | None = None) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    if words[0] in ("-V", "--version"):
        from pydevtensor import __version__

        print(f"pydevtensor {__version__}, for simulated GPUs, with CUDA 13.0's names")
        return 0
    try:
        return build(words, folder)
    except Wrong as error:
        if str(error):
            print(
                f"nvcc: {error}" if ": error:" not in str(error) else error,
                file=sys.stderr,
            )
        return 1
    except RuntimeError as error:  # there is no compiler
        print(f"nvcc: {str(error).removeprefix('compile_kernel(): ')}", file=sys.stderr)
        return 1
