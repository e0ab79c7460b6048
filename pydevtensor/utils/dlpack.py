"""DLPack under the names that programs import: capsules and their devices."""

import enum

from pydevtensor import from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """The first number of `Tensor.__dlpack_device__()`, as far as Tensors have it."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
