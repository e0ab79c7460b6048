"""torch.cpu: the CPU, asked as GPUs are; work on it is done when a call returns."""

from __future__ import annotations

from typing import Any

from pydevtensor._names import publish as _publish

__all__ = ["current_device", "device_count", "is_available", "is_initialized"]
__all__ += ["set_device", "synchronize"]


def is_available() -> bool:
    """True.

    >>> torch.cpu.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """True.

    >>> torch.cpu.is_initialized()
    True
    """
    return True


def device_count() -> int:
    """1, however many cores there are.

    >>> torch.cpu.device_count()
    1
    """
    return 1


def current_device() -> str:
    """The name of the only one.

    >>> torch.cpu.current_device()
    'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is one CPU, whatever device names.

    >>> torch.cpu.set_device('cpu')
    """


def synchronize(device: Any = None) -> None:
    """Nothing: there is no work to wait for. device has no effect.

    >>> torch.cpu.synchronize()
    """


_publish(__name__)
