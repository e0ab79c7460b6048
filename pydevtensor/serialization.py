"""save() and load(): checkpoints in PyTorch's zip format.

Nothing in a file is executed unless the program says that it trusts it.
docs/checkpoints.md says what can be saved.
"""

from __future__ import annotations

import io
import mmap as _mmap
import os
import pickle
import sys
from collections.abc import Iterable
from pickle import UnpicklingError
from typing import Any

from pydevtensor import _C
from pydevtensor._archive import Reader, Writer, damaged, replacing
from pydevtensor._names import publish as _publish
from pydevtensor._pickler import STORAGES, Pickler, as_theirs, dtype_name
from pydevtensor._unpickler import StorageType, Unpickler, dtype_named

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load"]
__all__ += ["safe_globals", "save"]

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
    Size, device and dtype objects, in any nesting; and what Python's pickle takes, such
    as a module, which load() reads with weights_only=False alone. Tensors that share a
    storage share it in the file; a view is saved with its whole storage.
    f: a path, or a binary file object open for writing.
    pickle_module, pickle_protocol: have no effect, nor have the options after them: the
    file is the archive that every torch.load() since 1.6 reads.

    A path is written under a temporary name and then renamed, so a failed save leaves
    the old file. GPU tensors are copied to the host one storage at a time, which
    synchronizes.

    Raises pickle.PicklingError for a function or a class that no module has.

    >>> import pydevtensor as torch
    >>> torch.save({"w": torch.ones(2, 3)}, "w.pt")  # doctest: +SKIP
    """
    _save(obj, f, True)


def _save(obj, f, objects):
    """objects: take also what names classes and functions."""
    if isinstance(f, str | bytes | os.PathLike):
        data, storages = _describe(obj, objects)  # before any file is made
        with replacing(f) as file:
            _write(file, data, storages)
    elif callable(getattr(f, "write", None)):
        data, storages = _describe(obj, objects)
        _write(f, data, storages)
    else:
        raise AttributeError(
            f"save(): f is a {type(f).__name__}; give a path or a file object "
            "with write()"
        )


def _describe(obj, objects):
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
        nbytes = len(_C._storage_bytes(tensor))
        if tensor.numel() and not nbytes and not tensor.is_meta:
            raise RuntimeError(
                "save(): a tensor's storage has no memory, since it was resized to 0 "
                "bytes; give it some and write the elements first"
            )
        size = tensor.element_size() if typed else 1
        return str(number), str(tensor.device), nbytes // size

    return Pickler(storage_id, objects).dump(obj), storages


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
    weights_only: False reads any object, and executes what the file says, as a program
    does: say it for files of people that you trust so. Otherwise nothing is executed.
    pickle_module: the module whose Unpickler reads such a file; without weights_only,
    it means False.
    mmap: with True, f is a path, and tensors are the file's memory, read when they are
    used and copied where they are written; no checksums are verified. The file must
    not become shorter while they live.
    encoding: of texts of Python 2, with weights_only=False.

    Raises pickle.UnpicklingError for a damaged pickle and for one that calls anything
    but the known constructors and add_safe_globals(); RuntimeError for a damaged
    archive, and for a device that does not exist here, unless map_location replaces it.

    >>> torch.save({'w': torch.tensor([1, 2])}, 'w.pt')
    >>> torch.load('w.pt')
    {'w': tensor([1, 2])}
    """
    if weights_only and pickle_module is not None:
        raise RuntimeError(
            "load(): pickle_module is for files that you trust; leave it out, or give "
            "weights_only=False"
        )
    trusting = None  # the module that reads a file which the program trusts
    if weights_only is False or pickle_module is not None:
        trusting = pickle if pickle_module is None else pickle_module
    how = map_location, trusting, encoding, mmap
    if isinstance(f, str | bytes | os.PathLike):
        with open(f, "rb", buffering=0) as raw, io.BufferedReader(raw) as file:
            return _load(file, repr(os.fspath(f)), *how)
    if mmap:
        raise RuntimeError("load(): with mmap=True f must be the path of a file")
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
    return _load(f, "the file", *how)


