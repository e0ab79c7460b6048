"""DLPack under PyTorch's names."""

import enum

from pydevtensor import from_dlpack, to_dlpack
from pydevtensor._names import publish as _publish

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """The device types in `Tensor.__dlpack_device__()`.

    value  a type's number; ValueError for one that is not listed

    >>> torch.ones(2).__dlpack_device__()[0] == torch.utils.dlpack.DLDeviceType.kDLCPU
    True
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3


_publish(__name__)
