"""The search for NaN in backward passes."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled"]
__all__ += ["set_detect_anomaly"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LINES = 6  # of the program, the innermost ones


def _place() -> str:
    """The running lines of the program, without those of the package."""
    import traceback

    frames = [
        frame
        for frame, _ in traceback.walk_stack(sys._getframe(1))
        if not frame.f_code.co_filename.startswith(_PACKAGE)
    ]
    summary = traceback.StackSummary.extract(
        (frame, frame.f_lineno) for frame in reversed(frames[:_LINES])
    )
    return "".join(summary.format()).rstrip()


class set_detect_anomaly:
    """Look for NaN in backward passes, or stop; as a context manager, for a block.

    An operation that is recorded while the mode is on knows the lines of the program
    that called it. If its backward function fails in the mode, or gives NaN and
    check_nan is true, the RuntimeError shows these lines. Every check waits for a GPU,
    and every operation reads the stack, so the mode is for debugging. It is on for all
    threads.

    >>> x = torch.zeros(1, requires_grad=True)
    >>> with torch.autograd.set_detect_anomaly(True):
    ...     y = (x.sqrt() * 0).sum()
    ...     try:
    ...         y.backward()
    ...     except RuntimeError as error:
    ...         print(str(error).partition(';')[0])
    backward: SqrtBackward0 gave NaN as the gradient of its input 0
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _C._anomaly_mode(mode, check_nan, _place)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        _C._anomaly_mode(*self._before)


class detect_anomaly:
    """set_detect_anomaly(True) for a `with` block, with a warning that it is slow.

    check_nan: a NaN is an error too.

    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> with torch.autograd.detect_anomaly():
    ...     torch.is_anomaly_enabled()
    True
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        self._mode: Any = None
        warnings.warn(
            "detect_anomaly: each operation and its backward function are slower in "
            "this mode; use it for debugging only",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._mode = set_detect_anomaly(True, self._check_nan)

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)


def is_anomaly_enabled() -> bool:
    """Whether set_detect_anomaly() is on.

    >>> torch.is_anomaly_enabled()
    False
    """
    return _C._anomaly_mode()[0]


def is_anomaly_check_nan_enabled() -> bool:
    """Whether set_detect_anomaly() is on and looks for NaN.

    >>> with torch.autograd.set_detect_anomaly(True, check_nan=False):
    ...     torch.is_anomaly_check_nan_enabled()
    False
    """
    return all(_C._anomaly_mode())


_publish(__name__)
