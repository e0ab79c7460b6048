"""Whether a program asks for algorithms that give the same bits each time."""

from __future__ import annotations

from pydevtensor import _C

__all__ = ["are_deterministic_algorithms_enabled", "get_deterministic_debug_mode"]
__all__ += ["is_deterministic_algorithms_warn_only_enabled"]
__all__ += ["set_deterministic_debug_mode", "use_deterministic_algorithms"]

_warn_only = False
_MODES = {"default": 0, "warn": 1, "error": 2}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Choose whether GPUs give the same bits in every run.

    On the CPU every operation does, whatever the number of threads. On a GPU sums by
    index (index_add, scatter_add, index_put with accumulate=True, bincount with
    weights, and the gradients of indexing and of embeddings) add floats in an order
    that varies, and of several values for one element any may be written. With this
    mode they sort the indices first, then add in one order and write the last value,
    which takes longer. All other operations always give the same bits, also those for
    which PyTorch raises an error in this mode.

    mode: whether it does. warn_only: what
    is_deterministic_algorithms_warn_only_enabled() gives, and nothing else: no
    operation warns or raises.

    >>> torch.use_deterministic_algorithms(True)
    >>> torch.zeros(2).index_add(0, torch.tensor([1, 1]), torch.tensor([1.0, 2.0]))
    tensor([0., 3.])
    >>> torch.use_deterministic_algorithms(False)
    """
    global _warn_only
    _warn_only = bool(warn_only)
    _C._deterministic(bool(mode))


def are_deterministic_algorithms_enabled() -> bool:
    """The mode that use_deterministic_algorithms() has set.

    >>> torch.are_deterministic_algorithms_enabled()
    False
    """
    return _C._deterministic()


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
    return (1 if _warn_only else 2) if _C._deterministic() else 0
