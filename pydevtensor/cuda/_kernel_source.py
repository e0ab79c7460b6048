"""Scans the CUDA C of a program for kernels, variables and unsupported words.

The compiler reports the types of parameters (csrc/sim/module.h); their names, and which
kernels there are, come from the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pydevtensor._signatures import split

# Headers whose contents every kernel has.
BUILT_IN = re.compile(
    r"(cuda_runtime(_api)?|cuda|device_launch_parameters|device_functions|"
    r"device_atomic_functions|vector_types|vector_functions|math_functions|math_constants|assert)\.h|"
    r"cassert"
)
LACKING_HEADER = re.compile(
    r"(mma|cuda_fp[468]|curand\w*|cub|thrust|cute|cutlass|cublas\w*|cuda|nvToolsExt|"
    r"texture\w*|surface\w*|cuda_pipeline\w*|cuda_awbarrier\w*)(\.h|/.*)"
)
# Patterns of what simulated GPUs do not support, each with the message.
LACKING = {
    r"__asm__|\basm\b": "PTX assembly (asm); write it in CUDA C",
    r"\b(tex[123]D\w*|texture\s*<|cudaTextureObject_t|surf[123]D\w*|"
    r"cudaSurfaceObject_t)": "textures and surfaces; read a pointer",
    r"\b(cudaArray(_t)?|cudaMalloc\w*Array|cudaMemcpy\w*Array\w*|"
    r"cudaChannelFormat\w*)\b": "arrays of textures; use cudaMallocPitch or "
    "cudaMalloc3D",
    r"<<<": "launches in the source; it takes kernels alone, and calling the Kernel "
    "launches one",
    r"\bcuda(Malloc|Memcpy|Memset|Free|DeviceSynchronize|GetLastError|Launch)\w*": ""
    "the CUDA runtime's functions; allocate and copy with tensors",
    r"\b(cudaLaunchCooperative\w*)": "cooperative launches; end the kernel where "
    "blocks wait for one another, and launch a second one",
    r"\b(cudaMallocFromPool\w*|cudaMemPool\w*|cudaDeviceGetDefaultMemPool)": "memory "
    "pools; use cudaMalloc and cudaFree",
    r"\b(wmma|nvcuda)\b": "tensor cores (wmma); multiply with ordinary floats",
    r"\bcuda::": "libcu++ (cuda::); use CUDA C's own functions",
    r"\b__managed__\b": "managed memory; pass a tensor",
    r"\b(__cluster_dims__|this_cluster|cluster_group)\b": "clusters of blocks",
    r"\b(this_multi_grid|multi_grid_group)\b": "grids of several GPUs; launch a kernel "
    "on each",
    r"\b__pipeline_\w+": "pipelines of copies; use memcpy_async() of cooperative "
    "groups",
    r"\b(throw|try|catch)\b": "exceptions, nor have other GPUs; give an error back as "
    "a value",
    r"(?<![\w.>:])(malloc|calloc|free)\s*\(|\bnew\s+\w": "memory that a kernel "
    "allocates; pass a tensor",
    r"(?<![\w.>:])(abort|_?exit)\s*\(": "abort() and exit(); return, or call __trap()",
    r"\b(__shfl(_up|_down|_xor)?|__ballot|__any|__all)\s*\(": "shuffles and votes "
    "without a mask, which CUDA has removed; use those that end in _sync",
}
# Threads of a kernel with one of these may wait for one another.
WAITS = re.compile(
    r"\b(__syncthreads\w*|__syncwarp|__\w+_sync|__activemask|cooperative_groups|"
    r"volatile|atomicCAS\w*|atomicExch\w*|__threadfence\w*|__nanosleep)\b"
)
# Arrays that exist once for all blocks of the simulator.
FIXED = re.compile(r"(?<!extern )\b__shared__\b|\b__syncthreads_\w+")
DIRECTIVE = r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*"
DYNAMIC = re.compile(
    r"\bextern\b([^;{}()]*?)\b__shared__\b([^;{}]*?)\b(\w+)\s*\[\s*\]((?:\[[^\]]*\])*)\s*;"
)
ALIGNED = re.compile(r"\b(__align__|alignas)\s*\([^()]*(\([^()]*\))?[^()]*\)")


class Found(NamedTuple):
    """A kernel in the source."""

    name: str
    parameters: list[str]  # their text
    max_threads: int | None  # of __launch_bounds__
    template: bool
    plain: bool  # its name is visible at the end of the source


class Lacking(Exception):
    """The source has something that simulated GPUs do not support."""

    def __init__(self, what: str, line: int) -> None:
        self.what, self.line = what, line


def blank(source: str) -> str:
    """The source with comments, strings and characters replaced by blanks."""

    literal = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    return re.sub(rf"//[^\n]*|/\*.*?(?:\*/|\Z)|{literal}", _blanks, source, flags=re.S)


def _blanks(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def macros_make_kernels(source: str) -> bool:
    """Whether macros may define kernels that kernels() does not find."""
    directives = re.findall(DIRECTIVE, blank(source), re.M)
    return any("__global__" in each for each in directives)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


# The words that whole programs may use.
_OF_PROGRAMS = (
    *("<<<", r"\bcuda(", r"\b__managed__", r"\b(throw|", r"(?<![\w.>:])(malloc|"),
    r"(?<![\w.>:])(abort|",
)


def _initialized(code: str) -> Iterator[int]:
    """Where a __shared__ variable is that has an initial value."""
    code = re.sub(DIRECTIVE, _blanks, code, flags=re.M)
    for found in re.finditer(r"\b__shared__\b((?:\[[^\]]*\]|[^;{}=\[])*)(=|\{)", code):
        is_type = re.search(r"\b(struct|union|class)\b", found[1])
        if found[2] == "=" or not is_type:
            yield found.start()


def check(source: str, whole: bool = False) -> None:
    """Raise Lacking for the first thing that simulated GPUs do not support.

    whole: the source is a program, with host code.
    """
    code = blank(source)
    faults = [
        (
            at,
            "initial values of __shared__ variables, nor have other GPUs; let a "
            "thread write them, and put __syncthreads() after it",
        )
        for at in _initialized(code)
    ]
    faults += [
        (found.start(), what)
        for word, what in LACKING.items()
        if not (whole and word.startswith(_OF_PROGRAMS))
        and (found := re.search(word, code))
    ]
    faults += [
        (at, f"the header {name}; of CUDA's functions it has those without one")
        for at, _, name in includes(source, code)
        if LACKING_HEADER.fullmatch(name)
    ]
    if faults:
        at, what = min(faults)
        raise Lacking(what, _line(source, at))


def includes(source: str, code: str) -> Iterator[tuple[int, int, str]]:
    """The begin, the end and the name of each #include."""
    pattern = r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]"
    for found in re.finditer(pattern, source, re.M):
        if code[found.start() : found.start(1) - 1].strip():
            yield found.start(), found.end(), found[1].strip()


