"""Modules of whose parameters each rank has a share of the rows.

A module's parameters are gathered before its forward pass and again for its backward
pass; gradients are reduced to the rows of each rank.
"""

from pydevtensor._names import publish as _publish
from pydevtensor.distributed.fsdp._fully_shard import (
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
)

__all__ = ["FSDPModule", "MixedPrecisionPolicy", "fully_shard"]

_publish(__name__, home_of=("FSDPModule", "MixedPrecisionPolicy"))
