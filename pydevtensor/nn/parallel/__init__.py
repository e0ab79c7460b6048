"""A module on several GPUs at once: each computes a part of the batch."""

from typing import TYPE_CHECKING

from pydevtensor._names import publish as _publish
from pydevtensor.nn.parallel import comm
from pydevtensor.nn.parallel.data_parallel import DataParallel, data_parallel
from pydevtensor.nn.parallel.parallel_apply import parallel_apply
from pydevtensor.nn.parallel.replicate import replicate
from pydevtensor.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs

if TYPE_CHECKING:
    from pydevtensor.nn.parallel import distributed
    from pydevtensor.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "comm", "data_parallel"]
__all__ += ["distributed", "gather", "parallel_apply", "replicate", "scatter"]
__all__ += ["scatter_kwargs"]

_publish(
    __name__, {"DistributedDataParallel": "distributed", "distributed": "distributed"}
)
