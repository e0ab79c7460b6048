"""Translates a whole program, preprocessed CUDA C, to C++.

A launch becomes a call of csrc/sim/program.h. A __device__ variable is put into a
section of its own. Line numbers do not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pydevtensor.cuda import _kernel_object, _kernel_source

# CUDA's words as macros.
WORDS = "".join(
    f"#define {name} {meaning}\n"
    for name, meaning in {
        "__global__": "",
        "__device__": "",
        "__constant__": "",
        "__managed__": "",
        "__shared__": "static",
        "__launch_bounds__(...)": "",
        "__device_variable__": '__attribute__((section("dt_device")))',
    }.items()
)
_MARKER = re.compile(r'^# (\d+) "([^"]*)"((?: \d)*)$', re.M)
_OPENS, _CLOSES = "([{", ")]}"
_TYPES = "(<[{", ")>]}"  # the same in types


class SourceError(Exception):
    """The source has something that cannot be compiled."""

    def __init__(self, what: str, file: str, line: int) -> None:
        super().__init__(f"{file}:{line}: error: {what}")


class _Kernel(NamedTuple):
    waits: bool  # its threads may wait for one another
    strides: bool  # a thread may use several elements
    single: bool  # its name is unambiguous


def rewritten(text: str, own: tuple[str, ...]) -> str:
    """The preprocessor's output as C++. own: the library's files."""
    user, others = _without_system(text, own)
    user = _kernel_source.prepared(user)
    code = _kernel_source.blank(user)
    code = re.sub(r"^#[^\n]*", lambda m: " " * len(m[0]), code, flags=re.M)
    changes = [*_variables(code), *_launches(user, code), *_named(user, code)]
    for found in re.finditer(r"(?<![\w(])__noinline__\b", code):
        changes.append((found.start(), found.end(), "__attribute__((noinline))"))
    enlisted = _bounded(code)
    if re.search(r"\bcudaLaunchKernel\b", code):
        enlisted += _enlisted(code)
    for begin, end, new in sorted(changes, reverse=True):
        user = user[:begin] + new + user[end:]
    user = re.sub(
        r"^#pragma dt_part (\d+)$", lambda m: others[int(m[1])], user, flags=re.M
    )
    return WORDS + user + enlisted


def _without_system(text: str, own: tuple[str, ...]) -> tuple[str, list[str]]:
    """Replaces each part from a system's header by a line; returns these parts, too."""
    parts: list[str] = []
    others: list[str] = []
    at = 0
    hidden = False
    for found in [*_MARKER.finditer(text), None]:
        end = found.start() if found else len(text)
        part = text[at:end]
        if part and hidden:
            parts.append(f"#pragma dt_part {len(others)}\n")
            others.append(part.rstrip("\n"))
        else:
            parts.append(part)
        if found:
            hidden = "3" in found[3].split() or found[2] in own
            hidden = hidden or found[2].startswith("<")
            at = end
    return "".join(parts), others


def place(user: str, at: int) -> tuple[str, int]:
    """The file and the line of an offset in preprocessed text."""
    file, line, begin = "", 1, 0
    for found in _MARKER.finditer(user, 0, at):
        file, line, begin = found[2], int(found[1]), found.end() + 1
    return file, line + user.count("\n", begin, at)


def _after_last(marks: str, code: str, at: int) -> int:
    """The offset behind the last of these characters before `at`."""
    return max(code.rfind(mark, 0, at) for mark in marks) + 1


