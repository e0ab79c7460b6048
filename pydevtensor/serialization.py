"""save() and load(): checkpoints in PyTorch's zip format.

Nothing in a file is ever executed. docs/checkpoints.md says what can be saved.
"""

from __future__ import annotations

import io
import os
import sys
from pickle import UnpicklingError
from typing import Any

from pydevtensor import _C
from pydevtensor._archive import Reader, Writer, damaged, replacing
from pydevtensor._names import publish as _publish
from pydevtensor._pickler import Pickler, dtype_name
from pydevtensor._unpickler import Unpickler, dtype_named

__all__ = ["load", "save"]

_LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
_NEWEST = 10  # the newest version of the archive's layout that PyTorch names


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write obj to f in PyTorch's checkpoint format.

    obj: tensors, None, bools, numbers, strings, bytes, lists, tuples, dicts, sets,
    Size, device and dtype objects, in any nesting. Tensors that share a storage share
    it in the file; a view is saved with its whole storage.
    f: a path, or a binary file object open for writing.
    pickle_module, pickle_protocol: have no effect, nor have the options after them: the
    file is the archive that every torch.load() since 1.6 reads.

    A path is written under a temporary name and then renamed, so a failed save leaves
    the old file. GPU tensors are copied to the host one storage at a time, which
    synchronizes.

    Raises pickle.PicklingError, with the type's name, for a value of another type.

    >>> import pydevtensor as torch
    >>> torch.save({"w": torch.ones(2, 3)}, "w.pt")  # doctest: +SKIP
    """
    if isinstance(f, str | bytes | os.PathLike):
        data, storages = _describe(obj)  # before any file is made
        with replacing(f) as file:
            _write(file, data, storages)
    elif callable(getattr(f, "write", None)):
        data, storages = _describe(obj)
        _write(f, data, storages)
    else:
        raise AttributeError(
            f"save(): f is a {type(f).__name__}; give a path or a file object "
            "with write()"
        )


def _describe(obj):
    """The pickle of obj, and one tensor for each storage."""
    numbers: dict[Any, Any] = {}
    storages: list[Any] = []

    def storage_id(tensor, typed):
        key = _C._storage_key(tensor)
        name = dtype_name(tensor.dtype) if typed else None
        if key not in numbers:
            numbers[key] = len(storages), name
            storages.append(tensor)
        number, first = numbers[key]
        if first != name:
            raise RuntimeError(
                f"save(): two tensors see one storage as {first} and as {name}, which "
                "the format cannot express; clone() one of them"
            )
        size = tensor.element_size() if typed else 1
        return str(number), str(tensor.device), len(_C._storage_bytes(tensor)) // size

    return Pickler(storage_id).dump(obj), storages


def _write(file, data, storages):
    with Writer(file) as writer:
        writer.write("data.pkl", data)
        writer.write(".format_version", b"1")
        writer.write(".storage_alignment", b"64")
        writer.write("byteorder", sys.byteorder.encode())
        for number, tensor in enumerate(storages):
            raw = _C._storage_bytes(tensor.detach()).cpu()
            size = tensor.element_size()
            writer.write(f"data/{number}", memoryview(raw)[: len(raw) // size * size])
            del raw
        writer.write("version", b"3\n")


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    encoding: str = "utf-8",
) -> Any:
    """Read a checkpoint written by save() or by PyTorch's torch.save().

    f: a path, or a binary file object (one that cannot seek is read to its end).
    map_location: replaces the device that a storage was saved from: a device or its
    name; a dict such as {"cuda:1": "cuda:0"}; or a function of (storage, location) that
    returns the storage, moved with storage.cpu(), storage.cuda(i) or
    storage.to(device), or None for the saved device.
    pickle_module, weights_only: have no effect: nothing in a file is ever executed.
    mmap: not supported; None and False are accepted.
    encoding: has no effect: texts are UTF-8, and those of Python 2 are not read.

    Raises pickle.UnpicklingError for a damaged pickle and for one that calls anything
    but the known constructors; RuntimeError for a damaged archive, and for a device
    that does not exist here, unless map_location replaces it.

    >>> torch.save({'w': torch.tensor([1, 2])}, 'w.pt')
    >>> torch.load('w.pt')
    {'w': tensor([1, 2])}
    """
    del pickle_module, weights_only, encoding
    if mmap:
        raise NotImplementedError(
            "load(): mmap=True is not supported; leave it out, and the file is read "
            "once, straight into the tensors' memory"
        )
    if isinstance(f, str | bytes | os.PathLike):
        with open(f, "rb", buffering=0) as raw, io.BufferedReader(raw) as file:
            return _load(file, repr(os.fspath(f)), map_location)
    if not callable(getattr(f, "read", None)):
        raise AttributeError(
            f"load(): f is a {type(f).__name__}; give a path or a file object "
            "with read()"
        )
    if isinstance(f, io.TextIOBase):
        raise TypeError("load(): the file is open for text; open it with mode 'rb'")
    seekable = getattr(f, "seekable", lambda: hasattr(f, "seek") and hasattr(f, "tell"))
    if not seekable() or not hasattr(f, "readinto"):
        f = io.BytesIO(f.read())
    return _load(f, "the file", map_location)


def _load(file, name, map_location):
    start = file.tell()
    magic = file.read(64)
    if start:
        if magic[:2] != b"PK":
            raise RuntimeError(
                f"load(): {name} is at byte {start}, where no checkpoint begins; call "
                "seek(0) first"
            )
        file = io.BytesIO(magic + file.read())
    else:
        file.seek(0)
    if not magic:
        raise EOFError(f"load(): {name} is empty; save into it first")
    if magic.startswith(_LEGACY):
        raise RuntimeError(
            f"load(): {name} is in PyTorch's format from before version 1.6; convert "
            "it there with torch.save(torch.load(path), path)"
        )
    if magic[:2] != b"PK":
        raise UnpicklingError(
            f"load(): {name} is not a checkpoint: it begins with {magic[:4]!r}, a zip "
            "file with b'PK'; give a file written by save() or torch.save()"
        )
    reader = Reader(file, name)
    if "constants.pkl" in reader:
        raise RuntimeError(
            f"load(): {name} is a TorchScript program, not a checkpoint; save its "
            "state_dict() in PyTorch"
        )
    version = reader.read("version").strip() if "version" in reader else b"3"
    if not version.isdigit() or not 1 <= int(version[:9]) <= _NEWEST:
        raise RuntimeError(
            f"load(): {name} has version {version[:20]!r}, and only 1 to {_NEWEST} can "
            "be read; save it with an older PyTorch"
        )
    order = reader.read("byteorder") if "byteorder" in reader else b"little"
    if order not in (b"little", b"big"):
        raise damaged(name, f"its byte order is {order[:20]!r}")
    loader = _Loader(reader, map_location, order.decode() != sys.byteorder)
    data = reader.read("data.pkl")
    return Unpickler(data, loader.storage, _CONSTRUCTORS, name).load()


class _Storage:
    """The storage that a map_location function gets and moves.

    location is the device's name in the file, device the one to load to, or None.
    """

    def __init__(self, kind, data, location, device=None):
        self._kind, self._data, self.location = kind, data, location
        self.device = device

    def __len__(self):
        return len(self._data)

    def nbytes(self):
        """The bytes of the storage."""
        return len(self._data)

    def to(self, device):
        """The storage, to be loaded to a device."""
        return _Storage(self._kind, self._data, self.location, _C.device(device))

    def cpu(self):
        """The storage, to be loaded to the CPU."""
        return self.to("cpu")

    def cuda(self, device=0):
        """The storage, to be loaded to a GPU."""
        if isinstance(device, int):
            device = _C.device("cuda", device)
        return self.to("cuda:0" if device is None else device)


def _parameter(data, requires_grad, hooks=None, state=None):
    from pydevtensor.nn.parameter import Parameter

    if requires_grad and not data.dtype.is_floating_point:
        raise ValueError(f"a Parameter of {data.dtype} that requires gradients")
    return Parameter(data.detach(), requires_grad)


def _tensor(
    storage,
    offset,
    size,
    stride,
    requires_grad,
    hooks=None,
    metadata=None,
    dtype=None,
):
    dtype = dtype or dtype_named(storage._kind.dtype)
    try:
        return _C._storage_view(
            storage._data, dtype, size, stride, offset, requires_grad
        )
    except RuntimeError as error:
        raise ValueError(f"a tensor that cannot be: {error}") from None


def _tensor_of_bytes(
    storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None
):
    if storage._kind.dtype is not None:
        raise ValueError("a tensor with two element types")
    return _tensor(storage, offset, size, stride, requires_grad, dtype=dtype)


# The functions of PyTorch's that rebuild tensors, with the types of their arguments.
_TENSOR = ((_Storage,), (int,), (tuple,), (tuple,), (bool,), ())
_PARAMETER = (_parameter, (_C.Tensor,), (bool,), (), ())
_CONSTRUCTORS = {
    "torch._utils._rebuild_tensor_v2": (_tensor, *_TENSOR, ()),
    "torch._utils._rebuild_tensor_v3": (_tensor_of_bytes, *_TENSOR, (_C.dtype,), ()),
    "torch._utils._rebuild_parameter": _PARAMETER,
    "torch._utils._rebuild_parameter_with_state": _PARAMETER,
}


class _Loader:
    """Reads the storages of a checkpoint, each once, to their devices."""

    def __init__(self, reader, map_location, swap):
        self.reader, self.map_location, self.swap = reader, map_location, swap
        self.storages = {}
        if not (
            map_location is None
            or isinstance(map_location, str | int | dict | _C.device)
            or callable(map_location)
        ):
            raise TypeError(
                f"load(): map_location is a {type(map_location).__name__}; give a "
                "device, its name, a dict of names, or a function"
            )

    def storage(self, kind, key, location, numel):
        described = kind.dtype, location, numel
        if key not in self.storages:
            data = self.read(kind.dtype, f"data/{key}", numel)
            made = self.place(_Storage(kind, data, location))
            self.storages[key] = described, made
        before, made = self.storages[key]
        if before != described:
            raise ValueError(f"storage {key} is described twice, differently")
        return made

    def read(self, dtype, record, numel):
        itemsize = dtype_named(dtype).itemsize if dtype else 1
        if record not in self.reader:
            raise ValueError(f"record {record} is missing")
        size = self.reader.size(record)
        if size != numel * itemsize:
            raise ValueError(
                f"record {record} has {size} bytes, and {numel} elements of {itemsize} "
                "are described"
            )
        data = _C.empty(size, dtype=_C.uint8, device="cpu")
        view = memoryview(data)
        self.reader.read_into(record, view)
        if dtype == "bool" and size and _C.max(data).item() > 1:
            data.clamp_(max=1)  # memory of another library may hold other bytes
        if self.swap and dtype is None:
            raise ValueError("untyped bytes in another byte order")
        if self.swap and itemsize > 1:
            _swap(view, itemsize, dtype)
        return data

    def place(self, storage):
        """Move the storage to its device."""
        where, location = self.map_location, storage.location
        if isinstance(where, dict):
            where = where.get(location)
        elif callable(where) and not isinstance(where, _C.device):
            made = where(storage, location)
            if made is not None and not isinstance(made, _Storage):
                raise RuntimeError(
                    f"load(): map_location returned a {type(made).__name__}; return "
                    "the storage, moved with cpu(), cuda() or to(), or None"
                )
            where = None if made is None else made.device or "cpu"
        try:
            device = _C.device(location if where is None else where)
        except (RuntimeError, TypeError, ValueError):
            if where is not None:
                raise
            raise RuntimeError(
                f"load(): its tensors were on {location!r}, a device that pydevtensor "
                "does not have; give map_location='cpu'"
            ) from None
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError(
                f"load(): {device} holds no data; give map_location='cpu'"
            )
        if device.type == "cuda":
            count = _C._device_count("cuda")
            if (device.index or 0) >= count:
                raise RuntimeError(
                    f"load(): its tensors belong on {device}, and there are {count} "
                    "GPUs here; give map_location='cpu', or another device"
                )
            storage._data = storage._data.to(device)
        storage.device = device
        return storage


def _swap(view, itemsize, name):
    """Reverse the bytes of each element in place."""
    from array import array

    if name.startswith("complex"):
        itemsize //= 2
    values = array({2: "H", 4: "I", 8: "Q"}[itemsize], bytes(view))
    values.byteswap()
    view[:] = memoryview(values).cast("B")


_publish(__name__)
