"""Ways in which DistributedDataParallel sends gradients."""

from pydevtensor._names import publish as _publish

__all__ = ["ddp_comm_hooks"]

_publish(__name__, later=__all__)
