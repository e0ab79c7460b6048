"""torch.xpu: pydevtensor does not use Intel GPUs."""

from pydevtensor._names import publish as _publish

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """False: pydevtensor does not use Intel GPUs.

    >>> torch.xpu.is_available()
    False
    """
    return False


def device_count() -> int:
    """0: pydevtensor does not use Intel GPUs.

    >>> torch.xpu.device_count()
    0
    """
    return 0


_publish(__name__)
