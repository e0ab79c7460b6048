"""What a shared library of 64 bits, little-endian, says of itself in ELF's headers."""

from __future__ import annotations

import struct
from pathlib import Path

LOAD, DYNAMIC, GNU_STACK, GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552
NEEDED, STRTAB, RPATH, TEXTREL, RUNPATH = 1, 5, 15, 22, 29
FLAGS, FLAGS_1 = 30, 0x6FFFFFFB
EXECUTE, WRITE = 1, 2
DYNSYM = 11


class Library:
    """segments: (type, flags); dynamic: (tag, value); needed: names of libraries;
    defines and lacks: names of symbols that others see or that others have to give."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        if data[:6] != b"\x7fELF\2\1":
            raise ValueError(f"{path} is not an ELF file of 64 bits, little-endian")
        place, count = *struct.unpack_from("<Q", data, 32), _count(data, 56)
        headers = [
            struct.unpack_from("<IIQQQQQQ", data, place + 56 * i) for i in range(count)
        ]
        self.segments = [(kind, flags) for kind, flags, *_ in headers]

        def offset(address: int) -> int:
            for kind, _, start, at, _, size, *_ in headers:
                if kind == LOAD and at <= address < at + size:
                    return start + address - at
            raise ValueError(f"{path} has nothing at address {address:#x}")

        start, size = next((h[2], h[5]) for h in headers if h[0] == DYNAMIC)
        self.dynamic = list(struct.iter_unpack("<qQ", data[start : start + size]))
        strings = offset(dict(self.dynamic)[STRTAB])

        def text(index: int) -> str:
            return data[strings + index : data.index(0, strings + index)].decode()

        self.needed = [text(value) for tag, value in self.dynamic if tag == NEEDED]
        self.defines: set[str] = set()
        self.lacks: set[str] = set()
        place, count = *struct.unpack_from("<Q", data, 40), _count(data, 60)
        for i in range(count):
            section = struct.unpack_from("<IIQQQQ", data, place + 64 * i)
            if section[1] == DYNSYM:
                table = data[section[4] : section[4] + section[5]]
                for name, _, _, where, _, _ in struct.iter_unpack("<IBBHQQ", table):
                    if name:
                        (self.defines if where else self.lacks).add(text(name))


def _count(data: bytes, place: int) -> int:
    (count,) = struct.unpack_from("<H", data, place)
    return int(count)
