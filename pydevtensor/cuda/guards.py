"""The guard of copies between devices: cuda.transfer_guard."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, Self, TypeVar

from pydevtensor import _C

__all__ = ["transfer_guard"]

P = ParamSpec("P")
R = TypeVar("R")

_MODES = ("allow", "log", "disallow_implicit", "disallow")
_DIRECTIONS = ("host_to_device", "device_to_host", "device_to_device")
_VARIABLE = "PYDEVTENSOR_TRANSFER_GUARD"


def _rule(where: str, mode: object) -> int:
    if mode not in _MODES:
        raise ValueError(
            f"{where} is {mode!r}; give 'allow', 'log', 'disallow_implicit' or "
            "'disallow'"
        )
    return _MODES.index(mode) + 1  # 0: as outside


class transfer_guard:
    """Allow, log or refuse copies between devices: a context manager and a decorator.

    mode              of copies in all directions
    host_to_device, device_to_host, device_to_device   of copies in one direction

    'allow' lets copies be, 'log' writes a line for each to the logger
    "pydevtensor.transfers", 'disallow_implicit' raises RuntimeError for copies that the
    program did not ask for by name, such as those of item(), tolist(), print() and
    nonzero(), and lets to(), cpu(), cuda(), copy_() and device= be, and 'disallow'
    raises for all. A direction that is not given keeps its outer setting. It holds for
    the thread that enters it. For a whole program, set PYDEVTENSOR_TRANSFER_GUARD to a
    mode, or to some such as "device_to_host=disallow,host_to_device=log".

    >>> with torch.cuda.transfer_guard("disallow_implicit"):
    ...     x = torch.ones(3).to("cuda")
    >>> x.sum().item()
    3.0
    """

    def __init__(
        self,
        mode: str | None = None,
        *,
        host_to_device: str | None = None,
        device_to_host: str | None = None,
        device_to_device: str | None = None,
    ) -> None:
        self._rules = [0, 0, 0]
        if mode is not None:
            self._rules = [_rule("transfer_guard(): mode", mode)] * 3
        given = (host_to_device, device_to_host, device_to_device)
        for i, (name, value) in enumerate(zip(_DIRECTIONS, given, strict=True)):
            if value is not None:
                self._rules[i] = _rule(f"transfer_guard(): {name}", value)
        if not any(self._rules):
            raise TypeError(
                "transfer_guard(): give a mode, such as 'disallow', or one for a "
                "direction, such as device_to_host='log'"
            )
        self._before: list[tuple[int, int, int]] = []

    def __enter__(self) -> Self:
        outside = _C._transfer_rules(True, *self._rules)
        self._before.append(outside)
        inside = [own or out for own, out in zip(self._rules, outside, strict=True)]
        _C._transfer_rules(True, *inside)
        return self

    def __exit__(self, *error: object) -> Literal[False]:
        _C._transfer_rules(True, *self._before.pop())
        return False

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return guarded


def log(text: str) -> None:
    """Write a copy to the log; called by the library's core."""
    import logging

    logging.getLogger("pydevtensor.transfers").warning(text)


def read_environment() -> None:
    """Take the rules of PYDEVTENSOR_TRANSFER_GUARD for the process."""
    rules: dict[str, Any] = dict.fromkeys(_DIRECTIONS, 0)
    for part in os.environ.get(_VARIABLE, "").replace(" ", "").split(","):
        direction, equals, mode = part.rpartition("=")
        if equals and direction not in _DIRECTIONS:
            raise ValueError(
                f"{_VARIABLE}: {direction!r} is not a direction; give host_to_device, "
                "device_to_host or device_to_device"
            )
        if part:
            rule = _rule(f"{_VARIABLE}: the mode", mode)
            rules.update({d: rule for d in _DIRECTIONS if not equals or d == direction})
    _C._transfer_rules(False, *rules.values())
