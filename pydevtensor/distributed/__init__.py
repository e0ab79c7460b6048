"""Programs of several processes, the ranks, by PyTorch's torch.distributed.

`python -m pydevtensor launch --nproc-per-node=4 train.py` starts four ranks on this
machine: docs/distributed.md.

Many calls take `group`, the ranks that make the call, which new_group() returns
(None: all); `async_op`, whether the call returns a Work at once; `timeout`, a
datetime.timedelta to wait for the other ranks; `backend`, its name. PyTorch's
`pg_options`, `device_id`, `device_ids`, `group_name`, `group_desc` and `device` are
taken and change nothing.
"""

from typing import Any as _Any

from pydevtensor._C import device as _device
from pydevtensor._names import publish as _publish
from pydevtensor.distributed._collectives import (
    ReduceOp,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from pydevtensor.distributed._errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
)
from pydevtensor.distributed._grad_bucket import GradBucket
from pydevtensor.distributed._groups import (
    Backend,
    GroupMember,
    ProcessGroup,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from pydevtensor.distributed._messages import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from pydevtensor.distributed._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from pydevtensor.distributed._rendezvous import rendezvous
from pydevtensor.distributed._stores import FileStore, HashStore, PrefixStore, Store
from pydevtensor.distributed._tcp_store import TCPStore
from pydevtensor.distributed._work import Work
from pydevtensor.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["Backend", "DeviceMesh", "DistBackendError", "DistError"]
__all__ += ["DistNetworkError", "init_device_mesh"]
__all__ += [
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
]
__all__ += ["PrefixStore", "ProcessGroup", "ReduceOp", "Store", "TCPStore", "Work"]
__all__ += ["all_gather", "all_gather_coalesced", "all_gather_into_tensor"]
__all__ += ["all_gather_object", "all_reduce", "all_reduce_coalesced", "all_to_all"]
__all__ += ["all_to_all_single", "barrier", "batch_isend_irecv", "broadcast"]
__all__ += ["broadcast_object_list", "default_pg_timeout", "destroy_process_group"]
__all__ += ["gather", "gather_object", "get_backend", "get_global_rank"]
__all__ += ["get_group_rank", "get_node_local_rank", "get_process_group_ranks"]
__all__ += ["get_rank", "get_world_size", "group", "init_process_group"]
__all__ += ["irecv", "is_available", "is_gloo_available", "is_initialized"]
__all__ += ["is_mpi_available", "is_nccl_available", "is_torchelastic_launched"]
__all__ += ["get_default_backend_for_device", "is_backend_available", "isend"]
__all__ += ["monitored_barrier", "new_group", "new_subgroups", "recv"]
__all__ += ["new_subgroups_by_enumeration"]
__all__ += ["recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor"]
__all__ += ["rendezvous", "scatter", "scatter_object_list", "send"]
__all__ += ["send_object_list"]


def is_available() -> bool:
    """True: processes can make groups.

    >>> torch.distributed.is_available()
    True
    """
    return True


def is_gloo_available() -> bool:
    """True: the backend gloo, for ranks of one machine, is available.

    >>> torch.distributed.is_gloo_available()
    True
    """
    return True


def is_nccl_available() -> bool:
    """Whether the backend nccl can be used: there is a GPU, and NCCL.

    >>> torch.distributed.is_nccl_available() in (True, False)
    True
    """
    from pydevtensor.distributed import _nccl_engine

    return _nccl_engine.is_there()


def is_mpi_available() -> bool:
    """Whether the backend mpi can be used: the package mpi4py is installed.

    >>> torch.distributed.is_mpi_available() in (True, False)
    True
    """
    from importlib.util import find_spec

    return find_spec("mpi4py") is not None


def is_backend_available(backend: str) -> bool:
    """Whether a backend of this name can be used.

    >>> torch.distributed.is_backend_available('gloo')
    True
    """
    asks = {"mpi": is_mpi_available, "nccl": is_nccl_available}
    asks["gloo"] = is_gloo_available
    return backend.lower() in asks and asks[backend.lower()]()


def get_default_backend_for_device(device: _Any) -> str:
    """The backend that init_process_group() takes for a device: 'gloo' or 'nccl'.

    >>> torch.distributed.get_default_backend_for_device('cpu')
    'gloo'
    """
    return Backend.default_device_backend_map[_device(device).type]


def is_torchelastic_launched() -> bool:
    """False: ranks that end are not started again.

    >>> torch.distributed.is_torchelastic_launched()
    False
    """
    return False


_publish(
    __name__,
    later=("algorithms", "checkpoint", "fsdp", "nn", "optim", "tensor"),
    errors=True,
)
