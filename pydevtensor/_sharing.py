"""Tensors that multiprocessing sends: those in shared memory by its descriptor."""

from __future__ import annotations

import os
from pickle import DEFAULT_PROTOCOL
from typing import Any

from pydevtensor import _C
from pydevtensor._shared_memory import Memory, memory_of, open_memory


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
    return open_memory(descriptor).elements()
