"""Tensors by name in the safetensors format: a JSON header, then the tensors' bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from io import BytesIO, FileIO
from math import prod
from typing import Any

from pydevtensor import _C
from pydevtensor._archive import replacing
from pydevtensor._names import publish as _publish

__all__ = ["SafetensorError", "load", "load_file", "safe_open", "save", "save_file"]

MAX_HEADER = 100_000_000  # bytes, as the format's own reader allows

# The format's names of element types, in the order of its own writer.
_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}
_CODES = {name: code for code, name in _NAMES.items()}


class SafetensorError(ValueError):
    """The file is damaged or not in the safetensors format."""


def _plan(tensors, metadata):
    """The header's bytes and the tensors in the order of the file."""
    if not isinstance(tensors, dict):
        raise ValueError(
            f"save_file(): tensors is a {type(tensors).__name__}; give a dict from "
            "names to tensors"
        )
    header: dict[Any, Any] = {}
    seen: dict[Any, Any] = {}
    if metadata is not None:
        if not isinstance(metadata, dict) or not all(
            isinstance(text, str) for pair in metadata.items() for text in pair
        ):
            raise ValueError("save_file(): metadata has to be a dict from str to str")
        header["__metadata__"] = metadata
    for name, tensor in tensors.items():
        if wrong := _unfit(name, tensor):
            raise ValueError(f"save_file(): {name!r} {wrong}")
        key = _C._storage_key(tensor)
        if tensor.numel() and key in seen:
            raise RuntimeError(
                f"save_file(): {seen[key]!r} and {name!r} share memory, which the "
                "format cannot express; clone() one of them, or leave it out"
            )
        seen[key] = name
    # Large elements first, so that each tensor is aligned in the file.
    ranks = {code: -rank for rank, code in enumerate(_NAMES)}
    order = sorted(tensors, key=lambda name: (ranks[_code(tensors[name])], name))
    place = 0
    for name in order:
        tensor = tensors[name]
        header[name] = {
            "dtype": _code(tensor),
            "shape": list(tensor.shape),
            "data_offsets": [place, place + tensor.nbytes],
        }
        place += tensor.nbytes
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"save_file(): a name is not valid text: {error}") from None
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ValueError(
            "save_file(): the names take more than 100 MB; use shorter ones"
        )
    return text, [tensors[name] for name in order]


def _unfit(name, tensor):
    """Why the format cannot have the tensor; None if it can."""
    if not isinstance(name, str) or name == "__metadata__":
        return "cannot be a tensor's name; give another str"
    if not isinstance(tensor, _C.Tensor):
        kind = type(tensor).__name__
        return f"is a {kind}; give tensors only, and use torch.save() for other values"
    if not tensor.is_contiguous():
        return "is not contiguous, and the format has no strides; use contiguous()"
    if _code(tensor) is None:
        dtype = tensor.dtype
        return (
            f"has {dtype}, which the format lacks; convert it with .to(torch.float32)"
        )
    return None


def _code(tensor):
    return _CODES.get(str(tensor.dtype).removeprefix("torch."))


def _write(file, text, tensors):
    file.write(len(text).to_bytes(8, "little") + text)
    for tensor in tensors:
        if tensor.numel():
            raw = _C._storage_bytes(tensor.detach())
            start = tensor.storage_offset() * tensor.element_size()
            file.write(memoryview(raw[start : start + tensor.nbytes].cpu()))


