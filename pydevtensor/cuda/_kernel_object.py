"""Reads variables and line tables of a compiled library of kernels.

The formats are ELF of 64 bits, little endian, and DWARF 4.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pydevtensor.cuda import _kernel_source


class Symbol(NamedTuple):
    """A variable. Its address is relative to the library's base."""

    low: int
    bytes: int
    name: str
    valued: bool = False  # the file has its first value, which is not 0


class Row(NamedTuple):
    """A row of a line table: the line of the code from an address on; or no file."""

    address: int
    file: str | None
    line: int


class Object:
    """A library, from the bytes of its file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        at, size, n, names = struct.unpack_from("<Q10xHHH", data, 0x28)
        headers = [
            struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(n)
        ]
        texts = headers[names][4]
        self._sections = {self._text(texts + h[0]): (h[4], h[5]) for h in headers}
        self._headers = headers
        self.end = max((h[3] + h[5] for h in headers if h[2] & 2), default=0)

    def _text(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode(errors="replace")

    def runs_when_loaded(self) -> bool:
        """Whether an object file has constructors or destructors.

        The instrumentation's, whose priority is below 100, do not count.
        """
        late = re.compile(r"\.(init_array(\.0*[1-9]\d\d+)?|fini_array.*|[cd]tors.*)")
        return any(map(late.fullmatch, self._sections))

    def line_when_loaded(self, file: str) -> int:
        """The first line of a source with such code; 0: none."""
        begins = r"_GLOBAL__sub_I|__cxx_global_var_init|.*static_initialization_and"
        rows = self.lines()
        for low, size, name, _ in self.symbols(2):
            for row in rows if re.match(begins, name) else ():
                if low <= row.address < low + size and (row.file or "").endswith(file):
                    return row.line
        return 0

    def variables(self) -> list[Symbol]:
        """The symbols of writable memory, in the order of addresses."""
        return self.symbols(1)

    def symbols(self, kind: int) -> list[Symbol]:
        """The symbols of writable memory (kind 1), or of functions (kind 2)."""
        at, size = self._sections.get(".symtab", (0, 0))
        texts = self._sections.get(".strtab", (0, 0))[0]
        found = []
        for entry in range(at, at + size, 24):
            name, info, _, section, value, length = struct.unpack_from(
                "<IBBHQQ", self.data, entry
            )
            known = section < len(self._headers)
            has_bytes, flags = self._headers[section][1:3] if known else (0, 0)
            if info & 15 == kind and length and (flags & 1 or kind != 1):
                word = self._text(texts + name)
                found.append(Symbol(value, length, word, has_bytes == 1))
        return sorted(found)

    def lines(self) -> list[Row]:
        """The rows of all line tables, in the order of addresses."""
        at, size = self._sections.get(".debug_line", (0, 0))
        rows: list[Row] = []
        end = at + size
        while at < end:
            length = struct.unpack_from("<I", self.data, at)[0]
            rows += self._unit(at + 4, at + 4 + length)
            at += 4 + length
        # Where code ends and other code begins, take the latter.
        return sorted(rows, key=lambda row: (row.address, row.file is not None))

    def _unit(self, at: int, end: int) -> Iterator[Row]:
        data = self.data
        version, header = struct.unpack_from("<HI", data, at)
        if version != 4:
            return
        program = at + 6 + header
        shortest, _, _, base, span, first = struct.unpack_from("<BBBbBB", data, at + 6)
        lengths = data[at + 12 : at + 11 + first]
        at += 11 + first
        folders = [""]
        while data[at]:
            folders.append(self._text(at) + "/")
            at = data.index(b"\0", at) + 1
        at += 1
        files = [""]
        while data[at]:
            name = self._text(at)
            folder, at = _number(data, data.index(b"\0", at) + 1)
            files.append(folders[folder] + name)
            for _ in range(2):
                at = _number(data, at)[1]
        at = program
        address, file, line = 0, 1, 1
        while at < end:
            code = data[at]
            at += 1
            if code >= first:
                code -= first
                address += code // span * shortest
                line += base + code % span
                yield Row(address, files[file], line)
            elif code == 0:
                length, at = _number(data, at)
                if data[at] == 1:
                    yield Row(address, None, 0)
                    address, file, line = 0, 1, 1
                elif data[at] == 2:
                    address = struct.unpack_from("<Q", data, at + 1)[0]
                at += length
            elif code == 1:
                yield Row(address, files[file], line)
            elif code == 2:
                step, at = _number(data, at)
                address += step * shortest
            elif code == 3:
                step, at = _number(data, at, signed=True)
                line += step
            elif code == 4:
                file, at = _number(data, at)
            elif code == 8:
                address += (255 - first) // span * shortest
            elif code == 9:
                address += struct.unpack_from("<H", data, at)[0]
                at += 2
            else:  # operations that have no effect here
                for _ in range(lengths[code - 1]):
                    at = _number(data, at)[1]


def _number(data: bytes, at: int, signed: bool = False) -> tuple[int, int]:
    """A number of variable length (LEB128), and the offset after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if signed and byte & 64:
        value -= 1 << shift
    return value, at


def place(rows: list[Row], address: int, files: set[str]) -> tuple[str, int] | None:
    """The file and the line of the code at an address.

    Inlined code of the library's headers counts as the program's line before it.
    """
    i = bisect_right(rows, address, key=lambda row: row.address) - 1
    while i >= 0 and rows[i].file is not None:
        path = f"/{rows[i].file}"
        for file in files:
            if path.endswith(f"/{file}"):
                return file, rows[i].line
        i -= 1
    return None


