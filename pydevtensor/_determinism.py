"""Whether a program asks for algorithms that give the same bits each time."""

from __future__ import annotations

import warnings

from pydevtensor import _C

__all__ = ["are_deterministic_algorithms_enabled", "get_deterministic_debug_mode"]
__all__ += ["is_deterministic_algorithms_warn_only_enabled"]
__all__ += ["set_deterministic_debug_mode", "use_deterministic_algorithms"]

_asked = _warn_only = False
_MODES = {"default": 0, "warn": 1, "error": 2}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember whether the program wants the same bits each time.

    On the CPU every operation gives them, whatever the number of threads. On a GPU sums
    by index (index_add, scatter_add, index_put with accumulate=True, and the gradients
    of indexing) add in an order that varies: a warning says so.

    mode: whether it does. warn_only: what
    is_deterministic_algorithms_warn_only_enabled() tells, and nothing else: no
    operation raises.

    >>> torch.use_deterministic_algorithms(False)
    """
    global _asked, _warn_only
    _asked, _warn_only = bool(mode), bool(warn_only)
    if _asked and _C._device_count("cuda"):
        warnings.warn(
            "on GPUs sums by index (index_add, scatter_add, gradients of indexing) add "
            "floats in an order that varies, and so does their rounding; compute "
            "those on the CPU where all bits have to be the same",
            UserWarning,
            stacklevel=2,
        )


def are_deterministic_algorithms_enabled() -> bool:
    """The mode that use_deterministic_algorithms() has set.

    >>> torch.are_deterministic_algorithms_enabled()
    False
    """
    return _asked


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether use_deterministic_algorithms() was last called with warn_only.

    >>> torch.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms() by a number or a name.

    debug_mode: 0 or 'default', off; 1 or 'warn', with warn_only; 2 or 'error', on.
    RuntimeError for others, TypeError for other types.

    >>> torch.set_deterministic_debug_mode('default')
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(
            f"set_deterministic_debug_mode(): debug_mode is {debug_mode!r}; give an "
            "int or a str"
        )
    mode = debug_mode if isinstance(debug_mode, int) else _MODES.get(debug_mode, -1)
    if mode not in _MODES.values():
        raise RuntimeError(
            f"set_deterministic_debug_mode(): debug_mode is {debug_mode!r}; give "
            "'default', 'warn' or 'error', or 0, 1 or 2"
        )
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """The number that set_deterministic_debug_mode() knows the mode by.

    >>> torch.get_deterministic_debug_mode()
    0
    """
    return (1 if _warn_only else 2) if _asked else 0
