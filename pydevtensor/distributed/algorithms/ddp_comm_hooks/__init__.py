"""Hooks for DistributedDataParallel.register_comm_hook()."""

from typing import TYPE_CHECKING

from pydevtensor._names import publish as _publish

if TYPE_CHECKING:
    from pydevtensor.distributed.algorithms.ddp_comm_hooks import default_hooks

__all__ = ["default_hooks"]

_publish(__name__, later=__all__)
