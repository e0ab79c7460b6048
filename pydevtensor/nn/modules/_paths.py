"""The modules that run, by path, for pydevtensor.module_paths."""

from __future__ import annotations

import threading
from typing import Any

from pydevtensor import _C
from pydevtensor.nn.modules import _hooks


class PathFollower:
    """Gives the core the path of the module that runs, as "Net.layers.0".

    A path begins with the class of the outermost module.
    """

    def __init__(self) -> None:
        self._threads = threading.local()
        self._handles = [
            _hooks.register_module_forward_pre_hook(self._enter),
            _hooks.register_module_forward_hook(self._leave, always_call=True),
        ]

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _enter(self, module: Any, args: Any) -> None:
        stack = self._threads.__dict__.setdefault("stack", [])
        if not stack:
            root = type(module).__name__
            self._threads.paths = {
                id(m): f"{root}.{name}" if name else root
                for name, m in module.named_modules()
            }
        path = self._threads.paths.get(id(module))
        if path is None:  # made since the outermost call began
            path = f"{stack[-1][0]}.{type(module).__name__}"
        stack.append((path, _C._set_module_path(path)))

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        stack = self._threads.__dict__.get("stack")
        if stack:
            _C._set_module_path(stack.pop()[1])
