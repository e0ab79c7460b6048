"""Profiles: the kernels, copies and waits of a program, with their source lines.

    with torch.profiler.profile() as prof:
        train_step()
    print(prof.key_averages().table(sort_by="cpu_time_total"))
    print(prof.transfers())
    prof.export_chrome_trace("trace.json")  # opens in Perfetto

An event is what reaches a device: a kernel by its name ("add", "matmul"), a copy, a
wait or an allocation. Times of GPUs come from their events; those of simulated GPUs are
what simulating took, or with a card what its clock says (docs/clock.md).
While no profile runs, recording costs nothing.
"""

from __future__ import annotations

import contextlib
import enum
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.module_paths import ModulePaths
from pydevtensor.profiler._events import DEFAULT as DEFAULT
from pydevtensor.profiler._events import Event, EventList, Events, Place, Transfers
from pydevtensor.profiler._timeline import Timeline

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function"]
__all__ += ["schedule", "supported_activities", "tensorboard_trace_handler"]


class ProfilerActivity(enum.Enum):
    """The kinds of activity that a profile records: host calls, and work of GPUs.

    value  0 is CPU, 2 is CUDA; ValueError for others

    >>> torch.profiler.ProfilerActivity.CPU.name
    'CPU'
    """

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """The action of a profile in a step; a schedule gives one for each.

    value  0 is NONE, 1 WARMUP, 2 RECORD, 3 RECORD_AND_SAVE, at whose end
           on_trace_ready is called; ValueError for others

    >>> torch.profiler.ProfilerAction.RECORD.value
    2
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The activities that this machine has: CPU, and CUDA where there are GPUs.

    >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
    True
    """
    found = {ProfilerActivity.CPU}
    return found | {ProfilerActivity.CUDA} if _C._device_count("cuda") else found


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A function from the number of a step to the action in it.

    After skip_first steps come, `repeat` times or without end for 0: `wait` and
    `warmup` steps that are not recorded, then `active` ones that are. skip_first_wait:
    with 1 the first of these cycles has no `wait` steps.

    >>> plan = torch.profiler.schedule(wait=1, warmup=0, active=2, repeat=1)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError(
            f"schedule(): wait is {wait}, warmup {warmup}, active {active}, repeat "
            f"{repeat} and skip_first {skip_first}; give numbers from 0 on, and 1 or "
            "more active steps"
        )
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step >= 0 and skip_first_wait:
            step += wait
        if step < 0 or (repeat and step >= repeat * cycle):
            return ProfilerAction.NONE
        step %= cycle
        if step < wait:
            return ProfilerAction.NONE
        if step < wait + warmup:
            return ProfilerAction.WARMUP
        last = step == cycle - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """An on_trace_ready that writes each trace to a file of its own in dir_name.

    worker_name: how the files' names begin ('worker'). use_gzip: compress them.

    >>> handler = torch.profiler.tensorboard_trace_handler('traces')
    """

    def write(prof: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{worker_name or 'worker'}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(str(folder / (name + ".gz" * use_gzip)))

    return write


# Ranges of record_function while a profile records, else None.
_ranges: list[Event] | None = None
# A profile that ends when the program begins one of its own.
_background: profile | None = None


class record_function:
    """A named part of the program in a profile: a context manager or a decorator.

    name: what the part is called in tables and traces.

    >>> with torch.profiler.profile() as prof:
    ...     with torch.profiler.record_function("my part"):
    ...         _ = torch.ones(3) + 1
    >>> [e.count for e in prof.key_averages() if e.key == "my part"]
    [1]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._begin: list[int] = []

    def __enter__(self) -> record_function:
        self._begin.append(_C._recorder_now())
        return self

    def __exit__(self, *error: object) -> None:
        begin = self._begin.pop()
        if _ranges is not None:
            _ranges.append(
                Event(
                    "range",
                    self.name,
                    "cpu",
                    start=begin,
                    end=_C._recorder_now(),
                    thread=threading.get_native_id(),
                )
            )

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from functools import wraps

        @wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return recorded


class profile:
    """Records what the program does, from start() to stop() or in a `with` block.

    activities    ProfilerActivity.CPU, CUDA, or both, the default; CUDA measures the
                  work of GPUs by events
    schedule      a function from the number of a step, which step() counts, to what is
                  recorded in it: see schedule(). Without it, all is recorded
    on_trace_ready  is called with the profile when a part that is recorded ends
    profile_memory  records allocations and frees
    with_stack    records the lines of the program, the default here: transfers() groups
                  by them
    max_events    events beyond are counted in `dropped` and not kept
    with_modules  an event's `module` is the path of the module of nn that it is of, as
                  "Net.layers.0", also in the backward pass
    with_flops    the table of key_averages() has a column of GFLOPs
    record_shapes  an event has the shapes that its kernel reads, as "[2, 3], [3, 4]";
                  dimensions of elementwise operations that form one run are merged
    experimental_config, acc_events, execution_trace_observer, use_cuda   are for
                  PyTorch's programs and change nothing

    One profile can run at a time: RuntimeError for a second. An exception in the block
    ends the profile, and what was recorded stays.

    >>> x = torch.ones(2, 3)
    >>> with torch.profiler.profile() as prof:
    ...     y = x @ x.t()
    >>> [e.count for e in prof.key_averages() if e.key == "matmul"]
    [1]
    """

    dropped: Any

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = True,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        max_events: int = 1_000_000,
    ) -> None:
        self._action = ProfilerAction.NONE
        self.activities: set[ProfilerActivity] = set(
            ProfilerActivity if activities is None else activities
        )
        if not self.activities:
            raise AssertionError("profile(): activities is empty; give CPU or CUDA")
        for activity in self.activities:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(
                    f"profile(): {activity!r} is not an activity; give "
                    "torch.profiler.ProfilerActivity.CPU or CUDA"
                )
        self.schedule: Callable[[int], ProfilerAction] = (
            _always if schedule is None else schedule
        )
        self.on_trace_ready = on_trace_ready
        self.profile_memory = profile_memory
        self.with_stack: bool = with_stack or with_modules
        self.record_shapes = record_shapes
        self.with_modules = with_modules
        self.with_flops = with_flops
        self._modules: ModulePaths | None = None
        self.max_events = max_events
        self.step_num: int = 0
        self.dropped = 0
        self._events = Events([])

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __del__(self) -> None:
        self._finish()

    def start(self) -> None:
        """Begin the first step."""
        self._change(self.schedule(self.step_num))

    def step(self) -> None:
        """End a step of the schedule and begin the next."""
        self.step_num += 1
        self._change(self.schedule(self.step_num))

    def stop(self) -> None:
        """End the profile; nothing if it has ended."""
        recording = self._recording()
        self._finish()
        if recording and self.on_trace_ready is not None:
            self.on_trace_ready(self)
        self._action = ProfilerAction.NONE

    def _recording(self) -> bool:
        return self._action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _change(self, action: ProfilerAction) -> None:
        if self._action == ProfilerAction.RECORD_AND_SAVE:
            self.stop()
        was = self._recording()
        self._action = action
        if self._recording() and not was:
            try:
                self._begin()
            except BaseException:
                self._action = ProfilerAction.NONE
                raise

    def _begin(self) -> None:
        global _ranges
        if _background is not None and _background is not self:
            _background.stop()
        timed = (
            ProfilerActivity.CUDA in self.activities and _C._device_count("cuda") > 0
        )
        ranges: list[Event] = []
        # Nothing may fail after it: _change() takes a profile that began for none.
        _C._recorder_start(self.max_events, timed, self.with_stack, self.record_shapes)
        if self.with_modules:
            self._modules = ModulePaths()
        _ranges = ranges

    def _finish(self) -> None:
        global _ranges
        if not self._recording():
            return
        _C._recorder_stop()
        if self._modules is not None:
            self._modules.remove()
        ranges, _ranges = _ranges or [], None
        raw, places, self.dropped = _C._recorder_events()
        named = [Place(*place) for place in places]
        events = [Event.of(row, named) for row in raw] + ranges
        if not self.profile_memory:
            events = [e for e in events if e.kind not in ("allocate", "free")]
        self._events = Events(events)

    def events(self) -> list[Event]:
        """The events of the last part that was recorded, in the order of their begin.

        Each has kind, name, device, stream and stream_name, start and end (of the
        host's call, ns), device_start and device_end, bytes, flops, place (file, line,
        function), thread, backward, forward (the place in the forward pass), module
        and shapes.

        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.zeros(3)
        >>> prof.events()[0].device
        'cpu'
        """
        return self._events.events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """The events grouped by name, with group_by_stack_n > 0 by line too, and with
        group_by_input_shape by shapes, which record_shapes=True records.

        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.zeros(3) + 1
        >>> sorted(e.key for e in prof.key_averages())
        ['add', 'fill']
        """
        rows = self._events.averages(group_by_stack_n > 0, group_by_input_shape)
        rows.with_flops = self.with_flops
        return rows

    def transfers(self) -> Transfers:
        """Copies between devices, and waits for them, by lines of the program.

        >>> with torch.profiler.profile() as prof:
        ...     value = torch.ones(3).sum().item()
        >>> len(prof.transfers().rows)
        0
        """
        return self._events.transfers()

    def timeline(self) -> Timeline:
        """A drawing: the host and each stream as lanes, waits hatched, memory below.

        A notebook shows it as wide as the page, print() in characters as wide as the
        terminal; save(path) writes it as SVG. Events too close to tell apart are
        drawn as one.

        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.zeros(3) + 1
        >>> prof.timeline().svg()[:4]
        '<svg'
        """
        return Timeline(self._events.events)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as JSON that Perfetto and chrome://tracing open.

        Processes are devices, threads are streams; arrows lead from the host's call to
        the work of a GPU. path: the file; one whose name ends with .gz is compressed.

        >>> import tempfile
        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.zeros(3)
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     prof.export_chrome_trace(file.name)
        """
        from pydevtensor.profiler._trace import write

        write(path, self._events.events)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the time of each line, in microseconds, for tools that draw flames.

        path: the file. metric: 'self_cpu_time_total', or another number of
        key_averages().

        >>> import tempfile
        >>> with torch.profiler.profile() as prof:
        ...     _ = torch.zeros(3)
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     prof.export_stacks(file.name)
        """
        with open(os.fspath(path), "w", encoding="utf-8") as file:
            for row in self._events.averages(by_line=True):
                if row.place is not None:
                    value = int(getattr(row, metric))
                    file.write(f"{row.place};{row.key} {value}\n")


@contextlib.contextmanager
def in_background(prof: profile) -> Iterator[None]:
    """Record unless the program is recording, and until it begins to."""
    global _background
    try:
        prof.start()
        _background = prof
    except RuntimeError:
        pass
    try:
        yield
    finally:
        _background = None
        prof.stop()


_publish(__name__)
