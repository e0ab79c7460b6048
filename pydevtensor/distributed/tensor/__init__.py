"""Tensors of which each rank has a part or a copy.

They move between ranks, and support elementwise operations, reductions and views.
"""

from pydevtensor._names import publish as _publish
from pydevtensor.distributed.device_mesh import DeviceMesh, init_device_mesh
from pydevtensor.distributed.tensor import _create, _placements
from pydevtensor.distributed.tensor._create import *  # noqa: F403
from pydevtensor.distributed.tensor._dtensor import DTensor, distribute_tensor
from pydevtensor.distributed.tensor._placements import *  # noqa: F403

__all__ = ["DTensor", "DeviceMesh", "distribute_tensor", "init_device_mesh"]
__all__ += [*_create.__all__, *_placements.__all__]

_publish(
    __name__,
    home_of=("DTensor", "Partial", "Placement", "Replicate", "Shard"),
)
