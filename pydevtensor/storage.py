"""The memory of tensors: UntypedStorage in bytes, TypedStorage in elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor._shared_memory import memory_of as _memory_of


def _in_elements(data: _C.Tensor, dtype: _C.dtype) -> _C.Tensor:
    """Bytes as elements of a type; bytes that are too few for one are left out."""
    return data[: data.numel() // dtype.itemsize * dtype.itemsize].view(dtype)


class _Storage:
    """The methods of both kinds, by a one-dimensional tensor over the elements."""

    _held: _C.Tensor  # over the elements when the object was made
    _whole: bool  # whether that was all of the memory

    @property
    def _elements(self) -> _C.Tensor:
        if not self._whole:
            return self._held
        # Its size may be another one by now.
        return _in_elements(_C._storage_bytes(self._held), self._held.dtype)

    def __init__(self, args: tuple[Any, ...], dtype: _C.dtype, device: Any) -> None:
        name, given = type(self).__name__, args[0] if args else 0
        if len(args) > 1 or not isinstance(given, int | Sequence) or given == "":
            kinds = ", ".join(type(value).__name__ for value in args)
            raise TypeError(f"{name}() takes a size or a list of numbers, not {kinds}")
        if isinstance(given, int):
            self._held = _C.empty((given,), dtype=dtype, device=device)
        else:
            self._held = _C.tensor([*given], dtype=dtype, device=device)
        self._whole = True

    @classmethod
    def _over(cls, elements: _C.Tensor) -> Self:
        made = cls.__new__(cls)
        made._held = elements
        made._whole = _C._storage_bytes(elements).numel() == elements.nbytes
        return made

    @property
    def device(self) -> _C.device:
        """Where the memory is."""
        return self._elements.device

    @property
    def is_cuda(self) -> bool:
        """Whether it is a GPU's."""
        return self._elements.is_cuda

    @property
    def _cdata(self) -> int:
        """A number that tells storages apart for as long as they are there."""
        return _C._storage_key(self._elements)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, _Storage):
            return NotImplemented
        mine, its = self._elements, other._elements
        return mine.dtype == its.dtype and mine.is_set_to(its)

    def __hash__(self) -> int:
        return self._cdata

    def data_ptr(self) -> int:
        """The address of the first byte, on its device."""
        return self._elements.data_ptr()

    def element_size(self) -> int:
        """The size of an element in bytes."""
        return self._elements.element_size()

    def nbytes(self) -> int:
        """The size in bytes."""
        return len(self) * self.element_size()

    def size(self) -> int:
        """The number of elements."""
        return len(self)

    def __len__(self) -> int:
        return self._elements.numel()

    def tolist(self) -> list[Any]:
        """The elements as a list of numbers."""
        return self._elements.tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _part(self, index: Any) -> _C.Tensor:
        """The elements at an index or a slice."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise RuntimeError(f"a slice of a storage has the step 1, not {step}")
            return self._elements[start : max(start, stop)]
        if not isinstance(index, int):
            raise TypeError(
                "the index of a storage is an int or a slice, not a "
                f"{type(index).__name__}"
            )
        if not -len(self) <= index < len(self):
            raise IndexError(
                f"index {index} is out of range for a storage of size {len(self)}"
            )
        return self._elements[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._part(index).fill_(value)

    def fill_(self, value: Any) -> Self:
        """Write one number to all elements; returns the storage.

        value  a number
        """
        self._elements.fill_(value)
        return self

    def copy_(self, source: Self, non_blocking: bool = False) -> Self:
        """Copy the elements of another storage; returns this one.

        source        of the same size, on any device; RuntimeError for another size
        non_blocking  as of Tensor.copy_()
        """
        self._elements.copy_(source._elements, non_blocking)
        return self

    def clone(self) -> Self:
        """A copy."""
        return self._over(self._elements.clone())

    def to(self, *, device: Any, non_blocking: bool = False) -> Self:
        """The storage itself where it is on the device, else a copy there.

        device        as of Tensor.to()
        non_blocking  as of Tensor.to()
        """
        here = self._elements
        moved = here.to(device, non_blocking=non_blocking)
        return self if moved is here else self._over(moved)

    def cpu(self) -> Self:
        """The storage itself where it is the CPU's, else a copy there."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Self:
        """The storage itself where it is on the GPU, else a copy there.

        device        a GPU; None: the current one
        non_blocking  as of Tensor.to()
        """
        return self.to(device="cuda" if device is None else device)

    def get_device(self) -> int:
        """The GPU's index; -1 for the CPU."""
        return self._held.get_device()

    def resizable(self) -> bool:
        """Whether resize_() can give it another size: not where the memory is that of
        NumPy's arrays, other libraries, processes or files, or page-locked."""
        return _C._storage_resizable(self._held)

    def pin_memory(self) -> Self:
        """A copy in page-locked memory of the host."""
        return self._over(self._elements.pin_memory())

    def is_pinned(self) -> bool:
        """Whether it is page-locked memory of the host."""
        return self._elements.is_pinned()

    def is_shared(self) -> bool:
        """Whether processes share the memory; memory of GPUs counts as such."""
        return self.is_cuda or _memory_of(self._elements) is not None

    def share_memory_(self) -> Self:
        """Move the storage, and all tensors on it, to memory that processes share;
        returns the storage. See Tensor.share_memory_(), which does the same."""
        self._elements.share_memory_()
        return self

    def _shown(self, name: str) -> str:
        return "".join(f" {n}\n" for n in self) + (
            f"[pydevtensor.storage.{name}device={self.device}) of size {len(self)}]"
        )


