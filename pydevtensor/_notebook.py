"""Jupyter and IPython sessions: memory after an error.

The traceback of the last error keeps the frames of the functions that failed, and so
their tensors: after a GPU has run out of memory, the next cell would find it just as
full.
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Any

_FREED = (
    "pydevtensor: the tensors of the functions that failed are freed; those that the "
    "notebook's own variables hold are alive (del them)"
)


def watch(error: type[BaseException]) -> None:
    """Let the session show errors of this type and then free what their frames hold."""
    shell = sys.modules["IPython"].get_ipython()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((error,), _show)


def _show(
    shell: Any,
    kind: type[BaseException],
    error: BaseException | None,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__
    print(_FREED, file=sys.stderr)
