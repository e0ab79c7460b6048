"""Modules of whose parameters each rank has a share.

A module's parameters are gathered before its forward pass and again for its backward
pass; gradients are reduced to the share of each rank. fully_shard() divides the rows of
each parameter, FullyShardedDataParallel those of a unit together.
"""

from typing import TYPE_CHECKING

from pydevtensor._names import publish as _publish
from pydevtensor.distributed.fsdp._fully_shard import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)
from pydevtensor.distributed.fsdp.api import *
from pydevtensor.distributed.fsdp.fully_sharded_data_parallel import (
    FlatParameter,
    FullyShardedDataParallel,
)

if TYPE_CHECKING:
    from pydevtensor.distributed.fsdp import wrap

__all__ = ["BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule"]
__all__ += ["FlatParameter", "OffloadPolicy", "UnshardHandle"]
__all__ += ["register_fsdp_forward_method"]
__all__ += ["FullOptimStateDictConfig", "FullStateDictConfig"]
__all__ += ["FullyShardedDataParallel", "LocalOptimStateDictConfig"]
__all__ += ["LocalStateDictConfig", "MixedPrecision", "MixedPrecisionPolicy"]
__all__ += ["OptimStateDictConfig", "ShardedOptimStateDictConfig"]
__all__ += ["ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig"]
__all__ += ["StateDictSettings", "StateDictType", "fully_shard", "wrap"]

_publish(
    __name__,
    later=("wrap",),
    home_of=(
        "CPUOffloadPolicy",
        "FSDPModule",
        "FlatParameter",
        "MixedPrecisionPolicy",
        "OffloadPolicy",
        "UnshardHandle",
    ),
)
