"""torch.accelerator: the GPUs, without saying of which kind."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C, cuda
from pydevtensor._names import publish as _publish

__all__ = ["current_accelerator", "current_device_index", "device_count"]
__all__ += ["current_stream", "device_index", "empty_cache", "get_memory_info"]
__all__ += ["is_available", "max_memory_allocated", "max_memory_reserved"]
__all__ += ["memory_allocated", "memory_reserved", "memory_stats"]
__all__ += ["reset_peak_memory_stats", "set_device_index", "set_stream", "synchronize"]


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


def set_stream(stream: Any) -> None:
    """Make a stream the current one of its device.

    >>> if torch.accelerator.is_available():
    ...     torch.accelerator.set_stream(torch.accelerator.current_stream())
    """
    cuda.set_stream(stream)


def current_stream(device: Any = None, /) -> Any:
    """The stream on which a GPU, by default the current one, computes.

    >>> if torch.accelerator.is_available():
    ...     stream = torch.accelerator.current_stream()
    """
    return cuda.current_stream(device)


class device_index(cuda.device):
    """A context in which a GPU is the current one; None changes nothing.

    >>> with torch.accelerator.device_index(None):
    ...     x = torch.ones(1)
    """

    def __init__(self, device: int | None, /) -> None:
        super().__init__(device)


def empty_cache() -> None:
    """Give memory of GPUs back that no tensor holds.

    >>> torch.accelerator.empty_cache()
    """
    cuda.empty_cache()


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes that tensors hold on a GPU, by default the current one.

    >>> if torch.accelerator.is_available():
    ...     count = torch.accelerator.memory_allocated()
    """
    return cuda.memory_allocated(device_index)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most that memory_allocated() was.

    >>> if torch.accelerator.is_available():
    ...     count = torch.accelerator.max_memory_allocated()
    """
    return cuda.max_memory_allocated(device_index)


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes that the allocator of a GPU holds, for tensors or to use again.

    >>> if torch.accelerator.is_available():
    ...     count = torch.accelerator.memory_reserved()
    """
    return cuda.memory_reserved(device_index)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most that memory_reserved() was.

    >>> if torch.accelerator.is_available():
    ...     count = torch.accelerator.max_memory_reserved()
    """
    return cuda.max_memory_reserved(device_index)


def memory_stats(device_index: Any = None, /) -> dict[str, int]:
    """Counts and bytes of a GPU's allocator, by name: cuda.memory_stats().

    >>> if torch.accelerator.is_available():
    ...     stats = torch.accelerator.memory_stats()
    """
    return cuda.memory_stats(device_index)


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Begin anew with the most that memory_allocated() and memory_reserved() were.

    >>> if torch.accelerator.is_available():
    ...     torch.accelerator.reset_peak_memory_stats()
    """
    cuda.reset_peak_memory_stats(device_index)


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Bytes of a GPU's memory that are free, and all of them.

    >>> if torch.accelerator.is_available():
    ...     free, total = torch.accelerator.get_memory_info()
    """
    return cuda.mem_get_info(device_index)


_publish(__name__)
