"""Values that come later, by PyTorch's torch.futures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from pydevtensor._names import publish as _publish

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value, or an error, that another thread gives later.

    devices  changes nothing: a value on a GPU is ready when the GPU's work is

    >>> future = torch.futures.Future()
    >>> twice = future.then(lambda f: 2 * f.value())
    >>> future.set_result(4)
    >>> twice.wait()
    8
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []
        self._arrive: Callable[[], Any] | None = None  # by wait(), when it has ended

    def done(self) -> bool:
        """Whether it has its value or error."""
        return self._ended.is_set()

    def wait(self) -> T:
        """Wait for the value, and return it. Raises the error, if there is one."""
        self._ended.wait()
        if self._arrive is not None:
            self._arrive()
        return self.value()

    def value(self) -> T:
        """The value of a future that is done, else RuntimeError. Raises its error."""
        if not self.done():
            raise RuntimeError("value(): the future has no value yet; wait() for it")
        if self._error is not None:
            raise self._error
        found: T = self._value
        return found

    def set_result(self, result: T) -> None:
        """Give the value, result, once. RuntimeError the second time."""
        self._end(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give an error, result, instead of the value. TypeError for a value."""
        if not isinstance(result, BaseException):
            raise TypeError(
                f"set_exception(): {result!r} ({type(result).__name__}); give an "
                "exception, or a value to set_result()"
            )
        self._end(None, result)

    def _end(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError(
                    "Future can only be marked completed once, and this one is"
                )
            self._value, self._error = value, error
            self._ended.set()
            callbacks, self._callbacks = self._callbacks, []
        for each in callbacks:
            each(self)

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Call callback(self) when the future is done, or now if it is.

        An error that it raises is lost; then() keeps it.
        """

        def call(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception:
                return

        self._call(call)

    def _call(self, callback: Callable[[Future[T]], Any]) -> None:
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The future of callback(self), which is called when this one is done."""
        later: Future[S] = Future()
        later._arrive = self._arrive

        def call(done: Future[T]) -> None:
            try:
                found = callback(done)
            except BaseException as error:
                later.set_exception(error)
            else:
                later.set_result(found)

        self._call(call)
        return later


def collect_all(futures: Sequence[Future[Any]]) -> Future[list[Future[Any]]]:
    """The future of a list of futures, all of which have ended then.

    futures: the list. If one of them has an error, so has the result.

    >>> both = [torch.futures.Future(), torch.futures.Future()]
    >>> all = torch.futures.collect_all(both)
    >>> both[0].set_result(1), all.done(), both[1].set_result(2), all.done()
    (None, False, None, True)
    """
    result: Future[list[Future[Any]]] = Future()
    missing = [len(futures)]
    lock = threading.Lock()

    def call(_: Any) -> None:
        with lock:
            missing[0] -= 1
            if missing[0]:
                return
        error = next((f._error for f in futures if f._error is not None), None)
        result._end(None if error else [*futures], error)

    for each in futures:
        each._call(call)
    if not futures:
        result.set_result([])
    return result


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """Wait for futures, a list, and return their values. Raises the first error.

    >>> future = torch.futures.Future()
    >>> future.set_result(1)
    >>> torch.futures.wait_all([future])
    [1]
    """
    return [each.value() for each in collect_all(futures).wait()]


_publish(__name__)
