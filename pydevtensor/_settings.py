"""Settings of PyTorch that programs make and that change nothing here."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pydevtensor import _C

__all__ = ["get_device_module", "get_num_interop_threads"]
__all__ += ["is_warn_always_enabled", "set_flush_denormal", "set_num_interop_threads"]
__all__ += ["set_warn_always"]

_state = {"threads": 1, "always": False}


def get_num_interop_threads() -> int:
    """The number that set_num_interop_threads() has set; operations run one by one.

    >>> torch.get_num_interop_threads()
    1
    """
    return int(_state["threads"])


def set_num_interop_threads(num: int) -> None:
    """Remember num, a number of threads; set_num_threads() sets what operations use.

    RuntimeError for a number below 1.

    >>> torch.set_num_interop_threads(1)
    """
    if not isinstance(num, int) or isinstance(num, bool) or num < 1:
        raise RuntimeError(
            f"set_num_interop_threads(): num is {num!r}; give an int of 1 or more"
        )
    _state["threads"] = num


def is_warn_always_enabled() -> bool:
    """The setting of set_warn_always().

    >>> torch.is_warn_always_enabled()
    False
    """
    return bool(_state["always"])


def set_warn_always(b: bool, /) -> None:
    """Remember b, whether warnings are to be repeated; Python's filters decide here.

    RuntimeError for a value that is not a bool.

    >>> torch.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"set_warn_always(): {b!r} was given; give True or False")
    _state["always"] = b


def set_flush_denormal(mode: bool) -> bool:
    """Ask for denormal numbers to be 0; False, since they never are.

    mode: a bool (TypeError), which has no effect.

    >>> torch.set_flush_denormal(True)
    False
    """
    if not isinstance(mode, bool):
        raise TypeError(f"set_flush_denormal(): mode is {mode!r}; give True or False")
    return False


def get_device_module(device: Any = None) -> ModuleType:
    """torch.cpu or torch.cuda: the module of a device.

    device: its name, index or torch.device; None means a GPU where there is one.

    >>> torch.get_device_module('cuda') is torch.cuda
    True
    """
    from pydevtensor import cpu, cuda

    on_gpu = cuda.is_available() if device is None else _is_gpu(device)
    return cuda if on_gpu else cpu


def _is_gpu(device: Any) -> bool:
    return _C.device(device).type == "cuda"
