"""Checkpoints in PyTorch's zip format: what `save` writes `torch.load` reads, and back.

A file is data that lists of known constructors turn into values; nothing in it is ever
executed. docs/checkpoints.md says what can be saved, and what is refused.
"""

from __future__ import annotations

import io
import os
import sys
from pickle import UnpicklingError
from typing import Any

from pydevtensor import _C
from pydevtensor._archive import Reader, Writer, damaged, replacing
from pydevtensor._pickling import (
    Dumper,
    Machine,
    StorageType,
    dtype_name,
    dtype_named,
    parameter_type,
)

__all__ = ["load", "save"]

_LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
_NEWEST = 10  # the newest version of the archive's layout that PyTorch names


def save(obj: Any, f: Any) -> None:
    """Write obj to f in PyTorch's checkpoint format.

    obj: tensors, and None, bools, numbers, strings, bytes, lists, tuples, dicts, sets,
    Size, device and dtype objects, nested as one likes. Tensors that share a storage
    share it in the file; a view is saved with the whole storage that it looks into.
    f: a path, or a binary file object open for writing.

    A path is written beside itself and renamed when all went well, so a failed save
    leaves the file that was there. Tensors on a GPU are copied to the host one storage
    after the other, for which the program waits.

    Raises pickle.PicklingError for a value of another type, which it names.

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
    """The pickle of obj, and one tensor for each storage that it needs, in order."""
    numbers: dict = {}
    storages: list = []

    def storage(tensor, typed):
        key = _C._storage_key(tensor)
        name = dtype_name(tensor.dtype) if typed else None
        if key not in numbers:
            numbers[key] = len(storages), name
            storages.append(tensor)
        number, first = numbers[key]
        if first != name:
            raise RuntimeError(
                f"save(): one storage is seen as {first} and as {name}, which the "
                "format cannot express; clone() one of the tensors"
            )
        size = tensor.element_size() if typed else 1
        return str(number), str(tensor.device), len(_C._storage_bytes(tensor)) // size

    return Dumper(storage).dump(obj), storages


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
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
) -> Any:
    """The value that a checkpoint holds, written here or by PyTorch's torch.save.

    f: a path, or a binary file object (one that cannot seek is read to its end).
    map_location: where storages go instead of the device they were saved from: a device
    or its name; a dict from names to names, {"cuda:1": "cuda:0"}; or a function of
    (storage, location) that returns the storage, moved with storage.cpu(),
    storage.cuda(i) or storage.to(device), or None to leave it to load.
    weights_only: True. False reads nothing more, since nothing in a file is executed.
    mmap: not supported; None and False are accepted.

    Raises pickle.UnpicklingError for a constructor that is not among those that
    checkpoints may call (it is named) and for a damaged pickle; RuntimeError for a
    damaged archive, and for tensors of a device that is not there and no map_location.

    >>> torch.save({'w': torch.tensor([1, 2])}, 'w.pt')
    >>> torch.load('w.pt')
    {'w': tensor([1, 2])}
    """
    del weights_only
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
    seekable = getattr(f, "seekable", None)
    if not (seekable() if seekable else hasattr(f, "seek") and hasattr(f, "tell")):
        f = io.BytesIO(f.read())
    return _load(f, "the file", map_location)


def _load(file, name, map_location):
    start = file.tell()
    magic = file.read(64)
    if start:
        if magic[:2] != b"PK":
            raise RuntimeError(
                f"load(): {name} stands at byte {start}, where no checkpoint begins; "
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
            f"load(): {name} is no checkpoint: it begins with {magic[:4]!r} and not "
            "with the zip format's b'PK'; give a file written by save() or torch.save()"
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
            f"load(): {name} is of version {version[:20]!r}, and 1 to {_NEWEST} are "
            "known; save it with an older PyTorch"
        )
    order = reader.read("byteorder") if "byteorder" in reader else b"little"
    if order not in (b"little", b"big"):
        raise damaged(name, f"its byte order is {order[:20]!r}")
    loader = _Loader(reader, map_location, order.decode() != sys.byteorder)
    machine = Machine(
        reader.read("data.pkl"), loader.storage, loader.constructors, name
    )
    return machine.load()


class _Storage:
    """What a function given as map_location gets, and moves.

    location is what the file says; device where the storage will be, None while
    nobody said.
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
        """The storage, to be put on a device."""
        return _Storage(self._kind, self._data, self.location, _C.device(device))

    def cpu(self):
        """The storage, to be kept on the CPU."""
        return self.to("cpu")

    def cuda(self, device=0):
        """The storage, to be put on a GPU."""
        if isinstance(device, int):
            device = _C.device("cuda", device)
        return self.to("cuda:0" if device is None else device)


def _saved_device(location):
    """The device of the file's location tag, or None where there is no such kind."""
    try:
        return _C.device(location)
    except (RuntimeError, TypeError, ValueError):
        return None


