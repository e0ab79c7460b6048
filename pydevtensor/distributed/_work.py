"""Calls that wait for other processes, and the threads that make them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from pydevtensor import _C
from pydevtensor._streams import Event, current
from pydevtensor.distributed import _clocks
from pydevtensor.distributed._stores import seconds_of
from pydevtensor.futures import Future

__all__ = ["Work"]


class _Streams:
    """The streams that are current where a call is asked for, and made in a thread.

    The tensors that it writes to are ready for other streams after join().
    """

    def __init__(self) -> None:
        self._here: list[tuple[int, int]] = []
        self._before: list[tuple[int, int]] = []
        self._written: set[int] = set()
        self._ends: list[tuple[int, Event]] = []

    def take(self, results: list[Any]) -> None:
        """Take those of this thread, for a call that writes to results."""
        if _C._device_loaded("cuda"):
            self._here = _current(range(_C._device_count("cuda")))
            tensors = (t for t in results if isinstance(t, _C.Tensor))
            devices = (t.device for t in tensors)
            self._written = {d.index or 0 for d in devices if d.type == "cuda"}

    def __enter__(self) -> None:
        self._before = _current(index for index, _ in self._here)
        _set(self._here)

    def __exit__(self, *unused: object) -> None:
        _set(self._before)

    def end(self) -> None:
        """All is queued."""
        for index in self._written:
            event = Event()
            event.record(current("end", index))
            self._ends.append((index, event))

    def join(self) -> None:
        """Let the current streams wait for what was queued."""
        for index, event in self._ends:
            event.wait(current("wait", index))


def _current(devices: Iterable[int]) -> list[tuple[int, int]]:
    return [(index, _C._stream_current(index)) for index in devices]


def _set(streams: Iterable[tuple[int, int]]) -> None:
    for index, handle in streams:
        if _C._stream_current(index) != handle:
            _C._stream_set(index, handle)


class Work:
    """A call with async_op=True, under way: wait() for its end.

    Its tensors must not be used before. run: makes the call. result: the tensors that
    it writes.
    """

    def __init__(self, run: Callable[[], Any], result: list[Any]) -> None:
        self._run, self._result = run, result
        self._streams = _Streams()
        self._future: Future[list[Any]] = _StreamFuture(self._streams)
        self._returned: Any = None

    def _do(self) -> None:
        run, self._run = self._run, lambda: None  # which lets go of tensors
        with self._streams:
            try:
                self._returned = run()
                del run
                self._streams.end()
            except BaseException as error:
                self._future.set_exception(error)
            else:
                self._future.set_result(self._result)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the end. Raises the call's error, or RuntimeError after timeout."""
        seconds = seconds_of(timeout, timedelta.max) if timeout else None
        if not self._future._ended.wait(seconds):
            raise RuntimeError(
                f"wait(): the call has not ended within {seconds:g} s; some rank has "
                "not made it yet"
            )
        self._future.wait()
        return True

    def get_future(self) -> Future[list[Any]]:
        """The future of the tensors that it writes to, as a list.

        Functions given to then() run in the thread that makes the calls of the group.
        """
        return self._future

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """The call's error; None if there was none so far."""
        return self._future._error

    def result(self) -> list[Any]:
        """The tensors that it writes to."""
        self.wait()
        return self._result

    def source_rank(self) -> int:
        """The rank of the sender in its group."""
        self.wait()
        return int(self._returned)

    def synchronize(self) -> None:
        """The same as wait()."""
        self.wait()

    def __repr__(self) -> str:
        state = "under way"
        if self.is_completed():
            state = "completed" if self.is_success() else "failed"
        return f"<Work, {state}>"


class _StreamFuture(Future[list[Any]]):
    """The future of a call: the stream of wait() and value() waits for its results."""

    def __init__(self, streams: _Streams) -> None:
        super().__init__()
        self._streams = streams

    def value(self) -> list[Any]:
        """The tensors that the call writes to."""
        found = super().value()
        self._streams.join()
        return found


def _as_here(run: Callable[[], Any]) -> Callable[[], Any]:
    """run(), for another thread, with this thread's rules of copies."""
    rules = _C._transfer_rules(True, 0, 0, 0)
    if not any(rules):
        return run
    _C._transfer_rules(True, *rules)

    def run_there() -> Any:
        before = _C._transfer_rules(True, *rules)
        try:
            return run()
        finally:
            _C._transfer_rules(True, *before)

    return run_there


class Count:
    """How many calls of a line have not ended."""

    def __init__(self) -> None:
        self._count, self._lock = 0, threading.Lock()

    def begin(self, inside: bool) -> bool:
        """Whether there is none, or the caller is inside of one; then one more."""
        with self._lock:
            begins = inside or not self._count
            self._count += begins
            return begins

    def add(self, n: int) -> None:
        """n calls more."""
        with self._lock:
            self._count += n


class Line:
    """Makes calls one after another, in a thread where the caller does not wait.

    counts: the functions begin and add of what counts its calls.
    """

    def __init__(self, name: str, counts: Any = None) -> None:
        self._name = name
        own = Count()
        self._begin: Callable[[bool], bool]
        self._add: Callable[[int], None]
        self._begin, self._add = counts or (own.begin, own.add)
        self._waiting: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def do(
        self, run: Callable[[], Any], results: list[Any], is_async: bool
    ) -> Work | None:
        """Call run() after the calls before it. The work, if it is_async."""
        # Functions given to then() come before the calls that wait.
        inside = threading.current_thread() is self._thread
        if not is_async and self._begin(inside):
            try:
                run()
            finally:
                self._add(-1)
            return None
        work = Work(_as_here(run), results)
        work._streams.take(results)
        self._add(1)
        self._start()
        self._waiting.put(work)
        if is_async:
            return work
        work.wait()
        return None

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._loop, name=self._name, daemon=True
            )
            self._thread.start()

    def _loop(self) -> None:
        while (work := self._waiting.get()) is not None:
            if _clocks.RUNS:
                _clocks.hide()
            work._do()
            self._add(-1)
            del work  # which frees its tensors

    def end(self) -> None:
        """Do what is waiting, and no more."""
        if self._thread is not None:
            self._waiting.put(None)

    def join(self, seconds: float) -> None:
        """Wait, after end(), for its thread to let go of the tensors of calls."""
        if self._thread not in (None, threading.current_thread()):
            self._thread.join(seconds)
