"""The zip archive of a checkpoint, and files that are replaced as a whole.

Records are stored, not compressed, as PyTorch writes them, so an archive cannot claim
to hold more than its own size.
"""

import errno
import io
import os
import struct
import zipfile
import zlib
from contextlib import contextmanager, suppress
from typing import Any

CHUNK = 1 << 20  # stays in the cache between its checksum and its copy
ALIGNMENT = 64  # of a record's bytes in the file, as PyTorch's


def damaged(name, why):
    return RuntimeError(
        f"load(): {name} is damaged: {why}; fetch or save the file again"
    )


class Reader:
    """The records of an archive in a seekable binary file.

    zipfile reads the directory. read_into() reads the records: zipfile's own readers
    take 10 us each and copy every byte once more.
    """

    def __init__(self, file, name):
        self.file, self.name = file, name
        try:
            with zipfile.ZipFile(file) as archive:
                infos, end = archive.infolist(), archive.start_dir
        except (
            ArithmeticError,
            LookupError,
            NotImplementedError,
            ValueError,
            struct.error,
            zipfile.BadZipFile,
            zipfile.LargeZipFile,
        ) as error:
            raise damaged(name, f"it is not a whole zip archive ({error})") from None
        self._records: dict[str, zipfile.ZipInfo] = {}
        place = 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            record = repr(info.filename)
            if info.filename in self._records:
                raise damaged(name, f"it has two records {record}")
            if info.header_offset < place:
                raise damaged(name, f"record {record} overlaps another")
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
                raise RuntimeError(
                    f"load(): record {record} of {name} is compressed or encrypted; "
                    "give a file as save() or torch.save() writes it"
                )
            if info.file_size != info.compress_size:
                raise damaged(name, f"record {record} has two sizes")
            place = info.header_offset + 30 + info.file_size
            if place > end:
                raise damaged(name, f"record {record} ends past the end of the file")
            self._records[info.filename] = info
        tops = [
            n for n in self._records if n.count("/") == 1 and n.endswith("/data.pkl")
        ]
        if len(tops) != 1:
            raise RuntimeError(
                f"load(): {name} is a zip file without one data.pkl, so it is not a "
                "checkpoint; give a file written by save() or torch.save()"
            )
        self.top = tops[0].removesuffix("data.pkl")

    def __contains__(self, record):
        return self.top + record in self._records

    def size(self, record):
        return self._records[self.top + record].file_size

    def place(self, record):
        """Where in the file the bytes of a record begin; the file is there then."""
        info = self._records[self.top + record]
        self.file.seek(info.header_offset)
        header = self.file.read(30)
        if len(header) != 30 or header[:4] != b"PK\3\4":
            raise damaged(self.name, f"record {record!r} has no header")
        name_size, extra_size = struct.unpack("<HH", header[26:])
        if self.file.read(name_size) != info.orig_filename.encode():
            raise damaged(self.name, f"the header of record {record!r} names another")
        return self.file.seek(extra_size, os.SEEK_CUR)

    def read_into(self, record, target):
        """Fill a writable memoryview of the record's size."""
        self.place(record)
        info = self._records[self.top + record]
        crc = place = 0
        while place < info.file_size:
            part = target[place : place + CHUNK]
            count = self.file.readinto(part)
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


class _Whole:
    """A file whose write() takes all: one without a buffer may take a part.

    It needs write() alone.
    """

    def __init__(self, file):
        self._file = file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def flush(self):
        if hasattr(self._file, "flush"):
            self._file.flush()

    def write(self, data):
        rest = memoryview(data).cast("B")
        total = rest.nbytes
        while rest.nbytes:
            count = self._file.write(rest)
            if count is None and isinstance(self._file, io.RawIOBase):
                raise BlockingIOError(
                    errno.EAGAIN, "save(): the file does not block and is full"
                )
            if type(count) is not int:  # as of writers that do not say
                break
            if count <= 0:
                raise OSError(errno.ENOSPC, "save(): the file took no byte")
            rest = rest[count:]
        return total


class Writer:
    """An archive that grows record by record in a binary file."""

    def __init__(self, file):
        self._zip = zipfile.ZipFile(
            _Whole(file), "w", zipfile.ZIP_STORED, allowZip64=True
        )
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
        else:  # closing half an archive would make it look like a whole one
            self._zip.fp = None


@contextmanager
def replacing(path):
    """A new file that is renamed to path on success and removed on failure."""
    path = os.path.realpath(os.fspath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        if os.path.isdir(path):
            raise IsADirectoryError(
                f"save(): {path!r} is a folder; give the name of a file in it"
            )
        with open(path, "wb") as file:  # a pipe or device: nothing to keep
            yield file
        return
    folder, base = os.path.split(path)
    if isinstance(base, bytes):
        folder, base = os.fsdecode(folder), os.fsdecode(base)
    temporary = os.path.join(folder, f".{base[:100]}.{os.urandom(6).hex()}.tmp")
    # As private as the file that it replaces.
    access = 0o600 if os.path.exists(path) else 0o666
    try:  # an interrupt may come anywhere
        try:
            file = open(  # noqa: SIM115 - closed below, before the rename
                temporary, "xb", opener=lambda name, flags: os.open(name, flags, access)
            )
        except FileNotFoundError:
            raise RuntimeError(
                f"save(): the parent folder {folder!r} does not exist; make it first"
            ) from None
        with file:
            yield file
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
