"""torch.autograd.grad_mode: whether operations are recorded."""

from __future__ import annotations

from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.autograd import (
    _Mode,
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "enable_grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class set_multithreading_enabled(_Mode):
    """Says whether backward passes may use several threads, here or in a block.

    The value is remembered and has no effect: a pass runs in the thread that calls it.

    mode: what is_multithreading_enabled() says.

    >>> with torch.autograd.set_multithreading_enabled(False):
    ...     torch.autograd.is_multithreading_enabled()
    False
    """

    _value = True

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._enabled = bool(mode)
        self._before = self._exchange(self._enabled)

    @staticmethod
    def _exchange(wanted: bool) -> bool:
        kind = set_multithreading_enabled
        before, kind._value = kind._value, wanted
        return before

    def __enter__(self) -> None:
        before = self._exchange(self._enabled)
        self._outer.append(before if self._before is None else self._before)

    def __exit__(self, *unused: object) -> None:
        self._exchange(self._outer.pop())

    def __call__(self, function: Any) -> Any:
        self._exchange(bool(self._before))
        return super().__call__(function)


def is_multithreading_enabled() -> bool:
    """Whether set_multithreading_enabled() allows several threads.

    >>> torch.autograd.is_multithreading_enabled()
    True
    """
    return set_multithreading_enabled._value


_publish(
    __name__,
    home_of=["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"],
)
