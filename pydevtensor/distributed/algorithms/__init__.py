"""Ways in which DistributedDataParallel sends gradients, and checkpointed modules."""

from typing import TYPE_CHECKING

from pydevtensor._names import publish as _publish

if TYPE_CHECKING:
    from pydevtensor.distributed.algorithms import ddp_comm_hooks

__all__ = ["ddp_comm_hooks"]

_publish(__name__, later=[*__all__, "_checkpoint"])
