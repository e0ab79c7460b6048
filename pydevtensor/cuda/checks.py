"""Checks of kernels from source on simulated GPUs: kernel_checks() and KernelError."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any, Self

from pydevtensor import _C
from pydevtensor._C import AcceleratorError

__all__ = ["KernelError", "kernel_checks"]

_MODES = ("off", "warn", "error")
_lock = threading.Lock()
# The program's choices, of which the last holds; where there is none, the environment's
# does. A block's choice is here until the block is entered.
_chosen: list[tuple[str, weakref.ref[kernel_checks]]] = []


class _Thread(threading.local):
    def __init__(self) -> None:
        self.blocks: list[str] = []  # the modes of those that the thread is in
        self.applied = ""  # the mode that the simulator has for the thread


_thread = _Thread()
warned: set[Any] = set()  # what has been warned of since


class KernelError(AcceleratorError):
    """A mistake in a kernel from source that the checks have found.

    kind          'race', 'out_of_bounds', 'misaligned', 'null_pointer',
                  'wrong_memory', 'uninitialized', 'barrier', 'warp' or 'wait'
    line          in the kernel's source, from 1 on; None if it is unknown
    other_line    of the other access of a race, or of another thread's barrier
    kernel        its name
    block, thread   indices (x, y, z) of the thread

    >>> source = "__global__ void f(int *x) { x[threadIdx.x] = 1; }"
    >>> f = torch.cuda.compile_kernel(source)
    >>> x = torch.zeros(4, dtype=torch.int32, device='cuda')
    >>> try:
    ...     f(1, 5, (x,))
    ...     torch.cuda.synchronize()
    ... except torch.cuda.KernelError as error:
    ...     print(error.kind, error.line, error.thread)
    out_of_bounds 1 (4, 0, 0)
    """

    kind: str
    kernel: str
    line: int | None = None
    other_line: int | None = None
    block: tuple[int, int, int]
    thread: tuple[int, int, int]


class kernel_checks:
    """Choose what becomes of mistakes that the checks find in kernels from source.

    mode: 'error' (default): a KernelError at the next synchronization; 'warn': a
    warning of the same text; 'off': they are not looked for. It holds from now on; as a
    context manager, within the block, for the thread that enters it. A kernel that was
    compiled under 'off' is never checked; it is faster. PYDEVTENSOR_KERNEL_CHECKS
    chooses it for a program.

    >>> with torch.cuda.kernel_checks('off'):
    ...     f = torch.cuda.compile_kernel("__global__ void f(int *x) { *x = 1; }")
    >>> f.name
    'f'
    """

    def __init__(self, mode: str) -> None:
        if mode not in _MODES:
            raise ValueError(
                f"kernel_checks(): mode is {mode!r}; give 'off', 'warn' or 'error'"
            )
        self.mode = mode
        with _lock:
            # An object that is gone cannot be entered, so choices before it have ended.
            while len(_chosen) > 1 and _chosen[-1][1]() is None:
                del _chosen[-2]
            _chosen.append((mode, weakref.ref(self)))

    def __enter__(self) -> Self:
        with _lock:
            _chosen[:] = [each for each in _chosen if each[1]() is not self]
        _thread.blocks.append(self.mode)
        return self

    def __exit__(self, *_: Any) -> None:
        _thread.blocks.pop()

    def __repr__(self) -> str:
        return f"torch.cuda.kernel_checks({self.mode!r})"


def chosen() -> str:
    """The mode that holds now, in this thread."""
    if _thread.blocks:
        return _thread.blocks[-1]
    if _chosen:
        return _chosen[-1][0]
    named = os.environ.get("PYDEVTENSOR_KERNEL_CHECKS") or "error"
    if named not in _MODES:
        raise ValueError(
            f"PYDEVTENSOR_KERNEL_CHECKS is {named!r}; give off, warn or error"
        )
    return named


def program_level() -> int:
    """The stacklevel of a warning in the caller, for the line of the program."""
    folder = os.path.dirname(os.path.dirname(__file__))
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(folder):
        level, frame = level + 1, frame.f_back
    return level


def apply() -> None:
    """Tell the simulator, if the GPUs are its, before a launch."""
    mode = chosen()
    if _thread.applied != mode:
        if _C._device_properties(None)["simulated"]:
            _C._sim_control(f"checks {mode}")
        _thread.applied = mode
        warned.clear()