# Types in mangled names.
_MANGLED = dict(
    zip(
        "bcahstijlmxyfd",
        (
            *(
                "bool",
                "char",
                "signed char",
                "unsigned char",
                "short",
                "unsigned short",
            ),
            *("int", "unsigned int", "long", "unsigned long", "long long"),
            *("unsigned long long", "float", "double"),
        ),
        strict=True,
    )
)


def unmangled(name: str) -> str:
    """The kernel that a mangled name such as _Z5scaleIfEvPT_i has, here scale<float>.

    Other names are returned unchanged, also those of templates with arguments that are
    not types of numbers, structs or integers.
    """

    def identifier(at: int) -> tuple[str, int]:
        length = re.match(r"\d+", name[at:])
        if not length:
            raise ValueError
        begin = at + length.end()
        return name[begin : begin + int(length[0])], begin + int(length[0])

    def argument(at: int) -> tuple[str, int]:
        literal = re.compile(r"L[a-z](n?)(\d+)E").match(name, at)
        if literal:
            return ("-" if literal[1] else "") + literal[2], literal.end()
        if name[at : at + 1] == "P":
            text, at = argument(at + 1)
            return text + "*", at
        if name[at : at + 1] in _MANGLED:
            return _MANGLED[name[at]], at + 1
        return identifier(at)

    try:
        if not name.startswith("_Z"):
            return name
        nested = name.startswith("_ZN")
        text, at = identifier(2 + nested)
        while nested and name[at : at + 1].isdigit():
            more, at = identifier(at)
            text += f"::{more}"
        given = []
        if name[at : at + 1] == "I":
            at += 1
            while name[at : at + 1] != "E":
                each, at = argument(at)
                given.append(each)
            text += f"<{', '.join(given)}>"
        return text
    except ValueError:
        return name


def spelled(name: str) -> str:
    """A name without blanks, for comparisons."""
    text = re.sub(r"\bunsigned\b(?! *(int|char|short|long))", "unsigned int", name)
    return re.sub(r"\s|^::", "", text.replace("__half", "half"))


def _conditional(code: str) -> Iterator[tuple[int, int]]:
    """The begin and the end of each outermost #if."""
    depth, start = 0, 0
    for found in re.finditer(r"^[ \t]*#[ \t]*(if|endif)", code, re.M):
        if found[1] == "if":
            start = start if depth else found.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield start, found.end()


def depth(code: str, at: int) -> int:
    """How many braces are open, but for those of extern "C"."""
    opened: list[str] = []
    for found in re.finditer(r"\bextern\s*\{|[{}]", code[:at]):
        if found[0] != "}":
            opened.append(found[0])
        elif opened:
            opened.pop()
    return opened.count("{")