def _close(code: str, at: int) -> int:
    """The offset of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in _OPENS) - (code[i] in _CLOSES)
        if not depth:
            return i
    return len(code)


# --- variables


def _variables(code: str) -> Iterator[tuple[int, int, str]]:
    """Replace __device__ and __constant__ before variables."""
    for found in re.finditer(
        r"\b(__device__|__constant__)(?![^;{}()]*\b__managed__\b)", code
    ):
        before = code[_after_last(";{}", code, found.start()) : found.start()]
        if "__device_variable__" in before or re.search(
            r"\b__(device|constant)__\b", before
        ):
            continue
        words = re.match(
            r"(?:[^;={}()\[]|__attribute__\s*\(\(.*?\)\)|alignas\s*\([^()]*\))*",
            code[found.end() :],
        )
        declared = words[0] if words else ""
        after = code[found.end() + len(declared) :][:2]
        is_function = after[:1] == "(" and not re.match(r"\(\s*\*", after)
        if is_function or re.search(
            r"\boperator\b|\b__global__\b|\b(struct|class|enum|union)\s+\w+\s*$",
            declared,
        ):
            continue
        if after[:1] not in "=;[{(" or not declared.strip():
            continue
        value = (before + declared).rpartition("*")[2]
        if re.search(r"\b(const|constexpr)\b", value):
            continue  # it never changes: the host's copy will do
        yield found.start(), found.end(), "__device_variable__"


# --- launches


def _kernels(code: str) -> tuple[dict[str, _Kernel], bool]:
    """All kernels by name, and whether another function may wait."""
    every: dict[str, _Kernel] = {}
    seen = set()
    rest, at = [], 0
    for found in re.finditer(r"\b__global__\b[^;{}()]*?\b(\w+)\s*\(", code):
        name = found[1]
        closes = _close(code, found.end() - 1)
        opens = re.compile(r"\s*\{").match(code, closes + 1)
        before = code[_after_last(";{}", code, found.start()) : found.start()]
        # A kernel may be declared before it is defined, and have default arguments,
        # which a launch leaves out.
        single = "template" not in before and (name, bool(opens)) not in seen
        single = single and "=" not in code[found.end() : closes]
        seen.add((name, bool(opens)))
        known = every.get(name)
        end = _close(code, opens.end() - 1) if opens else closes
        body = code[opens.end() : end] if opens else ""
        if opens:
            rest.append(code[at : found.start()])
            at = end
        defined = (name, True) in seen
        every[name] = _Kernel(
            not defined
            or _waits(body)
            or bool(known and opens is None and known.waits),
            not defined
            or "gridDim" in body
            or "dt_module_services.grid_dim" in body
            or bool(known and opens is None and known.strides),
            single and (known is None or known.single),
        )
    rest.append(code[at:])
    return every, _waits("\n".join(rest))


def _waits(code: str) -> bool:
    return bool(_kernel_source.WAITS.search(code))


def _launches(user: str, code: str) -> Iterator[tuple[int, int, str]]:
    if "<<<" not in code:
        return
    kernels, waits = _kernels(code)
    at = code.find("<<<")
    while at >= 0:
        begin = _callee(code, at)
        end = _end_of_configuration(code, at + 3)
        if begin < 0 or end < 0:
            file, line = place(user, at)
            raise SourceError(
                "this launch is not understood; write kernel<<<grid, block>>>(...)",
                file,
                line,
            )
        callee = " ".join(user[begin:at].split())
        inside = user[at + 3 : end]
        name = re.split(r"[<\s]", callee)[0].rpartition("::")[2]
        kernel = kernels.get(name, _Kernel(True, True, False))
        flags = f"{kernel.waits or waits:d}, {kernel.strides:d}"
        opens = code.index("(", end)
        arguments = user[opens + 1 : _close(code, opens)]
        lines = "\n" * (user.count("\n", begin, opens) - inside.count("\n"))
        # The arguments choose the instance of a template.
        which = f"[=](auto &...sim_a) {{ {callee}(sim_a...); }}"
        if kernel.single and callee.endswith(name):
            which = f"&{callee}"
        # A call that never runs, for the compiler's messages about the arguments.
        call = f"{callee}({' '.join(arguments.split())})"
        if "#" in arguments:
            call = "0"
        new = f'sim::launching("{callee}", {flags}, {inside}).with({which}){lines}'
        new = f"(false ? (void){call} : {new}({arguments}))"
        yield begin, opens + len(arguments) + 2, new
        at = code.find("<<<", end)


# Functions with a kernel as an argument, and its position.
_TAKE_KERNELS = {
    "cudaFuncSetAttribute": 0,
    "cudaFuncGetAttributes": 1,
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor": 1,
    "cudaOccupancyMaxPotentialBlockSize": 2,
}


def _named(user: str, code: str) -> Iterator[tuple[int, int, str]]:
    """Wrap the kernels in these calls in named()."""
    calls = [*re.finditer(rf"\b({'|'.join(_TAKE_KERNELS)})\s*\(", code)]
    kernels = _kernels(code)[0] if calls else {}
    for found in calls:
        end = _close(code, found.end() - 1)
        commas = [found.end() - 1, *_commas(code, found.end(), end), end]
        which = _TAKE_KERNELS[found[1]]
        begin, end = ([at + 1 for at in commas] + [0, 0])[which : which + 2]
        argument = user[begin : end - 1]
        name = next((w for w in re.findall(r"\w+", argument) if w in kernels), None)
        if name:
            yield begin, end - 1, f'sim::named("{name}", {argument.strip()})'


def _commas(code: str, at: int, end: int) -> Iterator[int]:
    """The commas outside of brackets, which include < and >."""
    depth = 0
    for i in range(at, end):
        depth += (code[i] in "([{<") - (code[i] in ")]}>")
        if code[i] == "," and not depth:
            yield i


def _callee(code: str, at: int) -> int:
    """The offset of the kernel's expression in the launch at `at`; -1: none."""
    i = at
    while i > 0 and code[i - 1].isspace():
        i -= 1
    if i and code[i - 1] == ">":
        depth = 0
        while i > 0:
            i -= 1
            depth += (code[i] in ">)]") - (code[i] in "<([")
            if not depth:
                break
    elif i and code[i - 1] in ")]":
        depth = 0
        while i > 0:
            i -= 1
            depth += (code[i] in _CLOSES) - (code[i] in _OPENS)
            if not depth:
                break
    found = re.search(r"(?:(?:::\s*)?(?:\w+\s*(?:::|\.|->)\s*)*\w+\s*)?\Z", code[:i])
    begin = found.start() if found else i
    return begin if code[begin:at].strip() else -1