class UntypedStorage(_Storage):
    """The memory of a tensor and its views in bytes: Tensor.untyped_storage().

    UntypedStorage(size) has bytes of any value, UntypedStorage([1, 2]) those given. An
    index gives a byte as an int, a slice a storage that shares those bytes.

    args    a size or the bytes; a TypeError for others
    device  where; None: the default device

    >>> x = torch.tensor([1, 2], dtype=torch.int16)
    >>> x.untyped_storage().tolist()
    [1, 0, 2, 0]
    >>> x.untyped_storage().data_ptr() == x[1:].untyped_storage().data_ptr()
    True
    """

    def __init__(self, *args: Any, device: Any = None) -> None:
        super().__init__(args, _C.uint8, device)

    def untyped(self) -> Self:
        """The storage itself."""
        return self

    @classmethod
    def from_file(
        cls, filename: Any, shared: bool = False, nbytes: int = 0
    ) -> UntypedStorage:
        """The memory of the first bytes of a mapped file.

        filename  the path
        shared    True: writes change the file, which is created or extended to nbytes
                  if need be; False: writes change the process's copy only
        nbytes    number of bytes; RuntimeError if the file has fewer and is not shared
        """
        import mmap
        import os

        path = os.fspath(filename)  # open() would take a number as a descriptor
        mode = "r+b" if os.path.exists(path) else "w+b"
        with open(path, mode if shared else "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < nbytes and shared:
                file.truncate(nbytes)
            elif size < nbytes:
                raise RuntimeError(
                    f"from_file(): {filename} has {size} bytes, and nbytes is {nbytes}"
                )
            if not nbytes:
                return cls(0, device="cpu")
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            memory = mmap.mmap(file.fileno(), nbytes, access=access)
        return cls._over(_C.frombuffer(memory, dtype=_C.uint8))

    def _share_cuda_(self) -> tuple[Any, ...]:
        """How another process opens the memory of a GPU: the arguments of
        _new_shared_cuda(). It stays until that one lets go of it."""
        if not self.nbytes():
            return self.device.index, None, 0, 0, b"", 0, b"", False
        handle, offset, file, slot, event = _C._ipc_send(self._elements)
        start = self.data_ptr() - _C._storage_bytes(self._elements).data_ptr()
        counter = file.encode()
        event_facts = event or b"", event is not None
        where = self.device.index, handle, self.nbytes(), offset + start
        return *where, counter, slot, *event_facts

    @classmethod
    def _new_shared_cuda(
        cls,
        device: int,
        handle: bytes | None,
        size_bytes: int,
        offset_bytes: int,
        counter: bytes,
        slot: int,
        event: bytes,
        ordered: bool,
    ) -> Self:
        """The memory of a GPU that another process shares, in the order of the current
        stream; see _share_cuda_()."""
        if handle is None or not size_bytes:
            return cls._over(_C.empty((0,), dtype=_C.uint8, device=f"cuda:{device}"))
        sent = handle, offset_bytes, counter.decode(), slot, event if ordered else None
        return cls._over(_C._ipc_receive(device, *sent, size_bytes))

    @classmethod
    def _release_ipc_counter_cuda(
        cls, counter: bytes, slot: int, device: Any = None
    ) -> None:
        """Tell the sender that what _share_cuda_() gave will not be opened."""
        _C._ipc_release(counter.decode(), slot)

    def resize_(self, size: int) -> UntypedStorage:
        """Give the storage another size, for all tensors that view it; returns itself.

        The bytes that both sizes have stay. With 0 bytes the memory is released, of a
        GPU to the allocator, and operations on its tensors raise RuntimeError until it
        has some again, whose bytes may have any value. So programs free an activation
        and fill it anew. A storage with fewer bytes than before, but some, keeps its
        memory, so that its tensors can be read.

        size  the size in bytes; RuntimeError for another type, a negative number, or
              memory that is not resizable()

        >>> x = torch.ones(2)
        >>> storage = x.untyped_storage().resize_(0)
        >>> x
        tensor(..., size=(2,))
        >>> _ = storage.resize_(8)
        >>> x.copy_(torch.tensor([3.0, 4.0]))
        tensor([3., 4.])
        """
        if not isinstance(size, int):
            raise RuntimeError(
                f"resize_(): the size is a {type(size).__name__}; give an int"
            )
        if not self._whole and size != len(self):
            raise RuntimeError("resize_(): this is a part of a storage; resize that")
        _C._storage_resize(self._held, size)
        return self

    def __getitem__(self, index: Any) -> Any:
        part = self._part(index)
        return self._over(part) if isinstance(index, slice) else part.item()

    def __repr__(self) -> str:
        return self._shown("UntypedStorage(")


class TypedStorage(_Storage):
    """The memory of a tensor and its views in elements: Tensor.storage().

    PyTorch has it for old programs; new ones use UntypedStorage. Indices are ints.

    args          a size or the elements; a TypeError for others
    wrap_storage  an UntypedStorage to share, in place of args
    dtype         the type of the elements; None: the default type
    device        where; None: the default device, and not with wrap_storage

    >>> torch.storage.TypedStorage([1, 2], dtype=torch.int16).tolist()
    [1, 2]
    """

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: _C.dtype | None = None,
        device: Any = None,
    ) -> None:
        if wrap_storage is None:
            super().__init__(args, dtype or _C.get_default_dtype(), device)
            return
        if args or device is not None or not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(
                "TypedStorage() takes wrap_storage, an UntypedStorage, with dtype alone"
            )
        self._held = _in_elements(
            wrap_storage._elements, dtype or _C.get_default_dtype()
        )
        self._whole = wrap_storage._whole

    @property
    def dtype(self) -> _C.dtype:
        """The type of the elements."""
        return self._elements.dtype

    def resize_(self, size: int) -> None:
        """UntypedStorage.resize_() to a number of elements.

        size  their number
        """
        self.untyped().resize_(size * self.element_size())

    def untyped(self) -> UntypedStorage:
        """The same memory in bytes."""
        return UntypedStorage._over(_C._storage_bytes(self._held))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError(
                "a TypedStorage has no slices; take untyped() or tolist() first"
            )
        return self._part(index).item()

    def __repr__(self) -> str:
        return self._shown(f"TypedStorage(dtype={self.dtype}, ")


_publish(__name__)
