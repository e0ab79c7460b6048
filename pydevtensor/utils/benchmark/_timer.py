"""Measures statements as timeit does, with all work on GPUs in the time."""

from __future__ import annotations

import enum
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import dedent
from typing import Any

import pydevtensor
from pydevtensor import _C
from pydevtensor.utils.benchmark._measurement import Measurement, TaskSpec


def timer() -> float:
    """The time in seconds, after the work on GPUs that this process has started.

    >>> from pydevtensor.utils.benchmark import timer
    >>> start = timer()
    >>> timer() >= start
    True
    """
    if _C._device_loaded("cuda"):
        pydevtensor.cuda.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """The language of a statement; statements in C++ are not measured here.

    >>> from pydevtensor.utils.benchmark import Language
    >>> Language.PYTHON.name
    'PYTHON'
    """

    PYTHON = 0
    CPP = 1


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Let functions use n threads inside of a with statement.

    >>> from pydevtensor.utils.benchmark import set_torch_threads
    >>> with set_torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = _C.get_num_threads()
    try:
        _C.set_num_threads(n)
        yield
    finally:
        _C.set_num_threads(before)


class Timer:
    """Measures how long a statement takes, on one thread unless more are asked for.

    Waits for GPUs before it takes the time, and runs the statement once before.

    stmt          the statement, as text
    setup         what to run before the measurement
    global_setup  of statements in C++: leave it out
    timer         gives the time in seconds
    globals       the names that both use
    label, sub_label, description, env
                  what tells it from others in the tables of Compare: label is the
                  table's, sub_label the row's, and description the column's title
    num_threads   how many threads functions may use
    language      "python"

    Raises ValueError if stmt is not text, NotImplementedError for C++.

    >>> from pydevtensor.utils.benchmark import Timer
    >>> found = Timer('x + 1', globals={'x': torch.ones(3)}).timeit(10)
    >>> found.number_per_run, len(found.times), found.median > 0
    (10, 1, True)
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError(
                f"stmt is a {type(stmt).__name__}; give text, and its names as globals"
            )
        if language not in (Language.PYTHON, "py", "python") or global_setup:
            raise NotImplementedError(
                "Timer measures Python; call the C++ from a function of Python"
            )
        if globals is None:
            globals = {}
        # The names that PyTorch gives a statement.
        names = {"torch": pydevtensor, **globals}
        stmt, setup = (dedent(text).strip("\n ") for text in (stmt, setup))
        self._task_spec = TaskSpec(
            stmt, setup, "", label, sub_label, description, env, num_threads
        )
        self._timer = self._timer_cls(stmt, setup, timer, names)

    def _timeit(self, number: int) -> float:
        # A time of 0 is what a clock of large steps gives.
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """The time of number runs, after some that do not count."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not there, as in PyTorch: raises NotImplementedError.

        repeat  how many times to take, which is not read
        number  how many runs a time is of, which is not read
        """
        raise NotImplementedError(
            "repeat() does nothing here: call timeit() or blocked_autorange()"
        )

    def autorange(self, callback: Any = None) -> None:
        """Not there, as in PyTorch: raises NotImplementedError.

        callback  what to call after each time, which is not read
        """
        raise NotImplementedError(
            "autorange() does nothing here: call blocked_autorange()"
        )

    def _block_size(self, min_run_time: float) -> int:
        """How many runs take long enough that the clock's own cost does not count."""
        overhead = sorted(self._timer_cls("pass").timeit(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._timeit(number)
            relative = overhead / taken
            if relative <= 1e-4 and taken >= min_run_time / 1000:
                return number
            if taken > min_run_time:
                return number
            number *= 10

    def _blocks(
        self,
        number: int,
        stop: Callable[[list[float]], bool],
        min_run_time: float,
        max_run_time: float,
        callback: Callable[[int, float], Any] | None,
    ) -> list[float]:
        times: list[float] = []
        total = 0.0
        while total < min_run_time or (not stop(times) and total < max_run_time):
            taken = self._timeit(number)
            times.append(taken)
            total += taken
            if callback is not None:
                callback(number, taken)
        return times

    def blocked_autorange(
        self,
        callback: Callable[[int, float], Any] | None = None,
        min_run_time: float = 0.2,
    ) -> Measurement:
        """Times of blocks of runs, for min_run_time seconds or more.

        A block is large enough that taking the time does not matter.
        callback(number, seconds) is called after each.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            always: Callable[[list[float]], bool] = lambda times: True
            span = min_run_time, min_run_time
            times = self._blocks(number, always, *span, callback)
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """blocked_autorange() until the times agree, or for max_run_time seconds.

        threshold     they agree when the middle half is in a range of
                      threshold * median: 0.1 by default
        min_run_time  how many seconds to measure at least: 0.01 by default
        max_run_time  how many seconds to measure at most: 10 by default
        callback      callback(number, seconds) is called after each block, unless
                      it is None, the default
        """

        def agree(times: list[float]) -> bool:
            found = Measurement(number, times, self._task_spec)
            return len(times) > 3 and found.meets_confidence(threshold)

        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            times = self._blocks(number, agree, min_run_time, max_run_time, callback)
        return Measurement(number, times, self._task_spec)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> None:
        """Not there: raises NotImplementedError."""
        raise NotImplementedError(
            "pydevtensor counts no instructions; run valgrind or perf on the program"
        )
