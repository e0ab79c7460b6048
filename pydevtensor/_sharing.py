"""Tensors that multiprocessing sends: shared memory by descriptor, GPUs' by handle."""

from __future__ import annotations

import os
import warnings
from pickle import DEFAULT_PROTOCOL
from typing import Any

from pydevtensor import _C
from pydevtensor._shared_memory import Memory, memory_of, open_memory
from pydevtensor._streams import Event
from pydevtensor.storage import UntypedStorage


def register(kind: type = _C.Tensor) -> None:
    """Let multiprocessing send tensors of a type by descriptor if they are shared.

    Their own pickles, which copy, stay those of all other picklers.
    """
    from multiprocessing.reduction import ForkingPickler

    from pydevtensor.nn import Buffer

    ForkingPickler.register(Memory, _reduce_memory)
    ForkingPickler.register(Event, reduce_event)
    ForkingPickler.register(UntypedStorage, _reduce_storage)
    for each in (_C.Tensor, Buffer, kind):
        if each.__reduce_ex__ is _C.Tensor.__reduce_ex__:
            ForkingPickler.register(each, reduce_tensor)


def reduce_tensor(tensor: _C.Tensor) -> Any:
    """The function and the arguments with which another process makes the tensor.

    One of a GPU has its memory there, which stays until that process lets go of it:
    so whatever this returns has to be used, once. Memory of the CPU is shared after
    share_memory_(), and else copied. RuntimeError for a tensor with a grad_fn, and for
    memory of a GPU that another process, or another library, allocated.

    tensor  what is sent
    """
    from pydevtensor._functions.interop import _check_leaf

    if tensor.device.type == "cuda":
        _check_leaf("multiprocessing", tensor)
        return _reduce_cuda(tensor)
    memory = memory_of(tensor) if tensor.device.type == "cpu" else None
    if memory is None:
        return tensor.__reduce_ex__(DEFAULT_PROTOCOL)
    _check_leaf("multiprocessing", tensor)
    place = tensor.shape, tensor.stride(), tensor.storage_offset()
    return _rebuild, (memory, tensor.dtype, *place, tensor.requires_grad)


def _rebuild(elements: _C.Tensor, *given: Any) -> _C.Tensor:
    return _C._storage_view(elements, *given)


# --- memory of GPUs ------------------------------------------------------------------

_warns = False  # at its end, of what others still use


def _reduce_cuda(tensor: _C.Tensor) -> Any:
    global _warns
    if not _warns:
        from multiprocessing.util import Finalize

        _warns = True
        Finalize(None, _warn_at_end, exitpriority=0)
    storage = tensor.untyped_storage()
    place = tensor.shape, tensor.stride(), tensor.storage_offset()
    shared = storage._share_cuda_()
    kinds = type(storage), tensor.dtype
    facts = (*kinds, *shared[:4], tensor.requires_grad, *shared[4:])
    return rebuild_cuda_tensor, (type(tensor), *place, *facts)


def _warn_at_end() -> None:
    if left := _C._ipc_collect():
        warnings.warn(
            "this process ends, and other processes still use the memory of tensors of "
            f"GPUs that it sent ({left}); let it run until they have copied them",
            stacklevel=2,
        )


def rebuild_cuda_tensor(
    tensor_cls: Any,
    tensor_size: Any,
    tensor_stride: Any,
    tensor_offset: int,
    storage_cls: Any,
    dtype: _C.dtype,
    storage_device: int,
    storage_handle: bytes | None,
    storage_size_bytes: int,
    storage_offset_bytes: int,
    requires_grad: bool,
    ref_counter_handle: bytes,
    ref_counter_offset: int,
    event_handle: bytes,
    event_sync_required: bool,
) -> _C.Tensor:
    """The tensor of a GPU that another process sent, over the same memory.

    The arguments are those that reduce_tensor() gave there. The current stream waits
    for what its sender had queued. RuntimeError if the sender has ended, or if this
    process does not see the device.
    """
    from pydevtensor.nn import Parameter

    register()
    if storage_device >= (count := _C._device_count("cuda")):
        raise RuntimeError(
            f"multiprocessing: a Tensor on cuda:{storage_device} was sent, and this "
            f"process sees {count} CUDA devices; let both processes see the same ones"
        )
    storage = storage_cls._new_shared_cuda(
        storage_device,
        storage_handle,
        storage_size_bytes,
        storage_offset_bytes,
        ref_counter_handle,
        ref_counter_offset,
        event_handle,
        event_sync_required,
    )
    made = _rebuild(storage._elements, dtype, tensor_size, tensor_stride, tensor_offset)
    if tensor_cls is Parameter:
        return Parameter(made, requires_grad)
    return made.requires_grad_(requires_grad) if requires_grad else made


def reduce_event(event: Event) -> Any:
    """The function and the arguments with which another process opens an event.

    RuntimeError if it was not made with interprocess=True.

    event  what is sent
    """
    handle = event.ipc_handle()
    return rebuild_event, (event.device, handle)


def rebuild_event(device: Any, handle: bytes) -> Event:
    """The event of another process; see Event.from_ipc_handle().

    device  its GPU
    handle  the bytes of its ipc_handle()
    """
    return Event.from_ipc_handle(device, handle)


def _reduce_storage(storage: UntypedStorage) -> Any:
    if storage.is_cuda:
        raise RuntimeError(
            "multiprocessing: a storage of a GPU cannot be sent; send a Tensor over it"
        )
    return storage.__reduce_ex__(DEFAULT_PROTOCOL)


# --- memory of the CPU ---------------------------------------------------------------


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
    return open_memory(descriptor).elements()
