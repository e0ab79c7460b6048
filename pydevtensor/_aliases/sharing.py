"""Tensors in memory that processes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import method
from pydevtensor._shared_memory import share
from pydevtensor._sharing import register

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


@method()
def share_memory_(input: Tensor) -> Tensor:
    """Move the tensor's storage to memory that processes share; returns the tensor.

    A process that is forked, or that gets the tensor by multiprocessing (as an argument
    of a Process, through a Queue or a Pipe), uses the same memory: all see what one of
    them writes. Each storage takes a file descriptor; RuntimeError if none, or no
    memory, is left. All views of the storage move with it; arrays of NumPy that share
    its memory stay where they were. On a GPU it does nothing: a process that is
    spawned gets the same memory anyway.

    >>> torch.ones(2).share_memory_()
    tensor([1., 1.])
    """
    register(type(input))
    if not input.is_shared():
        share(_C._storage_bytes(input.detach()))
    return input
