"""Ranks of one machine, which exchange tensors in shared memory.

csrc/cpu/runtime/group.h does it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, NamedTuple

from pydevtensor import _C
from pydevtensor.distributed._errors import DistBackendError
from pydevtensor.distributed._stores import Store

Call = tuple[str, str, str, float]  # as dt_group_call
Tensors = tuple[Any, ...] | None


class Buffers(NamedTuple):
    """The contiguous tensors of the host that a rank gives and takes in an exchange.

    As in dt_group_exchange: `segments` inputs, and an output for each rank, or one with
    a reduction. The same tuple for both: in place.
    """

    inputs: Tensors
    outputs: Tensors
    segments: int = 1
    reduction: str | None = None


def machine() -> str:
    """Differs between machines, and between containers of one."""
    boot = "?"
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    return f"{boot} {os.stat('/proc/self/ns/pid').st_ino}"


class NoEngine:
    """Stands for the CPU in a group of nccl whose ranks are on several machines."""

    def run(self, *given: Any) -> None:
        """Refuses."""
        raise DistBackendError(
            "the backend nccl exchanges tensors of GPUs, and the group's ranks are on "
            "several machines; move the tensor to a GPU, or use the backend "
            "'cpu:mpi,cuda:nccl' for both"
        )

    send = receive = run

    def tell(self, rank: int) -> tuple[str, str]:
        """No reason and no last call."""
        return "", "is not known"

    def close(self, why: str = "") -> None:
        """Nothing is to be left."""


class SharedEngine:
    """A rank's end of a group in shared memory."""

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self._group = _C._group_open(self._descriptor(store, rank, size), rank, size)
        self.queue = _C._group_queue(self._group)

    def _descriptor(self, store: Store, rank: int, size: int) -> int:
        """The memory that rank 0 has made, and keeps open while it is in the group."""
        if rank == 0:
            made = int(_C._group_create(size))
            store.set("memory", f"/proc/{os.getpid()}/fd/{made}\n{machine()}")
            return made
        path, where = store.get("memory").decode().split("\n")
        if where != machine():
            raise DistBackendError(
                f"rank {rank} is not on the machine, or in the "
                "container, of rank 0, and the backend gloo is memory that ranks of "
                "one machine share; use 'mpi' across machines, or 'nccl' for GPUs"
            )
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise DistBackendError(
                f"rank {rank} cannot open the memory of rank 0 "
                f"({error}); it has ended, or belongs to another user"
            ) from None

    def run(self, call: Call, buffers: Buffers) -> None:
        """An exchange, as dt_group_run says it."""
        _C._group_run(self._group, call, *buffers)

    def send(self, call: Call, peer: int, tag: int, tensor: Any) -> None:
        """Send a tensor to a rank."""
        _C._group_message(self._group, call, True, peer, tag, tensor)

    def receive(self, call: Call, peer: int, tag: int, tensor: Any) -> int:
        """Receive a tensor from a rank, or any (-1). The rank."""
        return int(_C._group_message(self._group, call, False, peer, tag, tensor))

    def tell(self, rank: int) -> tuple[str, str]:
        """Why a rank will not come, '' where it still may; and its last call."""
        found: tuple[str, str] = _C._group_tell(self._group, rank)
        return found

    def close(self, why: str = "") -> None:
        """Leave the group; the others' messages say why."""
        _C._group_close(self._group, why)
