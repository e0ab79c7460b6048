"""torch.cpu: the CPU, asked as GPUs are; work on it is done when a call returns."""

from __future__ import annotations

from typing import Any

from pydevtensor._answers import answer as _answer
from pydevtensor._names import publish as _publish

__all__ = ["current_device", "device_count", "is_available", "is_initialized"]
__all__ += ["set_device", "synchronize"]

is_available = _answer(__name__, "is_available", True)
is_initialized = _answer(__name__, "is_initialized", True)
device_count = _answer(__name__, "device_count", 1)
current_device = _answer(__name__, "current_device", "cpu")


def set_device(device: Any) -> None:
    """Nothing: there is one CPU, whatever device names.

    >>> torch.cpu.set_device('cpu')
    """


def synchronize(device: Any = None) -> None:
    """Nothing: there is no work to wait for. device has no effect.

    >>> torch.cpu.synchronize()
    """


_publish(__name__)
