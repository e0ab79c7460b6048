"""Streams and events: the order of work on a GPU."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydevtensor import _C
from pydevtensor._names import give

__all__ = ["Event", "ExternalStream", "Stream"]

_TIMED, _BLOCKING, _INTERPROCESS = 1, 2, 4  # DT_EVENT_...


def _refuse(self: Any) -> Any:
    raise TypeError(
        f"the {type(self).__name__} cannot be copied or pickled: its handle is this "
        "process's own; make a new one"
    )


class Stream:
    """A queue of work on one GPU.

    Its work runs in order, and concurrently with other streams.

    device    a GPU, by default the current one
    priority  below 0: its work goes first

    >>> stream = torch.cuda.Stream()
    >>> with stream:
    ...     x = torch.ones(2, device='cuda')
    >>> stream.synchronize()
    """

    __slots__ = ("_before", "_handle", "_index", "_priority")
    __reduce__ = _refuse

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        index = _C._device_index(device, "Stream")
        self._set(index, _C._stream_new(index, priority), -1 if priority < 0 else 0)

    def _set(self, index: int, handle: int, priority: int = 0) -> Self:
        self._index, self._handle, self._priority = index, handle, priority
        self._before: list[tuple[int, int]] = []  # what each `with` has replaced
        return self

    @property
    def device(self) -> _C.device:
        """The stream's device."""
        return _C.device("cuda", self._index)

    @property
    def cuda_stream(self) -> int:
        """CUDA's handle, as an int."""
        return self._handle

    @property
    def priority(self) -> int:
        """-1 (first) or 0."""
        return self._priority

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The lowest and the highest priority: (0, -1).

        >>> torch.cuda.Stream.priority_range()
        (0, -1)
        """
        return 0, -1

    def synchronize(self, /) -> None:
        """Synchronize with all work queued on the stream.

        >>> torch.cuda.current_stream().synchronize()
        """
        _C._stream_synchronize(self._index, self._handle)

    def query(self, /) -> bool:
        """Whether all work queued on the stream is done.

        >>> torch.cuda.Stream().query()
        True
        """
        return _C._stream_query(self._index, self._handle)

    def record_event(self, event: Event | None = None, /) -> Event:
        """Record event (None: a new one) after the work queued so far, and return it.

        >>> event = torch.cuda.current_stream().record_event()
        >>> event.synchronize()
        """
        event = Event() if event is None else checked("record_event", event, Event)
        event.record(self)
        return event

    def wait_event(self, event: Event, /) -> None:
        """Make later work on the stream wait for event; does not synchronize.

        >>> event = torch.cuda.current_stream().record_event()
        >>> torch.cuda.Stream().wait_event(event)
        """
        checked("wait_event", event, Event).wait(self)

    def wait_stream(self, stream: Stream, /) -> None:
        """Make later work wait for the work queued on the other stream.

        It does not synchronize.

        >>> torch.cuda.Stream().wait_stream(torch.cuda.current_stream())
        """
        self.wait_event(checked("wait_stream", stream, Stream).record_event())

    def __enter__(self) -> Self:
        """Make the stream and its device current."""
        before = _C._device_index(None), _C._stream_current(self._index)
        _C._stream_set(self._index, self._handle)
        _C._device_set(self._index)
        self._before.append(before)
        return self

    def __exit__(self, *error: object) -> Literal[False]:
        """Restore the previous stream and device."""
        if not self._before:
            raise RuntimeError(
                "Stream.__exit__(): the stream was not entered; write `with stream:`"
            )
        device, handle = self._before.pop()
        _C._stream_set(self._index, handle)
        _C._device_set(device)
        return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self._index, self._handle) == (other._index, other._handle)

    def __hash__(self) -> int:
        return hash((self._index, self._handle))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self._handle:#x}>"


class ExternalStream(Stream):
    """A stream that another library made: stream_ptr is CUDA's handle, as an int.

    device is its GPU (default: the current one).
    Nothing here keeps it alive, or destroys it.

    >>> stream = torch.cuda.Stream()
    >>> torch.cuda.ExternalStream(stream.cuda_stream) == stream
    True
    """

    __slots__ = ()

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        if isinstance(stream_ptr, bool) or not isinstance(stream_ptr, int):
            raise TypeError(
                f"ExternalStream(): stream_ptr is {stream_ptr!r}; give CUDA's handle, "
                "an int"
            )
        if stream_ptr < 0:
            raise ValueError(
                f"ExternalStream(): stream_ptr is {stream_ptr}; a handle is not "
                "negative"
            )
        self._set(_C._device_index(device, "ExternalStream"), stream_ptr)


class Event:
    """A mark in a stream, to wait for, query, or measure time with.

    enable_timing  elapsed_time() can measure from and to it
    blocking       synchronize() leaves the core to other threads; else it polls
    interprocess   other processes can open it by ipc_handle(); RuntimeError together
                   with enable_timing
    external       NotImplementedError for True

    >>> event = torch.cuda.Event()
    >>> event.record()
    >>> event.synchronize()
    """

    __slots__ = ("_flags", "_handle", "_index", "_owner")
    __reduce__ = _refuse

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if interprocess and enable_timing:
            raise RuntimeError(
                "Event(): CUDA's events measure no time between processes; give "
                "enable_timing or interprocess"
            )
        if external:
            raise NotImplementedError(
                "Event(): an event in a graph orders the graph's own work alone; leave "
                "external out"
            )
        self._flags = _TIMED * bool(enable_timing) | _BLOCKING * bool(blocking)
        self._flags |= _INTERPROCESS * bool(interprocess)
        # Made by the first record, on its stream's device, or the first ipc_handle().
        self._index, self._handle, self._owner = -1, 0, None

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes, /) -> Self:
        """The event of another process, which has to keep its own.

        device is the GPU of the event, handle the bytes of its ipc_handle().
        AcceleratorError if its process has ended, or is this one's own user's no more.
        """
        made = cls.__new__(cls)
        made._flags = _INTERPROCESS
        made._index = _C._device_index(device, "from_ipc_handle")
        made._handle, made._owner = _C._event_open(made._index, handle)
        return made

    def ipc_handle(self, /) -> bytes:
        """The bytes by which another process opens the event with from_ipc_handle().

        An event that was not recorded yet is on the current GPU from now on.
        RuntimeError if it was not made with interprocess=True.

        >>> event = torch.cuda.Event(interprocess=True)
        >>> len(event.ipc_handle())
        64
        """
        if not self._flags & _INTERPROCESS:
            raise RuntimeError(
                "ipc_handle(): the event is this process's own; make it with "
                "Event(interprocess=True)"
            )
        if not self._handle:
            self._make(_C._device_index(None, "ipc_handle"))
        return _C._event_export(self._index, self._handle)

    def _make(self, index: int) -> None:
        self._index = index
        self._handle, self._owner = _C._event_new(index, self._flags)

    @property
    def device(self) -> _C.device | None:
        """The device on which it was recorded, or None."""
        return _C.device("cuda", self._index) if self._handle else None

    @property
    def cuda_event(self) -> int:
        """CUDA's handle, as an int; 0 before the first record."""
        return self._handle

    def record(self, /, stream: Stream | None = None) -> None:
        """Mark the end of the work queued on stream (None: the current stream).

        >>> event = torch.cuda.Event()
        >>> event.record()
        >>> event.synchronize()
        >>> event.query()
        True
        """
        stream = given("record", stream)
        if not self._handle:
            self._make(stream._index)
        elif self._index != stream._index:
            raise RuntimeError(
                f"record(): the event belongs to {self.device} and the stream is on "
                f"{stream.device}; create another Event for it"
            )
        _C._event_record(self._index, stream._handle, self._handle)

    def wait(self, /, stream: Stream | None = None) -> None:
        """Make later work on stream wait for the event; does not synchronize.

        >>> event = torch.cuda.Event()
        >>> event.record()
        >>> event.wait(torch.cuda.Stream())
        """
        stream = given("wait", stream)
        if self._handle:
            _C._event_wait(stream._index, stream._handle, self._handle)

    def query(self, /) -> bool:
        """Whether the work before the event is done.

        >>> torch.cuda.Event().query()
        True
        """
        return not self._handle or _C._event_query(self._index, 0, self._handle)

    def synchronize(self, /) -> None:
        """Synchronize with the work before the event.

        >>> event = torch.cuda.Event()
        >>> event.record()
        >>> event.synchronize()
        """
        if self._handle:
            _C._event_synchronize(self._index, 0, self._handle)

    def elapsed_time(self, end_event: Event, /) -> float:
        """Milliseconds from this event to end_event.

        >>> start = torch.cuda.Event(enable_timing=True)
        >>> end = torch.cuda.Event(enable_timing=True)
        >>> start.record()
        >>> end.record()
        >>> end.synchronize()
        >>> start.elapsed_time(end) >= 0
        True
        """
        end = checked("elapsed_time", end_event, Event)
        if not (self._flags & end._flags & _TIMED):
            raise ValueError(
                "elapsed_time(): an event does not measure time; create both with "
                "Event(enable_timing=True)"
            )
        if not (self._handle and end._handle):
            raise ValueError("elapsed_time(): record both events first")
        if self._index != end._index:
            raise RuntimeError(
                "elapsed_time(): the events are on two devices; record both on one"
            )
        return _C._event_elapsed(self._index, self._handle, end._handle)

    def __repr__(self) -> str:
        state = f"{self._handle:#x}" if self._handle else "uninitialized"
        return f"<torch.cuda.Event {state}>"


def checked(function: str, value: Any, kind: type[Any]) -> Any:
    """The argument, which has to be a Stream or an Event."""
    if not isinstance(value, kind):
        name = kind.__name__
        raise TypeError(
            f"{function}(): {name.lower()} is {value!r} ({type(value).__name__}); give "
            f"{'an' if kind is Event else 'a'} {name}"
        )
    return value


def existing(index: int, handle: int) -> Stream:
    """The Stream of a handle; 0 is the default stream."""
    return Stream.__new__(Stream)._set(index, handle)


def current(function: str, device: Any = None) -> Stream:
    """The device's current stream; function is for messages."""
    index = _C._device_index(device, function)
    return existing(index, _C._stream_current(index))


def given(function: str, stream: Any) -> Stream:
    """A stream argument; None is the current stream."""
    return current(function) if stream is None else checked(function, stream, Stream)


give("pydevtensor", Event, Stream)
give("pydevtensor.cuda.streams", ExternalStream)
