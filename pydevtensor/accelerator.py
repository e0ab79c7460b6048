"""torch.accelerator: the GPUs, without saying of which kind."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C, cuda
from pydevtensor._names import publish as _publish

__all__ = ["current_accelerator", "current_device_index", "device_count"]
__all__ += ["is_available", "set_device_index", "synchronize"]


def is_available() -> bool:
    """Whether there is a GPU, real or simulated.

    >>> torch.accelerator.is_available() == torch.cuda.is_available()
    True
    """
    return cuda.is_available()


def device_count() -> int:
    """The number of GPUs.

    >>> torch.accelerator.device_count() == torch.cuda.device_count()
    True
    """
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> _C.device | None:
    """The device 'cuda', or None where there is no GPU.

    >>> str(torch.accelerator.current_accelerator()) in ('cuda', 'None')
    True
    """
    return _C.device("cuda") if is_available() else None


def current_device_index() -> int:
    """The number of the current GPU.

    >>> torch.accelerator.current_device_index() if torch.cuda.is_available() else 0
    0
    """
    return cuda.current_device()


def set_device_index(device: Any, /) -> None:
    """Make a GPU the current one.

    >>> if torch.accelerator.is_available():
    ...     torch.accelerator.set_device_index(0)
    """
    cuda.set_device(device)


def synchronize(device: Any = None, /) -> None:
    """Wait for all work of a GPU, by default the current one.

    >>> if torch.accelerator.is_available():
    ...     torch.accelerator.synchronize()
    """
    cuda.synchronize(device)


_publish(__name__)