def _load(file, name, map_location, trusting, encoding, mapped):
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
    if mapped:
        loader.memory = _mmap.mmap(file.fileno(), 0, _mmap.MAP_PRIVATE)
    data = reader.read("data.pkl")
    if trusting is None:
        return Unpickler(data, loader.storage, _CONSTRUCTORS, name, _trusted).load()
    return _trusting(trusting)(io.BytesIO(data), loader, encoding).load()


# --- what a program trusts

_trusted: dict[str, Any] = {}


def _names(safe_globals: Iterable[Any]) -> dict[str, Any]:
    found = {}
    for each in safe_globals:
        if isinstance(each, tuple):
            value, name = each
        else:
            value, name = each, f"{as_theirs(each.__module__)}.{each.__qualname__}"
        if not callable(value) or not isinstance(name, str):
            raise TypeError(
                f"safe globals have {each!r}; give classes and functions, or pairs of "
                "one and its name"
            )
        found[name.replace("__builtin__.", "builtins.")] = value
    return found


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let load() make objects of classes, and call functions, that a file names.

    safe_globals: classes and functions, or pairs of one and its name in files. What
    they do with the file's values is the program's affair.

    >>> import fractions
    >>> torch.serialization.add_safe_globals([fractions.Fraction])
    >>> torch.serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    >>> torch.serialization.clear_safe_globals()
    """
    _trusted.update(_names(safe_globals))


def get_safe_globals() -> list[Any]:
    """The classes and functions that load() may use, beside its constructors.

    >>> torch.serialization.get_safe_globals()
    []
    """
    return [*_trusted.values()]


def clear_safe_globals() -> None:
    """Take back what add_safe_globals() said.

    >>> torch.serialization.clear_safe_globals()
    >>> torch.serialization.get_safe_globals()
    []
    """
    _trusted.clear()


class safe_globals:
    """A context with add_safe_globals().

    safe_globals: classes and functions, or pairs of one and its name in files.

    >>> with torch.serialization.safe_globals([list]):
    ...     torch.serialization.get_safe_globals()
    [<class 'list'>]
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._given = safe_globals

    def __enter__(self) -> None:
        self._before = dict(_trusted)
        add_safe_globals(self._given)

    def __exit__(self, *error: object) -> None:
        _trusted.clear()
        _trusted.update(self._before)


# Modules and classes of PyTorch that hold functions of the package.
_ELSEWHERE = {
    "torch._C._nn": "pydevtensor.nn.functional",
    "torch._C._linalg": "pydevtensor.linalg",
    "torch._C._special": "pydevtensor.special",
    "torch._C": "pydevtensor",
}
_HOLDERS = ("_VariableFunctionsClass", "_VariableFunctions")


def _trusting(module):
    """The Unpickler of a module, which finds PyTorch's names in this package."""

    class Trusting(module.Unpickler):  # type: ignore[name-defined]
        def __init__(self, file, loader, encoding):
            super().__init__(file, encoding=encoding)
            self._loader = loader

        def persistent_load(self, described):
            _, kind, key, location, numel = described
            return self._loader.storage(kind, key, location, numel)

        def find_class(self, module, name):
            full = f"{module}.{name}"
            if full in _CONSTRUCTORS:
                return _CONSTRUCTORS[full][0]
            if full == "torch.storage.UntypedStorage":
                return StorageType(None)
            if module == "torch" and name in STORAGES:
                return StorageType(STORAGES[name])
            if module.partition(".")[0] != "torch":
                return super().find_class(module, name)
            holder, _, rest = name.partition(".")
            if holder in _HOLDERS:
                return getattr(_C, rest) if rest else _C
            home = _ELSEWHERE.get(module, "pydevtensor" + module[len("torch") :])
            found = super().find_class(home, name)
            owner = sys.modules[home]
            if holder not in vars(owner) and holder not in dir(owner):
                raise UnpicklingError(
                    f"load(): the file names {full}, which pydevtensor does not have; "
                    "save a state_dict in PyTorch"
                )
            return found

    return Trusting


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

    if not isinstance(data, _C.Tensor):
        raise TypeError(f"unexpected {type(data).__name__}")
    if requires_grad and not (data.is_floating_point() or data.is_complex()):
        raise ValueError(f"a Parameter of {data.dtype} that requires gradients")
    return Parameter(data.detach(), requires_grad)