def _end_of_configuration(code: str, at: int) -> int:
    """The offset of the >>> of a launch; -1: none. at: after <<<."""
    i = at
    while i < len(code):
        if code[i] in _OPENS:
            i = _close(code, i)
        elif code[i] in ";}":
            return -1
        elif code.startswith(">>>", i):
            opens = re.compile(r"\s*\(").match(code, i + 3)
            return i if opens else -1
        i += 1
    return -1


def _enlisted(code: str) -> str:
    """Code that registers the kernels by address, for cudaLaunchKernel."""
    kernels, waits = _kernels(code)
    plain = {
        each.name
        for each in _kernel_source.kernels(code)
        if each.plain and not each.template and each.name in kernels
    }
    return "".join(
        f'\nstatic const bool sim_knows_{name} = sim::enlist<&{name}>("{name}", '
        f"{kernels[name].waits or waits:d});"
        for name in sorted(plain)
    ) + ("\n" if plain else "")


def _bounded(code: str) -> str:
    """Code that sets the bounds of kernels: numbers, or constants that are known at
    the end of the file. A template's are known where launches name its arguments."""
    rows = {}
    for found in re.finditer(r"\b__launch_bounds__\s*\(", code):
        begin = _after_last(";{}()", code, found.start())
        before = code[begin : found.start()]
        template = re.search(r"\btemplate\s*<(.*)>", before, re.S)
        end = _close(code, found.end() - 1)
        bound = code[found.end() : next(_commas(code, found.end(), end), end)].strip()
        name = re.compile(r"[^;{}()]*?\b(\w+)\s*\(").match(code, end + 1)
        if not name or "__global__" not in code[begin : name.end()]:
            continue
        names = [
            re.sub(r"\s*=.*", "", each, flags=re.S).split()[-1:]
            for each in _kernel_source.split(template[1] if template else "", *_TYPES)
        ]
        within = _kernel_source.depth(code, begin)
        if not template and not (within and re.search(r"[A-Za-z_]", bound)):
            rows[name[1]] = bound
        for launch in re.finditer(rf"\b{name[1]}\s*<([^;{{}}]*?)>\s*<<<", code):
            given = _kernel_source.split(launch[1], *_TYPES)
            text = bound
            for [parameter], argument in zip(names, given, strict=False):
                text = re.sub(rf"\b{parameter}\b", f"({argument})", text)
            if re.fullmatch(r"[\d\s()*+/-]+", text):
                rows[" ".join(f"{name[1]}<{launch[1]}>".split())] = text
    return "".join(
        f'\nstatic const bool sim_bounds_{number} = sim::bounded("{name}", {bound});'
        for number, (name, bound) in enumerate(rows.items())
    ) + ("\n" if rows else "")


def arrays(parts: Sequence[str], folder: str | None) -> str:
    """A table for the simulator: the bytes of the static variables of each function.

    A kernel's are its __shared__ arrays. A template counts as its smallest instance.
    """
    found: dict[str, int] = {}
    for part in parts:
        path = Path(folder or "", part)
        data = path.read_bytes() if path.suffix == ".o" and path.is_file() else b""
        if not data.startswith(b"\x7fELF"):
            continue
        sums = _kernel_object.arrays(_kernel_object.Object(data))
        for where, size in sums.items():
            name = _kernel_object.function(where)
            found[name] = min(found.get(name, size), size)
    return " ".join(f'{{"{name}", {size}}},' for name, size in found.items())