def save_file(
    tensors: Mapping[str, _C.Tensor],
    filename: Any,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors, a dict from names to Tensors, to the file filename.

    The tensors have to be contiguous and share no memory; the file does not record
    their devices. metadata: a dict from str to str. The file is written under a
    temporary name and then renamed, so a failed save leaves the old file.

    Raises ValueError, which names the tensor, for a wrong dict or one that is not
    contiguous, RuntimeError for shared memory.

    >>> torch.safetensors.save_file({'w': torch.tensor([1, 2])}, 'w.safetensors')
    >>> torch.safetensors.load_file('w.safetensors')
    {'w': tensor([1, 2])}
    """
    text, order = _plan(tensors, metadata)
    with replacing(filename) as file:
        _write(file, text, order)


def save(
    tensors: Mapping[str, _C.Tensor], metadata: Mapping[str, str] | None = None
) -> bytes:
    """Return the file that save_file() would write.

    tensors and metadata are those of save_file().

    >>> file = torch.safetensors.save({'w': torch.tensor([1.0, 2.0])})
    >>> torch.safetensors.load(file)
    {'w': tensor([1., 2.])}
    """
    text, order = _plan(tensors, metadata)
    file = BytesIO()
    _write(file, text, order)
    return file.getvalue()


def load_file(filename: Any, device: Any = "cpu") -> dict[str, _C.Tensor]:
    """Read the file filename into a dict from names to tensors, on the device.

    Raises SafetensorError, a ValueError, for a damaged file or another format.

    >>> torch.safetensors.save_file({'w': torch.tensor([1, 2])}, 'w.safetensors')
    >>> torch.safetensors.load_file('w.safetensors')['w']
    tensor([1, 2])
    """
    with open(os.fspath(filename), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return _read(file, size, _C.device(device))


def load(data: Any) -> dict[str, _C.Tensor]:
    """Read a file given as data, bytes, onto the CPU.

    See also load_file().

    >>> torch.safetensors.load(torch.safetensors.save({'w': torch.tensor([1, 2])}))
    {'w': tensor([1, 2])}
    """
    file = BytesIO(data)
    return _read(file, file.seek(0, os.SEEK_END), _C.device("cpu"))


def _bad(why):
    return SafetensorError(f"load_file(): {why}; fetch or save the file again")


def _no_duplicates(pairs):
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name occurs twice")
    return out


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def _read_header(file, size):
    """Name, dtype, shape, begin and end of each tensor, in the order of the bytes."""
    length = int.from_bytes(file.read(8), "little")
    if not length <= min(MAX_HEADER, size - 8):
        raise _bad(f"the header should have {length} bytes, and the file has {size}")
    text = file.read(length)
    if not text.startswith(b"{"):
        raise _bad("the header does not begin with '{'")
    try:
        header = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constant,
        )
    except (ValueError, RecursionError) as error:
        raise _bad(f"the header cannot be read: {error}") from None
    metadata = header.pop("__metadata__", {})
    if type(metadata) is not dict or not all(
        type(value) is str for value in metadata.values()
    ):
        raise _bad("its metadata is not a dict of strings")
    entries = [_entry(name, entry) for name, entry in header.items()]
    entries.sort(key=lambda entry: entry[3:])
    place = 0
    for name, _, _, begin, end in entries:
        if begin != place:
            raise _bad(f"{name!r} begins at byte {begin} of the data, not at {place}")
        place = end
    if place != size - 8 - length:
        raise _bad(f"the data has {size - 8 - length} bytes, and {place} are described")
    return entries


def _entry(name, entry):
    """Name, dtype, shape, begin and end of a tensor."""
    if type(entry) is not dict or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _bad(f"{name!r} is not described by dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    dtype = getattr(_C, _NAMES.get(code, ""), None) if type(code) is str else None
    if type(dtype) is not _C.dtype:
        raise SafetensorError(
            f"load_file(): {name!r} has elements of type {code!r}, which pydevtensor "
            "does not have; convert the file to F32"
        )
    for numbers in (shape, offsets):
        if type(numbers) is not list or not all(
            type(n) is int and 0 <= n < 1 << 63 for n in numbers
        ):
            raise _bad(f"{name!r} has a shape or offsets that are not lists of sizes")
    if len(offsets) != 2:
        raise _bad(f"{name!r} has {len(offsets)} offsets instead of 2")
    if len(shape) > 16:
        raise SafetensorError(
            f"load_file(): {name!r} has {len(shape)} dimensions, and a tensor has at "
            "most 16; merge some of them where the file is made"
        )
    begin, end = offsets
    count = prod(shape, start=dtype.itemsize)
    if end - begin != count:
        raise _bad(f"{name!r} needs {count} bytes and has {end - begin}")
    return name, dtype, shape, begin, end


def _read(file, size, device):
    file.seek(0)
    entries = _read_header(file, size)
    return {entry[0]: _read_rows(file, file.tell(), entry, device) for entry in entries}


def _read_rows(file, start, entry, device, rows=None):
    """A tensor of a file whose data begins at `start`, or a range of its rows."""
    name, dtype, shape, begin, end = entry
    if rows is not None:
        row = (end - begin) // max(shape[0], 1)
        begin, end = begin + rows.start * row, begin + rows.stop * row
        shape = [len(rows), *shape[1:]]
    try:
        tensor = _C.empty(shape, dtype=dtype, device="cpu")
    except RuntimeError as error:
        if begin == end:  # no elements, but sizes that overflow
            raise _bad(f"{name!r}: {error}") from None
        raise
    view = memoryview(_C._storage_bytes(tensor))
    place = 0
    while place < end - begin:
        if isinstance(file, FileIO):  # forked workers share where it is read next
            count = os.preadv(file.fileno(), [view[place:]], start + begin + place)
        else:
            count = file.readinto(view[place:])
        if not count:
            raise _bad(f"the file ends within {name!r}")
        place += count
    del view
    raw = _C._storage_bytes(tensor)
    if dtype is _C.bool and end > begin and _C.max(raw).item() > 1:
        raw.clamp_(max=1)  # memory of another library may hold other bytes
    return tensor.to(device)


class _Slice:
    """A tensor of an open file, of which an index reads the rows that it takes."""

    def __init__(self, opened: safe_open, entry: Any) -> None:
        self._opened, self._entry = opened, entry

    def get_shape(self) -> list[int]:
        return [*self._entry[2]]

    def get_dtype(self) -> str:
        return _CODES[str(self._entry[1]).removeprefix("torch.")]

    def __len__(self) -> int:
        return int(self._entry[2][0])

    def __getitem__(self, index: Any) -> _C.Tensor:
        first, *others = index if isinstance(index, tuple) else (index,)
        shape = self._entry[2]
        if shape and isinstance(first, slice) and first.step in (None, 1):
            rows = range(*first.indices(shape[0]))
            rows = range(rows.start, max(rows.start, rows.stop))
            return self._opened._rows(self._entry, rows)[(slice(None), *others)]
        if shape and type(first) is int and -shape[0] <= first < shape[0]:
            row = first % shape[0]
            return self._opened._rows(self._entry, range(row, row + 1))[(0, *others)]
        return self._opened._rows(self._entry)[index]


class safe_open:
    """The file filename, of which tensors, or rows of them, are read one by one.

    A context, which closes the file. framework: 'pt'. device: of the tensors.
    SafetensorError for a damaged file or another format.

    >>> torch.safetensors.save_file({'w': torch.arange(6).view(3, 2)}, 'w.safetensors')
    >>> with torch.safetensors.safe_open('w.safetensors', framework='pt') as file:
    ...     [*file.keys()], file.get_slice('w')[1:2]
    (['w'], tensor([[2, 3]]))
    """

    def __init__(self, filename: Any, framework: str, device: Any = "cpu") -> None:
        if framework not in ("pt", "torch", "pytorch"):
            raise SafetensorError(f"safe_open(): framework is {framework!r}; give 'pt'")
        self._device = _C.device(device)
        # Without a buffer: a row is read and no more.
        self._file = open(os.fspath(filename), "rb", buffering=0)  # noqa: SIM115
        try:
            size = os.fstat(self._file.fileno()).st_size
            self._entries = {each[0]: each for each in _read_header(self._file, size)}
            self._start = self._file.tell()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def keys(self) -> list[str]:
        """The names of the tensors, in the order of the file."""
        return [*self._entries]

    def _entry(self, name: str) -> Any:
        if name not in self._entries:
            raise SafetensorError(
                f"the file has no tensor {name!r}; it has {', '.join(self.keys())[:99]}"
            )
        return self._entries[name]

    def get_tensor(self, name: str) -> _C.Tensor:
        """Read the tensor of a name."""
        return self._rows(self._entry(name))

    def get_slice(self, name: str) -> Any:
        """The tensor of a name, to be indexed: a slice or a number reads the rows that
        it takes.

        It has get_shape(), get_dtype() and a length, so it is a dataset of rows that
        are read when they are asked for, by workers too.
        """
        return _Slice(self, self._entry(name))

    def __reduce__(self) -> Any:
        """Another process opens the file anew."""
        return safe_open, (self._file.name, "pt", str(self._device))

    def _rows(self, entry: Any, rows: range | None = None) -> _C.Tensor:
        return _read_rows(self._file, self._start, entry, self._device, rows)


_publish(__name__)