def _matching(text: str, at: int) -> int:
    """The offset after the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return i
    return len(text)


def _parameters(text: str) -> list[str]:
    """The texts of the parameters in a list."""
    each = [" ".join(part.split()) for part in split(text, "(<[{", ")>]}")]
    return [] if each == ["void"] else each


def kernels(source: str) -> list[Found]:
    """All kernels, in order. A later definition replaces an earlier one."""
    code = blank(source)
    conditional = [*_conditional(code)]
    bounds: dict[int, int] = {}  # by their ends

    def remember(found: re.Match[str]) -> str:
        if found[1] == "__launch_bounds__":
            number = re.match(r"\s*(\d+)\s*[,)]", found[2] + ")")
            bounds[found.end()] = int(number[1]) if number else 0
        return re.sub(r"[^\n]", " ", found[0])

    code = re.sub(DIRECTIVE, _blanks, code, flags=re.M)
    pattern = r"\b(__launch_bounds__|__attribute__)\s*\(((?:[^()]|\([^()]*\))*)\)"
    code = re.sub(pattern, remember, code)
    found_by_name: dict[str, Found] = {}
    for found in re.finditer(r"\b__global__\b[^;{}()]*?\b(\w+)\s*\(", code):
        start, opens = found.start(), found.end() - 1
        closes = _matching(code, opens)
        before = max(code.rfind(c, 0, start) for c in ";}{") + 1
        number = [n for at, n in bounds.items() if before <= at <= opens]
        within = any(a <= start < b for a, b in conditional)
        found_by_name[found[1]] = Found(
            found[1],
            _parameters(code[opens + 1 : closes]),
            number[0] if number and number[0] else None,
            bool(re.search(r"\btemplate\s*<", code[before:start])),
            not within and depth(code, start) == 0,
        )
    return [*found_by_name.values()]


def variables(source: str, words: str = "device|constant") -> list[str]:
    """The __device__ and __constant__ variables that are visible at the end."""
    code = blank(source)
    conditional = [*_conditional(code)]
    code = re.sub(ALIGNED, _blanks, re.sub(DIRECTIVE, _blanks, code, flags=re.M))
    names = []
    for found in re.finditer(rf"\b__(?:{words})__\b([^;{{}}()=]*[;={{])", code):
        start = found.start()
        before = code[max(code.rfind(c, 0, start) for c in ";}{") + 1 : start]
        if (
            depth(code, start)
            or any(a <= start < b for a, b in conditional)
            or re.search(r"\b(template|extern)\b", before)
        ):
            continue
        whole = code[found.start(1) : code.find(";", found.end() - 1)]
        for each in split(whole, "(<[{", ">)]}"):
            name = re.match(r".*?\b(\w+)\s*(?:\[[^\]]*\]\s*)*(?:[={]|$)", each, re.S)
            if name:
                names.append(name[1])
    return names


def constants(source: str) -> list[str]:
    """The __constant__ variables."""
    return variables(source, "constant")


def host_variables(source: str) -> list[str]:
    """Variables of the host outside of functions, if they are declared in a plain way,
    such as `static int n = 3;`."""
    code = re.sub(DIRECTIVE, _blanks, blank(source), flags=re.M)
    kinds = r"bool|char|short|int|long|float|double|size_t|u?int\d+_t|unsigned|signed"
    pattern = (
        rf"(?:^|[;}}])\s*(?:(?:static|volatile|{kinds})\s+)+\**\s*(\w+)\s*"
        r"(?:\[[^\]]*\]\s*)*[=;]"
    )
    return [
        found[1]
        for found in re.finditer(pattern, code)
        if found[1] not in kinds and not depth(code, found.start(1))
    ]


def prepared(source: str) -> str:
    """The source for the host's compiler, line by line."""
    code = blank(source)
    changes = [
        (begin, end, "")
        for begin, end, name in includes(source, code)
        if BUILT_IN.fullmatch(name)
    ]
    # __shared__ is static itself.
    for found in re.finditer(r"\bstatic\b(?=[^;{}()=]*\b__shared__\b)", code):
        changes.append((found.start(), found.end(), " "))
    for found in re.finditer(r"\b__shared__\b[^;{}()=]*?\bstatic\b", code):
        changes.append((found.end() - len("static"), found.end(), " "))
    for found in DYNAMIC.finditer(code):
        kind = ALIGNED.sub(" ", source[found.start(1) : found.end(2)])
        kind = " ".join(kind.replace("__shared__", " ").split())
        lines = "\n" * found[0].count("\n")
        name, rest = found[3], found[4]
        if depth(code, found.start()):
            text = f"{kind} (*{name}){rest}" if rest else f"{kind} *{name}"
            cast = f"({kind} (*){rest})" if rest else f"({kind} *)"
            text += f" = {cast}sim::dynamic_shared_memory();"
        else:
            text = (
                f"static sim::DynamicShared<{kind}{' ' + rest if rest else ''}> {name};"
            )
        changes.append((found.start(), found.end(), text + lines))
    for begin, end, text in sorted(changes, reverse=True):
        source = source[:begin] + text + source[end:]
    return source


def base_name(name: str) -> str:
    """A kernel's name in the source: without a namespace and a template's arguments."""
    return re.split(r"[<\s]", name)[0].rpartition("::")[2]
