"""torch.cuda.nvtx: names that NVIDIA's profilers show on their time line.

They are handed to libnvToolsExt, which CUDA had until version 12, where that is there;
without it nothing happens. torch.profiler.record_function() names parts of a profile of
this library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydevtensor._names import publish as _publish

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_LIBRARY = "libnvToolsExt.so.1"
_NO_DEPTH = -2  # what NVTX says while no profiler counts


_found: list[Any] = []  # what _open() returned


def _library() -> Any:
    """The library, or None."""
    if not _found:
        _found.append(_open())
    return _found[0]


def _open() -> Any:
    # Here, since they take longer to import than all of cuda.
    import ctypes
    from importlib.util import find_spec

    spec = find_spec("nvidia")
    folders = spec.submodule_search_locations or () if spec else ()
    packaged = (f"{folder}/nvtx/lib/{_LIBRARY}" for folder in folders)
    for path in (_LIBRARY, *packaged):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        library.nvtxRangeStartA.restype = ctypes.c_uint64
        library.nvtxRangeEnd.argtypes = [ctypes.c_uint64]
        return library
    return None


def _text(function: str, msg: str) -> bytes:
    if not isinstance(msg, str):
        raise TypeError(f"{function}(): msg is {msg!r}; give a str")
    return msg.encode()


def range_push(msg: str) -> int:
    """Begin a range in this thread; returns its depth from 0, or -2 if nobody counts.

    >>> depth = torch.cuda.nvtx.range_push('forward')
    >>> torch.cuda.nvtx.range_pop() == depth
    True
    """
    text, library = _text("range_push", msg), _library()
    return library.nvtxRangePushA(text) if library else _NO_DEPTH


def range_pop() -> int:
    """End this thread's last range; returns its depth from 0, or -2 if nobody counts.

    >>> depth = torch.cuda.nvtx.range_push('forward')
    >>> torch.cuda.nvtx.range_pop() == depth
    True
    """
    library = _library()
    return library.nvtxRangePop() if library else _NO_DEPTH


def range_start(msg: str) -> int:
    """Begin a range that any thread may end; returns what range_end() needs.

    >>> part = torch.cuda.nvtx.range_start('copy')
    >>> torch.cuda.nvtx.range_end(part)
    """
    text, library = _text("range_start", msg), _library()
    return library.nvtxRangeStartA(text) if library else 0


def range_end(range_id: int) -> None:
    """End a range of range_start().

    >>> torch.cuda.nvtx.range_end(torch.cuda.nvtx.range_start('copy'))
    """
    if isinstance(range_id, bool) or not isinstance(range_id, int):
        raise TypeError(
            f"range_end(): range_id is {range_id!r}; give what range_start() returned"
        )
    library = _library()
    if library:
        library.nvtxRangeEnd(range_id)


def mark(msg: str) -> None:
    """Mark a moment.

    >>> torch.cuda.nvtx.mark('epoch 3')
    """
    text, library = _text("mark", msg), _library()
    if library:
        library.nvtxMarkA(text)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range in a with statement or a decorator, named msg.format(*args, **kwargs).

    >>> with torch.cuda.nvtx.range('step {}', 3):
    ...     x = torch.ones(2)
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


_publish(__name__)