def _tensor(
    storage, offset, size, stride, requires_grad, hooks=None, metadata=None, dtype=None
):
    dtype = dtype or dtype_named(storage._kind.dtype)
    # A view of PyTorch may have these done when an element is read.
    lazy = metadata if isinstance(metadata, dict) else {}
    try:
        made = _C._storage_view(storage._data, dtype, size, stride, offset, False)
        made = made.conj() if lazy.get("conj") else made
        made = -made if lazy.get("neg") else made
        return made.requires_grad_(requires_grad)
    except RuntimeError as error:
        raise ValueError(f"a tensor that cannot be: {error}") from None


def _tensor_of_bytes(
    storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None
):
    if storage._kind.dtype is not None:
        raise ValueError("a tensor with two element types")
    return _tensor(storage, offset, size, stride, requires_grad, dtype=dtype)


def _meta(dtype, size, stride, requires_grad):
    try:
        made = _C.empty_strided(size, stride, dtype=dtype, device="meta")
        return made.requires_grad_(requires_grad)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"a tensor that cannot be: {error}") from None


def _layout(name):
    found = getattr(_C, name.removeprefix("torch."), None)
    if not isinstance(found, _C.layout):
        raise ValueError(f"the layout {name!r}")
    return found


def _sparse(layout, parts):
    coo = layout == _C.sparse_coo
    count = 2 if coo else 3
    tensors, size, coalesced = parts[:count], parts[count], parts[count + 1 :]
    if not all(type(x) is _C.Tensor for x in tensors) or type(size) is not _C.Size:
        raise TypeError("wrong parts of a sparse tensor")
    named: Any = {"check_invariants": True}
    if coo:
        named["is_coalesced"] = coalesced == (True,)
    make: Any = getattr(_C, f"{str(layout).removeprefix('torch.')}_tensor")
    try:
        return make(*tensors, size, **named)
    except RuntimeError as error:
        raise ValueError(f"a tensor that cannot be: {error}") from None


def _dtensor(*parts):
    from pydevtensor.distributed.tensor._dtensor import _rebuilt

    placements, shape = parts[4:6]
    plain = [*shape, *(each for placed in placements for each in placed)]
    if not all(type(each) in (int, float, str) for each in plain):
        raise TypeError("wrong parts of a DTensor")
    return _rebuilt(*parts)


# The functions of PyTorch's that rebuild tensors, with the types of their arguments.
_TENSOR = ((_Storage,), (int,), (tuple,), (tuple,), (bool,), ())
_PARAMETER = (_parameter, (), (bool,), (), ())
_CONSTRUCTORS = {
    "torch._utils._rebuild_tensor_v2": (_tensor, *_TENSOR, ()),
    "torch._utils._rebuild_tensor_v3": (_tensor_of_bytes, *_TENSOR, (_C.dtype,), ()),
    "torch._utils._rebuild_parameter": _PARAMETER,
    "torch._utils._rebuild_parameter_with_state": _PARAMETER,
    "torch._utils._rebuild_meta_tensor_no_storage": (_meta, (_C.dtype,), *_TENSOR[2:5]),
    "torch._utils._rebuild_sparse_tensor": (_sparse, (_C.layout,), (tuple,)),
    "torch.serialization._get_layout": (_layout, (str,)),
    "torch.distributed.tensor._dtensor._rebuilt": (
        _dtensor,
        (_C.Tensor,),
        (str,),
        (list,),
        (tuple, type(None)),
        (tuple,),
        (tuple,),
        (bool,),
    ),
}


class _Loader:
    """Reads the storages of a checkpoint, each once, to their devices."""

    def __init__(self, reader, map_location, swap):
        self.reader, self.map_location, self.swap = reader, map_location, swap
        self.storages = {}
        self.memory = None  # of the file, where its tensors are to use that
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
        if self.memory is not None and size and not (self.swap or dtype == "bool"):
            place = self.reader.place(record)
            if place % itemsize == 0:
                return _C.frombuffer(
                    self.memory, dtype=_C.uint8, count=size, offset=place
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
