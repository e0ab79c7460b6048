"""The variables and the lines of a compiled library of checked kernels.

Reads ELF files of 64 bits and little endian, and the lines of DWARF 4.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple


class Symbol(NamedTuple):
    """A variable, by its address from the library's base on."""

    low: int
    bytes: int
    name: str


class Row(NamedTuple):
    """The code from an address on is of a line; file None: of none."""

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

    def variables(self) -> list[Symbol]:
        """The symbols of memory that can be written, in the order of addresses."""
        at, size = self._sections.get(".symtab", (0, 0))
        texts = self._sections.get(".strtab", (0, 0))[0]
        found = []
        for entry in range(at, at + size, 24):
            name, info, _, section, value, length = struct.unpack_from(
                "<IBBHQQ", self.data, entry
            )
            writable = section < len(self._headers) and self._headers[section][2] & 1
            if info & 15 == 1 and length and writable:
                found.append(Symbol(value, length, self._text(texts + name)))
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
        # Where code ends and other code begins, the latter counts.
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
            else:  # those that have no effect here
                for _ in range(lengths[code - 1]):
                    at = _number(data, at)[1]


def _number(data: bytes, at: int, signed: bool = False) -> tuple[int, int]:
    """A number of variable length, and where the next begins."""
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

    Code of a file of ours that the compiler has put into the program's counts as the
    program's line before it.
    """
    i = bisect_right(rows, address, key=lambda row: row.address) - 1
    while i >= 0 and rows[i].file is not None:
        path = f"/{rows[i].file}"
        for file in files:
            if path.endswith(f"/{file}"):
                return file, rows[i].line
        i -= 1
    return None
