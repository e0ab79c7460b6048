"""torch.mps: pydevtensor does not use Apple GPUs."""

from pydevtensor._names import publish as _publish

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """False: pydevtensor does not use Apple GPUs.

    >>> torch.mps.is_available()
    False
    """
    return False


def device_count() -> int:
    """0: pydevtensor does not use Apple GPUs.

    >>> torch.mps.device_count()
    0
    """
    return 0


_publish(__name__)
