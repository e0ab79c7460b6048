"""The zip archive of a checkpoint: records stored as they are, each with its CRC.

Nothing is unpacked into files, and only stored (not compressed) records are known,
which is all that PyTorch writes; so an archive never holds more than its own size.
"""

import os
import struct
import zipfile
import zlib
from contextlib import contextmanager
from typing import Any

CHUNK = 1 << 20  # small enough to stay in a cache between its checksum and its copy
ALIGNMENT = 64  # of a record's bytes in the file, as PyTorch's

_DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    struct.error,
    ValueError,
    OverflowError,
    NotImplementedError,
    IndexError,
)


def damaged(name, why):
    """The error for a file that is not whole."""
    return RuntimeError(
        f"load(): {name} is damaged: {why}; fetch or save the file again"
    )


class Reader:
    """The records of an archive in a seekable binary file."""

    def __init__(self, file, name):
        self.file, self.name = file, name
        try:
            with zipfile.ZipFile(file) as archive:
                infos = archive.infolist()
                end = archive.start_dir
        except _DAMAGED as error:
            raise damaged(name, f"no zip archive can be read ({error})") from None
        self._records: dict[str, zipfile.ZipInfo] = {}
        place = -1
        for info in sorted(infos, key=lambda info: info.header_offset):
            if info.filename in self._records:
                raise damaged(name, f"it has two records {info.filename!r}")
            if info.header_offset < place:
                raise damaged(name, f"record {info.filename!r} overlaps another")
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
                raise RuntimeError(
                    f"load(): record {info.filename!r} of {name} is compressed or "
                    "encrypted; give a file as save() or torch.save() writes it"
                )
            if info.file_size != info.compress_size:
                raise damaged(name, f"record {info.filename!r} has two sizes")
            place = info.header_offset + 30 + info.file_size
            if info.header_offset < 0 or place > end:
                raise damaged(name, f"record {info.filename!r} reaches past its end")
            self._records[info.filename] = info
        tops = [
            n for n in self._records if n.count("/") == 1 and n.endswith("/data.pkl")
        ]
        if len(tops) != 1:
            raise RuntimeError(
                f"load(): {name} is a zip file without one data.pkl, so it is no "
                "checkpoint; give a file written by save() or torch.save()"
            )
        self.top = tops[0][: -len("data.pkl")]

    def __contains__(self, record):
        return self.top + record in self._records

    def size(self, record):
        """The bytes of a record; KeyError where there is none."""
        return self._records[self.top + record].file_size

    def read_into(self, record, target):
        """Fill a writable memoryview of the record's size."""
        info = self._records[self.top + record]
        self.file.seek(info.header_offset)
        header = self.file.read(30)
        if len(header) != 30 or header[:4] != b"PK\3\4":
            raise damaged(self.name, f"record {record!r} has no header")
        name_size, extra_size = struct.unpack("<HH", header[26:30])
        if self.file.read(name_size) != info.orig_filename.encode():
            raise damaged(
                self.name, f"record {record!r} has another name in its header"
            )
        self.file.seek(extra_size, os.SEEK_CUR)
        crc, place, size = 0, 0, info.file_size
        while place < size:
            part = target[place : place + CHUNK]
            count = _read_some(self.file, part)
            if not count:
                raise damaged(self.name, f"record {record!r} is cut short")
            crc = zlib.crc32(part[:count], crc)
            place += count
        if crc != info.CRC:
            raise damaged(self.name, f"the checksum of record {record!r} is wrong")

    def read(self, record):
        data = bytearray(self.size(record))
        self.read_into(record, memoryview(data))
        return bytes(data)


def _read_some(file, part):
    """Fill a memoryview as far as one read goes, also from files without readinto."""
    if hasattr(file, "readinto"):
        return file.readinto(part)
    data = file.read(len(part))
    part[: len(data)] = data
    return len(data)


class Writer:
    """An archive that grows record by record in a binary file."""

    def __init__(self, file):
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._file: Any = self._zip.fp  # which counts, also where file cannot tell

    def write(self, record, data):
        """Add a record of a bytes-like object."""
        data = memoryview(data).cast("B")
        # A fixed date: the same values give the same file.
        info = zipfile.ZipInfo("archive/" + record, (1980, 1, 1, 0, 0, 0))
        large = data.nbytes * 1.05 > zipfile.ZIP64_LIMIT
        start = self._file.tell() + 30 + len(info.filename) + (20 if large else 0) + 4
        pad = -start % ALIGNMENT
        info.extra = struct.pack("<2sH", b"FB", pad) + b"Z" * pad
        info.file_size = data.nbytes
        with self._zip.open(info, "w", force_zip64=large) as target:
            for place in range(0, data.nbytes, CHUNK):
                target.write(data[place : place + CHUNK])

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self._zip.close()
        else:  # half an archive is not closed, or it would look like a whole one
            self._zip.fp = None


@contextmanager
def replacing(path):
    """A new file that takes the path's place if all goes well, else leaves no trace."""
    path = os.path.realpath(os.fspath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        if os.path.isdir(path):
            raise IsADirectoryError(
                f"save(): {path!r} is a folder; give the name of a file in it"
            )
        with open(path, "wb") as file:  # a pipe or a device has no old content to keep
            yield file
        return
    folder, base = os.path.split(path)
    if isinstance(base, bytes):
        folder, base = os.fsdecode(folder), os.fsdecode(base)
    temporary = os.path.join(folder, f".{base[:100]}.{os.urandom(6).hex()}.tmp")
    try:
        file = open(temporary, "xb")  # noqa: SIM115 - closed below, before the rename
    except FileNotFoundError:
        raise RuntimeError(
            f"save(): the parent folder {folder!r} does not exist; make it first"
        ) from None
    try:
        with file:
            yield file
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
