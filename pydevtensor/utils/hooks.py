"""Hooks' handles, by PyTorch's torch.utils.hooks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.autograd import RemovableHandle as RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook f as one that is not saved with its tensor; returns f.

    >>> torch.utils.hooks.unserializable_hook(print) is print
    True
    """
    with contextlib.suppress(AttributeError):  # which a function in C raises
        f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


_publish(__name__, home_of=("RemovableHandle",))
