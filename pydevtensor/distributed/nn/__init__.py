"""Calls of all ranks that gradients pass through."""

from pydevtensor._names import publish as _publish
from pydevtensor.distributed.nn import functional
from pydevtensor.distributed.nn.functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast"]
__all__ += ["functional", "gather", "reduce", "reduce_scatter", "scatter"]

_publish(__name__)
