"""Memory that processes share: files without a name, which live in RAM.

A process that has the descriptor of such a file maps it. Forked processes inherit both;
others get the descriptor from multiprocessing, with the pickle of a tensor. The file is
gone when the last descriptor and mapping are, however their processes end.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from pickle import DEFAULT_PROTOCOL
from typing import Any

from pydevtensor import _C

_ALIGN = 64


class Memory(_C.Tensor):
    """The bytes of a mapped file, and its descriptor, which is closed with them.

    The storages of tensors are other ones over the same bytes, and keep it.
    """

    descriptor: int

    def __del__(self) -> None:
        os.close(self.descriptor)

    def elements(self) -> _C.Tensor:
        """The bytes as a tensor that has a storage of its own."""
        return _C.frombuffer(self, dtype=_C.uint8)


# By address and by file, for as long as they are used. Forked processes have a copy.
_by_address: weakref.WeakValueDictionary[int, Memory] = weakref.WeakValueDictionary()
_by_file: weakref.WeakValueDictionary[Any, Memory] = weakref.WeakValueDictionary()


def write(name: str, buffers: Iterable[memoryview]) -> tuple[int, list[slice]]:
    """A descriptor of a new file with the buffers, and where they are in it."""
    size, places = 0, []
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        for raw in buffers:
            places.append(slice(size, size + raw.nbytes))
            # Unlike a store to a mapping, a write reports that no memory is left.
            while raw:
                count = os.pwrite(descriptor, raw, size)
                raw, size = raw[count:], size + count
            size += -size % _ALIGN
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, places


def _open(descriptor: int) -> Memory:
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


def shared_copy(data: _C.Tensor) -> _C.Tensor:
    """A copy of a tensor of bytes in memory that processes share."""
    size = data.numel()
    try:
        # A file of no bytes cannot be mapped.
        filled = memoryview(data) if size else memoryview(b"\0")
        descriptor, _ = write("pydevtensor-tensor", [filled])
        return _open(descriptor).elements()[:size]
    except OSError as error:
        raise RuntimeError(
            f"share_memory_(): no shared memory for {size} bytes ({error}); free "
            "memory or file descriptors (ulimit -n): each storage needs one"
        ) from error


def memory_of(tensor: _C.Tensor) -> Memory | None:
    """The shared memory that a CPU tensor uses; None where it uses other memory."""
    return _by_address.get(_C._storage_bytes(tensor.detach()).data_ptr())


# --- to other processes -------------------------------------------------------------


def register(kind: type = _C.Tensor) -> None:
    """Let multiprocessing send tensors of a type by descriptor if they are shared.

    Their own pickles, which copy, stay those of all other picklers.
    """
    from multiprocessing.reduction import ForkingPickler

    from pydevtensor.nn import Buffer

    ForkingPickler.register(Memory, _reduce_memory)
    for each in (_C.Tensor, Buffer, kind):
        if each.__reduce_ex__ is _C.Tensor.__reduce_ex__:
            ForkingPickler.register(each, _reduce)


def _reduce(tensor: _C.Tensor) -> Any:
    from pydevtensor._functions.interop import _check_leaf

    memory = memory_of(tensor) if tensor.device.type == "cpu" else None
    if memory is None:
        return tensor.__reduce_ex__(DEFAULT_PROTOCOL)
    _check_leaf("multiprocessing", tensor)
    place = tensor.shape, tensor.stride(), tensor.storage_offset()
    return _rebuild, (memory, tensor.dtype, *place, tensor.requires_grad)


def _rebuild(elements: _C.Tensor, *given: Any) -> _C.Tensor:
    return _C._storage_view(elements, *given)


def _reduce_memory(memory: Memory) -> Any:
    """Once for a pickle, whatever tensors in it use the memory."""
    from multiprocessing import context, reduction, resource_sharer

    spawning: Any = context.get_spawning_popen()
    send: Any = reduction.DupFd
    if getattr(spawning, "method", "") == "forkserver":
        send = resource_sharer.DupFd  # a new process takes about 250 from the server
    return _receive, (send(memory.descriptor),)


def _receive(sent: Any) -> _C.Tensor:
    register()
    try:
        descriptor = sent.detach()
    except (EOFError, OSError, RuntimeError) as error:
        kind = RuntimeError if isinstance(error, RuntimeError) else ConnectionError
        raise kind(
            f"multiprocessing: a Tensor's shared memory was not received ({error!r}); "
            "its sender has to run until then, and this process needs a free file "
            "descriptor (ulimit -n)"
        ) from error
    os.set_inheritable(descriptor, False)
    return _open(descriptor).elements()
