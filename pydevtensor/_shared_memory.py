"""Memory that processes share: files without a name, which live in RAM.

A process that has the descriptor of such a file maps it. Forked processes inherit both;
others get the descriptor with the pickle of a tensor (_sharing.py). The file is gone
when the last descriptor and mapping are, however their processes end.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from typing import Any

from pydevtensor import _C

_ALIGN = 64


class Memory(_C.Tensor):
    """The bytes of a mapped file, and its descriptor, which is closed with them.

    The storages of tensors are other ones over the same bytes, and keep it.
    """

    __torch_function__ = _C._disabled_torch_function_impl

    descriptor: int

    def __del__(self) -> None:
        os.close(self.descriptor)

    def elements(self) -> _C.Tensor:
        """The bytes as a tensor that has a storage of its own."""
        return _C.frombuffer(self, dtype=_C.uint8)


# By address and by file, for as long as they are used. Forked processes have a copy.
_by_address: weakref.WeakValueDictionary[int, Memory] = weakref.WeakValueDictionary()
_by_file: weakref.WeakValueDictionary[Any, Memory] = weakref.WeakValueDictionary()


def write(name: str, buffers: list[memoryview]) -> int:
    """A descriptor of a new file with the buffers."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        write_to(descriptor, buffers)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def places(sizes: Iterable[int]) -> list[slice]:
    """Where in a file buffers of these sizes are."""
    found, at = [], 0
    for size in sizes:
        found.append(slice(at, at + size))
        at += size + -size % _ALIGN
    return found


def write_to(descriptor: int, buffers: list[memoryview]) -> None:
    """Write the buffers to a file."""
    for place, raw in zip(places(b.nbytes for b in buffers), buffers, strict=True):
        at = place.start
        # Unlike a store to a mapping, a write reports that no memory is left.
        while raw:
            count = os.pwrite(descriptor, raw, at)
            raw, at = raw[count:], at + count


def open_memory(descriptor: int) -> Memory:
    """The memory of a descriptor, which it takes over, even if it fails."""
    try:
        facts = os.fstat(descriptor)
        mapped = _C._map_file(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    made: Memory = _C._make_subclass(Memory, mapped, False)
    made.descriptor = descriptor
    _by_address[made.data_ptr()] = made
    # A file that is open here already is used by its first descriptor.
    return _by_file.setdefault((facts.st_dev, facts.st_ino), made)


def share(data: _C.Tensor) -> None:
    """Move the storage of a tensor of all its bytes to memory that processes share."""
    size = data.numel()
    # Tensors may reach beyond a storage that shrank, and no file of no bytes is mapped.
    rest = bytes(max(_C._storage_extent(data)[1], 1) - size)
    try:
        file = write("pydevtensor-tensor", [memoryview(data), memoryview(rest)])
        _C._storage_take(data, open_memory(file).elements())
    except OSError as error:
        raise RuntimeError(
            f"share_memory_(): no shared memory for {size} bytes ({error}); free "
            "memory or file descriptors (ulimit -n): each storage needs one"
        ) from error


def memory_of(tensor: _C.Tensor) -> Memory | None:
    """The shared memory that a CPU tensor uses; None where it uses other memory."""
    return _by_address.get(_C._storage_extent(tensor.detach())[0])
