"""The options of FullyShardedDataParallel."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pydevtensor._names import publish as _publish

__all__ = ["BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig"]
__all__ += ["FullStateDictConfig", "LocalOptimStateDictConfig", "LocalStateDictConfig"]
__all__ += ["MixedPrecision", "OptimStateDictConfig", "ShardedOptimStateDictConfig"]
__all__ += ["ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig"]
__all__ += ["StateDictSettings", "StateDictType"]


class ShardingStrategy(Enum):
    """Which tensors of a model are divided among the ranks.

    FULL_SHARD           parameters, gradients and the optimizer's states
    SHARD_GRAD_OP        the same, but parameters stay whole between the forward and
                         the backward pass
    NO_SHARD             none, as with DistributedDataParallel
    HYBRID_SHARD         FULL_SHARD along the second dimension of a device_mesh, with
                         copies along the first
    _HYBRID_SHARD_ZERO2  SHARD_GRAD_OP, likewise

    >>> torch.distributed.fsdp.ShardingStrategy.FULL_SHARD.name
    'FULL_SHARD'
    """

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


class BackwardPrefetch(Enum):
    """When the parameters of the unit that backward() needs next are gathered.

    BACKWARD_PRE   before this unit's gradients are computed, and meanwhile
    BACKWARD_POST  after that, while they are reduced

    >>> torch.distributed.fsdp.BackwardPrefetch.BACKWARD_PRE.name
    'BACKWARD_PRE'
    """

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class StateDictType(Enum):
    """The values that state_dict() has.

    FULL_STATE_DICT     whole tensors, which any program loads
    LOCAL_STATE_DICT    this rank's part of the flat parameters, for as many ranks
    SHARDED_STATE_DICT  this rank's rows of each parameter, for torch.distributed's
                        checkpoints, which any number of ranks loads

    >>> torch.distributed.fsdp.StateDictType.FULL_STATE_DICT.name
    'FULL_STATE_DICT'
    """

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


@dataclass
class MixedPrecision:
    """The types of elements that a unit computes and sends in; None: their own.

    param_dtype              the type in which parameters are gathered and used
    reduce_dtype             the type in which gradients are sent; None: param_dtype
    buffer_dtype             the type that floating buffers are converted to
    keep_low_precision_grads  NotImplementedError if True: gradients have the
                             parameter's type
    cast_forward_inputs      whether each unit's floating inputs are converted to
                             param_dtype
    cast_root_forward_inputs  whether those of the outermost unit are

    >>> torch.distributed.fsdp.MixedPrecision(torch.bfloat16).param_dtype
    torch.bfloat16
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Whether a unit's own part is in the host's memory, where it is updated.

    offload_params  whether parameters and gradients are there between their uses

    >>> torch.distributed.fsdp.CPUOffload().offload_params
    False
    """

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Options of state_dict().

    offload_to_cpu  whether its tensors are on the CPU

    >>> torch.distributed.fsdp.StateDictConfig().offload_to_cpu
    False
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Options of state_dict() with whole tensors.

    rank0_only  whether other ranks get an empty dict

    >>> torch.distributed.fsdp.FullStateDictConfig(rank0_only=True).rank0_only
    True
    """

    rank0_only: bool = False


class LocalStateDictConfig(StateDictConfig):
    """StateDictConfig, for LOCAL_STATE_DICT.

    >>> torch.distributed.fsdp.LocalStateDictConfig().offload_to_cpu
    False
    """


class ShardedStateDictConfig(StateDictConfig):
    """StateDictConfig, for SHARDED_STATE_DICT.

    >>> torch.distributed.fsdp.ShardedStateDictConfig().offload_to_cpu
    False
    """


@dataclass
class OptimStateDictConfig:
    """Options of optim_state_dict().

    offload_to_cpu  whether its tensors are on the CPU

    >>> torch.distributed.fsdp.OptimStateDictConfig().offload_to_cpu
    True
    """

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Options of optim_state_dict() with whole tensors.

    rank0_only  whether other ranks get an empty dict

    >>> torch.distributed.fsdp.FullOptimStateDictConfig().rank0_only
    False
    """

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """OptimStateDictConfig, for LOCAL_STATE_DICT.

    >>> torch.distributed.fsdp.LocalOptimStateDictConfig().offload_to_cpu
    False
    """

    offload_to_cpu: bool = False


class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """OptimStateDictConfig, for SHARDED_STATE_DICT.

    >>> torch.distributed.fsdp.ShardedOptimStateDictConfig().offload_to_cpu
    True
    """


@dataclass
class StateDictSettings:
    """The type of a model's state_dict(), and its options.

    state_dict_type          a StateDictType
    state_dict_config        options of state_dict()
    optim_state_dict_config  options of optim_state_dict()

    >>> torch.distributed.fsdp.StateDictSettings().state_dict_type.name
    'FULL_STATE_DICT'
    """

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: OptimStateDictConfig = field(
        default_factory=FullOptimStateDictConfig
    )


_publish(__name__, described=True)
