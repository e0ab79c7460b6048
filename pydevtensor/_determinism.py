"""Whether a program asks for algorithms that give the same bits each time."""

from __future__ import annotations

import warnings

from pydevtensor import _C

__all__ = ["are_deterministic_algorithms_enabled", "use_deterministic_algorithms"]

_asked = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember whether the program wants the same bits each time.

    On the CPU every operation gives them, whatever the number of threads. On a GPU sums
    by index (index_add, scatter_add, index_put with accumulate=True, and the gradients
    of indexing) add in an order that varies: a warning says so.

    >>> torch.use_deterministic_algorithms(False)
    """
    global _asked
    _asked = bool(mode)
    if _asked and _C._cuda_count():
        warnings.warn(
            "on GPUs sums by index (index_add, scatter_add, gradients of indexing) add "
            "floats in an order that varies, and so does their rounding; compute "
            "those on the CPU where all bits have to be the same",
            UserWarning,
            stacklevel=2,
        )


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms() was called with.

    >>> torch.are_deterministic_algorithms_enabled()
    False
    """
    return _asked