class _Loader:
    """Makes storages and tensors for the pickle machine, each storage once."""

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
        self.constructors = {
            "torch._utils._rebuild_tensor_v2": self.tensor,
            "torch._utils._rebuild_tensor_v3": self.tensor_of_dtype,
            "torch._utils._rebuild_parameter": self.parameter,
            "torch._utils._rebuild_parameter_with_state": self.parameter,
        }

    def storage(self, kind, key, location, numel):
        known = self.storages.get(key)
        if known is not None:
            if known._kind.dtype != kind.dtype or known.location != location:
                raise ValueError(f"storage {key} is described twice, differently")
            if numel * self.itemsize(kind) != known.nbytes():
                raise ValueError(f"storage {key} has two sizes")
            return known
        itemsize = self.itemsize(kind)
        record = f"data/{key}"
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
        if kind.dtype == "bool" and size and _C.max(data).item() > 1:
            raise ValueError("bools with bytes other than 0 and 1")
        if self.swap and kind.dtype is None:
            raise ValueError("bytes without a type, of another byte order")
        if self.swap and itemsize > 1:
            _swap(view, itemsize, kind.dtype)
        del view
        made = self.place(_Storage(kind, data, location))
        self.storages[key] = made
        return made

    @staticmethod
    def itemsize(kind):
        return dtype_named(kind.dtype).itemsize if kind.dtype else 1

    def place(self, storage):
        """The storage with its data on the device where it belongs."""
        where, location = self.map_location, storage.location
        device = None
        if isinstance(where, dict):
            where = where.get(location)
        elif callable(where) and not isinstance(where, _C.device):
            made = where(storage, location)
            if made is not None and not isinstance(made, _Storage):
                raise _wrong_map(
                    f"the function gave a {type(made).__name__}; return the storage, "
                    "moved with cpu(), cuda() or to(), or None"
                )
            where = None
            if made is not None:
                where = made.device if made.device is not None else _C.device("cpu")
        if where is not None:
            device = _C.device(where)
        else:
            device = _saved_device(location)
            if device is None:
                raise _wrong_map(
                    f"its tensors were on {location!r}, a device that pydevtensor does "
                    "not have; give map_location='cpu'"
                )
        if device.type == "cuda":
            count = _C._cuda_count()
            if (device.index or 0) >= count:
                raise _wrong_map(
                    f"its tensors belong on {device}, and there are {count} GPUs here; "
                    "give map_location='cpu', or another device"
                )
            storage._data = storage._data.to(device)
        elif device.type != "cpu":
            raise _wrong_map(f"{device} is no device for data; give map_location='cpu'")
        storage.device = device
        return storage

    def tensor(
        self, storage, offset, size, stride, requires_grad, hooks=None, metadata=None
    ):
        if storage._kind.dtype is None:
            raise ValueError("a tensor without an element type")
        return self.view(
            storage,
            dtype_named(storage._kind.dtype),
            offset,
            size,
            stride,
            requires_grad,
        )

    def tensor_of_dtype(
        self,
        storage,
        offset,
        size,
        stride,
        requires_grad,
        hooks,
        dtype,
        metadata=None,
    ):
        if storage._kind.dtype is not None:
            raise ValueError("a tensor with two element types")
        return self.view(storage, dtype, offset, size, stride, requires_grad)

    @staticmethod
    def view(storage, dtype, offset, size, stride, requires_grad):
        for sizes in (size, stride):
            if not isinstance(sizes, tuple) or any(type(n) is not int for n in sizes):
                raise TypeError("sizes or strides of a tensor are no tuple of ints")
        if type(offset) is not int or not isinstance(requires_grad, bool):
            raise TypeError("a tensor's offset is no int")
        if not isinstance(storage, _Storage) or isinstance(dtype, StorageType):
            raise TypeError("a tensor over what is no storage")
        if requires_grad and not dtype.is_floating_point:
            raise ValueError(f"a tensor of {dtype} that requires gradients")
        try:
            return _C._storage_view(
                storage._data, dtype, size, stride, offset, requires_grad
            )
        except RuntimeError as error:
            raise ValueError(f"a tensor does not fit its storage: {error}") from None

    @staticmethod
    def parameter(data, requires_grad, hooks=None, state=None):
        if not isinstance(data, _C.Tensor) or not isinstance(requires_grad, bool):
            raise TypeError("a Parameter is not made of a tensor and a bool")
        if requires_grad and not data.dtype.is_floating_point:
            raise ValueError(f"a Parameter of {data.dtype} that requires gradients")
        kind = parameter_type()
        if kind is None:
            return data.detach().requires_grad_(requires_grad)
        return kind(data.detach(), requires_grad)


def _wrong_map(why):
    return RuntimeError(f"load(): {why}")


def _swap(view, itemsize, name):
    """Reverse the bytes of each element in place."""
    from array import array

    if name and name.startswith("complex"):
        itemsize //= 2
    code = {2: "H", 4: "I", 8: "Q"}[itemsize]
    values = array(code, bytes(view))
    values.byteswap()
    view[:] = memoryview(values).cast("B")
