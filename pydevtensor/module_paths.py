"""The path of the module of nn that runs, for what profiles and histories record.

nn, which is above them, follows the calls of modules: it hands over what does so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["ModulePaths"]

_follow: Callable[[], Any] | None = None  # nn's; its result has a remove()
_following: Any = None
_wanted: set[ModulePaths] = set()


class ModulePaths:
    """Lets the core know the path of the module that runs, until remove().

    >>> from pydevtensor.module_paths import ModulePaths
    >>> paths = ModulePaths()
    >>> paths.remove()
    """

    def __init__(self) -> None:
        _wanted.add(self)
        _update()

    def remove(self) -> None:
        _wanted.discard(self)
        _update()


def follow_with(follow: Callable[[], Any]) -> None:
    """Call follow() to follow modules, from when paths are wanted on."""
    global _follow
    _follow = follow
    _update()


def _update() -> None:
    global _following
    if _wanted and _follow and _following is None:
        _following = _follow()
    elif not _wanted and _following is not None:
        _following.remove()
        _following = None
