"""DLPack under PyTorch's names."""

import enum

from pydevtensor import from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """The device types in `Tensor.__dlpack_device__()`."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