# --- first values


def first_value(made: Object, runs: bool, source: str, file: str) -> tuple[int, str]:
    """The line of a variable whose first value no GPU can give, and why; 0: none.

    runs: the library has code that runs when it is loaded.
    """
    line = made.line_when_loaded(file) if runs else 0
    patterns = []
    for symbol in made.variables():
        if guarded := re.match(r"_ZGVZ.*EL?\d+?([A-Za-z_]\w*)", symbol.name):
            patterns.append(rf"\b(static|__shared__)\b[^;{{}}]*\b{guarded[1]}\b")
    if runs:
        patterns.append(r"\b(constructor|destructor|init_priority)\b")
    for pattern in patterns:
        found = re.search(pattern, source)
        line = source.count("\n", 0, found.start()) + 1 if found else line
    if line:
        return line, (
            "code computes the first value of a variable, and GPUs run none before a "
            "kernel: give it a constant, or none"
        )
    shared = shared_names([source])
    for symbol in made.variables():
        name = plain_name(symbol.name)
        if symbol.valued and symbol.name.startswith("_ZZ") and name in shared:
            found = re.search(rf"\b__shared__\b[^;{{}}]*\b{name}\b", source)
            return source.count("\n", 0, found.start()) + 1 if found else 0, (
                f"the type of {name} gives it a first value, and __shared__ variables "
                "have none: let a thread write it, and put __syncthreads() after it"
            )
    return 0, ""


# --- shared memory


def shared_names(texts: Iterable[str]) -> set[str]:
    """The names of the variables that the texts declare as __shared__."""
    names = set()
    code = "\n".join(map(_kernel_source.blank, texts))
    macro = r"^[ \t]*#[ \t]*define[ \t]+(\w+)[^\n]*\b__shared__\b"
    words = "|".join(["__shared__", *re.findall(macro, code, re.M)])
    for found in re.finditer(rf"\b(?:{words})\b([^;{{}}]*)", code):
        declared = found[1].strip().removeprefix("(")
        for each in _kernel_source.split(declared, "([<{", ")>]}"):
            name = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=.*)?$", each.strip())
            if name:
                names.add(name[1])
    return names


def plain_name(symbol: str) -> str | None:
    """A variable's name in the program; None if the program does not declare it."""
    if re.search(r"3sim\d|dt_module|^_ZZ?GV|^_ZT|\bcompleted|^__|^_DYNAMIC", symbol):
        return None
    if not symbol.startswith("_Z"):
        return symbol
    if symbol.startswith("_ZZ"):
        symbol = symbol[symbol.rindex("E") :] if "E" in symbol else symbol
        found = re.match(r"E(?:L)?(\d+)", symbol)
        if not found:
            return symbol
        return symbol[found.end() : found.end() + int(found[1])]
    name, at = "", 0
    for found in re.finditer(r"\d+", symbol):
        if found.start() >= at:
            at = found.end() + int(found[0])
            name = symbol[found.end() : at]
    return name or symbol


def arrays(made: Object, texts: Iterable[str] | None = None) -> dict[str, int]:
    """The bytes of each function's __shared__ variables, by the function's symbol.

    Variables outside of functions are listed by their own names. texts say which
    variables are __shared__; without them all variables of functions count.
    """
    shared = None if texts is None else shared_names(texts)
    sums: dict[str, int] = {}
    for symbol in made.variables():
        name = plain_name(symbol.name)
        local = symbol.name.startswith("_ZZ")
        if name is None or (name not in shared if shared is not None else not local):
            continue
        where = name
        if local:
            where = re.sub("^_ZZ(N?)L", r"_Z\1", symbol.name)
            where = re.sub("^_ZZ", "_Z", where[: where.rindex("E")])
        sums[where] = sums.get(where, 0) + symbol.bytes
    return sums


def function(where: str) -> str:
    """The name of a function of arrays()."""
    name = _kernel_source.unmangled(where)
    found = re.match(r"_Z(\d+)(\w+)", name)
    return found[2][: int(found[1])] if found else _kernel_source.base_name(name)


def fixed(made: Object, texts: Iterable[str], kernel: str) -> int:
    """The bytes of a kernel's __shared__ arrays of fixed size.

    They include the arrays of functions that it calls.
    """
    texts = [*texts]
    sums = arrays(made, texts)
    base = _kernel_source.base_name(kernel)
    exact = [
        w
        for w in sums
        if _kernel_source.spelled(_kernel_source.unmangled(w))
        == _kernel_source.spelled(kernel)
    ]
    if not sums:
        return 0
    reached = _reached("\n".join(map(_kernel_source.blank, texts)), base)
    most: dict[str, int] = {}  # by function: the instances of a template differ
    for where, size in sums.items():
        name = function(where)
        if name == base and exact and where not in exact:
            continue
        if name == base or name in reached:
            most[name] = max(most.get(name, 0), size)
    return sum(most.values())


def _reached(code: str, name: str) -> set[str]:
    """The words of a function's text, and of the functions that it names."""
    words: dict[str, set[str]] = {}
    for found in re.finditer(r"\b(\w+)\s*\([^;{}]*\)[^;{}()]*\{", code):
        depth, at = 1, found.end()
        while depth and at < len(code):
            depth += (code[at] == "{") - (code[at] == "}")
            at += 1
        body = re.findall(r"\w+", code[found.end() : at])
        words.setdefault(found[1], set()).update(body)
    reached: set[str] = set()
    waiting = {name}
    while waiting:
        waiting = set().union(*(words.get(each, ()) for each in waiting)) - reached
        reached |= waiting
    return reached
