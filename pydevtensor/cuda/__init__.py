"""GPUs: devices, memory, streams and events.

The names are PyTorch's, except simulate() and virtual(), which provide GPUs that the
machine does not have, clock(), which tells how long a simulated card would take,
why_unavailable(), and transfers(), which counts copies between devices.
Importing it touches no GPU.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Literal, Self

from pydevtensor import _C, _streams
from pydevtensor._C import AcceleratorError, OutOfMemoryError
from pydevtensor._names import publish as _publish
from pydevtensor._streams import Event, ExternalStream, Stream
from pydevtensor.cuda.guards import transfer_guard

__all__ = ["AcceleratorError", "Event", "ExternalStream", "OutOfMemoryError", "Stream"]
__all__ += ["StreamContext", "amp", "can_device_access_peer", "clock", "comm"]
__all__ += ["current_device"]
__all__ += ["current_stream"]
__all__ += ["default_stream", "device", "device_count", "empty_cache"]
__all__ += ["CUDAGraph", "graph", "graph_pool_handle", "graphs"]
__all__ += ["is_current_stream_capturing", "make_graphed_callables"]
__all__ += ["memory", "nvtx", "random", "streams"]
__all__ += ["get_per_process_memory_fraction", "set_per_process_memory_fraction"]
__all__ += ["get_device_capability", "get_device_name", "get_device_properties"]
__all__ += ["init"]
__all__ += ["initial_seed", "is_available", "is_bf16_supported", "is_initialized"]
__all__ += ["is_simulated", "manual_seed", "manual_seed_all", "max_memory_allocated"]
__all__ += ["max_memory_reserved", "mem_get_info", "memory_allocated"]
__all__ += ["memory_reserved", "memory_snapshot", "memory_stats", "memory_summary"]
__all__ += ["reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_stream"]
__all__ += ["sim_counters", "sim_fail", "sim_schedule", "sim_schedules", "simulate"]
__all__ += ["stream"]
__all__ += ["get_rng_state", "get_rng_state_all", "set_rng_state"]
__all__ += ["get_sync_debug_mode", "set_rng_state_all", "set_sync_debug_mode"]
__all__ += ["synchronize", "transfer_guard", "transfers", "virtual", "why_unavailable"]

# --- devices -------------------------------------------------------------------------


def device_count() -> int:
    """The number of usable GPUs. Never raises and creates no context.

    >>> torch.cuda.device_count() > 0
    True
    """
    return _C._cuda_count()


def is_available() -> bool:
    """Whether there is a usable GPU.

    >>> torch.cuda.is_available()
    True
    """
    return _C._cuda_count() > 0


def why_unavailable() -> str:
    """Why there is no GPU, or which GPUs are not used and why; '' if all are.

    >>> torch.cuda.why_unavailable()
    ''
    """
    return _C._cuda_why()


def is_initialized() -> bool:
    """Whether the CUDA backend is loaded and has found a GPU.

    >>> torch.cuda.init()
    >>> torch.cuda.is_initialized()
    True
    """
    return _C._cuda_loaded()


def init() -> None:
    """Load the CUDA backend now rather than at the first use.

    >>> torch.cuda.init()
    """
    _C._cuda_index(None)


def _choose(function, n):
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"{function}(): n is {n!r}; give the number of GPUs, such as 2")
    _C._cuda_choose(function == "simulate", f"{function}(): n", str(n.__index__()))


def simulate(
    n: int,
    memory: int | str | None = None,
    schedule: str | None = None,
    peer: bool | None = None,
    races: str | None = None,
    card: str | None = None,
    host: str | None = None,
    record_stream: str | None = None,
) -> None:
    """Use n simulated GPUs. Call it before the first use of a device.

    memory    the size of each in bytes, an int or a str such as '64M' (default 1G)
    schedule  when work runs: 'eager', 'lazy' or 'random:SEED' (default 'eager')
    peer      whether they can access each other's memory (default True)
    races     'warn' or 'error': what becomes of accesses to the same memory that no
              stream order, event or wait puts in order (default 'off', not looked for)
    card      a card whose properties and memory they have, such as 'T4' or 'A100 80GB',
              and with it a clock(), which says how long the program would take there:
              docs/clock.md. Several, 't4,h200', have a clock each
    host      the time of the program's own code on that clock: 'measured' (default), or
              'fixed', which gives the same result in every run
    record_stream  'manual': memory that is freed while another stream than its own uses
              it is handed out at once, as by PyTorch on a real GPU, unless the program
              called Tensor.record_stream(); 'automatic' (default): operations record it

    They take as long as the CPU does, so time.time() shows no gain from work that
    overlaps or from a second GPU: choose a card, and take the times of clock(), of
    Event.elapsed_time() or of a profile.

    simulate(0) selects the real GPUs and overrides PYDEVTENSOR_SIM_GPUS.
    """
    if schedule is not None:
        _check_schedule("simulate", schedule)
    if races not in (None, "off", "warn", "error"):
        raise ValueError(f"simulate(): races is {races!r}; give 'warn' or 'error'")
    if memory is not None:
        memory = _bytes(memory)
    if card is not None:
        card = ",".join(_cards("simulate", card))
    if host not in (None, "measured", "fixed"):
        raise ValueError(f"simulate(): host is {host!r}; give 'measured' or 'fixed'")
    if record_stream not in (None, "automatic", "manual"):
        raise ValueError(
            f"simulate(): record_stream is {record_stream!r}; give 'automatic' or "
            "'manual'"
        )
    _choose("simulate", n)
    # The simulator reads these when it is loaded.
    if memory is not None:
        os.environ["PYDEVTENSOR_SIM_MEMORY"] = str(memory)
    if schedule is not None:
        os.environ["PYDEVTENSOR_SIM_SCHEDULE"] = schedule
    if peer is not None:
        os.environ["PYDEVTENSOR_SIM_PEER"] = str(int(bool(peer)))
    if races is not None:
        os.environ["PYDEVTENSOR_SIM_RACES"] = races
    if card is not None:
        os.environ["PYDEVTENSOR_SIM_CARD"] = card
    if host is not None:
        os.environ["PYDEVTENSOR_SIM_HOST"] = host
    if record_stream is not None:
        os.environ["PYDEVTENSOR_SIM_RECORD_STREAM"] = record_stream


def _cards(function, text):
    """The names of the cards that text lists."""
    if not isinstance(text, str):
        raise TypeError(
            f"{function}(): card is {text!r}; give a card's name, such as 'T4'"
        )
    names = _C._sim_cards(text)
    if len(names) > 8:
        raise ValueError(f"{function}(): {len(names)} cards; give 8 or fewer")
    return names


def _bytes(memory):
    if isinstance(memory, str) and memory[:-1].isdigit() and memory[-1] in "KMGT":
        memory = int(memory[:-1]) << 10 * ("KMGT".index(memory[-1]) + 1)
    if isinstance(memory, str) and memory.isdigit():
        memory = int(memory)
    if isinstance(memory, bool) or not isinstance(memory, int):
        raise TypeError(
            f"simulate(): memory is {memory!r}; give bytes as an int, or a str such as "
            "'64M'"
        )
    if memory <= 0:
        raise ValueError(f"simulate(): memory is {memory}; give a positive number")
    return memory


def _check_schedule(function, name):
    seed = name[7:] if isinstance(name, str) and name.startswith("random:") else None
    if name not in ("eager", "lazy") and not (seed or "").isdigit():
        raise ValueError(
            f"{function}(): the schedule is {name!r}; give 'eager', 'lazy' or "
            "'random:SEED', such as 'random:1'"
        )


def virtual(n: int) -> None:
    """Use n virtual GPUs that share GPU 0. Call it before the first use of a device."""
    _choose("virtual", n)


def is_simulated(device: Any = None) -> bool:
    """Whether the GPU is simulated; False if there is none.

    device: a GPU, by default the current one.

    >>> torch.cuda.is_simulated()
    True
    """
    return is_available() and _C._cuda_properties(device)["simulated"]


# --- the current device --------------------------------------------------------------


def current_device() -> int:
    """The index of the GPU that 'cuda' means.

    >>> torch.cuda.current_device()
    0
    """
    return _C._cuda_index(None)


def set_device(device: Any) -> None:
    """Make a device current: the one that 'cuda' means in this thread.

    >>> torch.cuda.set_device('cuda:0')
    >>> torch.cuda.current_device()
    0
    """
    if device == -1 and type(device) is int:
        return
    _C._cuda_set_device(device)


class device:
    """Makes a GPU current in a with statement; -1 changes nothing.

    >>> with torch.cuda.device(0):
    ...     torch.zeros(1, device='cuda').device
    device(type='cuda', index=0)
    """

    def __init__(self, device: Any) -> None:
        if not isinstance(device, int) and device is not None:
            named = _C.device(device)
            if named.type != "cuda":
                raise ValueError(
                    f"cuda.device(): {named} is not a GPU; give an index or 'cuda:0'"
                )
        self.device = device
        self._before: list[int | None] = []

    def __enter__(self) -> Self:
        if type(self.device) is int and self.device < 0:
            self._before.append(None)
        else:
            before = _C._cuda_index(None)
            _C._cuda_set_device(self.device)
            self._before.append(before)
        return self

    def __exit__(self, *error: object) -> Literal[False]:
        before = self._before.pop()
        if before is not None:
            _C._cuda_set_device(before)
        return False


class _CudaDeviceProperties(SimpleNamespace):
    """The properties of a GPU."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    uuid: str
    L2_cache_size: int
    simulated: bool
    physical: int

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, "
            f"minor={self.minor}, total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB, "
            f"simulated={self.simulated}, physical={self.physical})"
        )


def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """The name, compute capability, memory and more of a GPU, as attributes.

    device: a GPU, by default the current one.

    >>> torch.cuda.get_device_properties(0).total_memory > 0
    True
    """
    return _CudaDeviceProperties(**_C._cuda_properties(device))


def get_device_name(device: Any = None) -> str:
    """The name of a GPU; a simulated one is named so.

    device: a GPU, by default the current one.

    >>> isinstance(torch.cuda.get_device_name(0), str)
    True
    """
    return _C._cuda_properties(device)["name"]


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU as (major, minor).

    device: a GPU, by default the current one.

    >>> torch.cuda.get_device_capability() >= (7, 5)
    True
    """
    facts = _C._cuda_properties(device)
    return facts["major"], facts["minor"]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU computes with bfloat16.

    including_emulation: also where the card has no instructions for it, before 8.0.

    >>> torch.cuda.is_bf16_supported()
    True
    """
    return is_available() and (
        bool(including_emulation) or get_device_capability()[0] >= 8
    )


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether device can access the memory of peer_device directly.

    >>> torch.cuda.can_device_access_peer(0, 0)
    True
    """
    return _C._cuda_peer(device, peer_device)


def synchronize(device: Any = None) -> None:
    """Wait until all work on the device is done.

    >>> torch.cuda.synchronize()
    """
    _C._cuda_synchronize(device)


# --- streams -------------------------------------------------------------------------


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread uses on the device.

    >>> torch.cuda.current_stream().device
    device(type='cuda', index=0)
    """
    return _streams.current("current_stream", device)


def default_stream(device: Any = None) -> Stream:
    """The stream that is current until another is set.

    device: a GPU, by default the current one.

    >>> torch.cuda.default_stream() == torch.cuda.current_stream()
    True
    """
    return _streams.existing(_C._cuda_index(device, "default_stream"), 0)


def set_stream(stream: Stream | None) -> None:
    """Make stream and its device current; None changes nothing.

    >>> torch.cuda.set_stream(torch.cuda.default_stream())
    """
    if stream is None:
        return
    stream = _streams.checked("set_stream", stream, Stream)
    _C._stream_set(stream.device, stream.cuda_stream)
    _C._cuda_set_device(stream.device)


class StreamContext:
    """The context manager of stream(): makes a stream and its device current.

    >>> context = torch.cuda.stream(torch.cuda.Stream())
    >>> with context:
    ...     torch.cuda.current_stream() == context.stream
    True
    """

    def __init__(self, stream: Stream | None) -> None:
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"stream(): stream is {stream!r}; give a Stream or None")
        self.stream = stream

    def __enter__(self) -> Self:
        if self.stream is not None:
            self.stream.__enter__()
        return self

    def __exit__(self, *error: object) -> Literal[False]:
        if self.stream is not None:
            self.stream.__exit__(*error)
        return False


def stream(stream: Stream | None) -> StreamContext:
    """Use stream in a with statement; None changes nothing.

    >>> stream = torch.cuda.Stream()
    >>> with torch.cuda.stream(stream):
    ...     x = torch.ones(2, device='cuda')
    >>> stream.synchronize()
    >>> x
    tensor([1., 1.], device='cuda:0')
    """
    return StreamContext(stream)


# --- memory --------------------------------------------------------------------------


def memory_stats(device: Any = None) -> dict[str, int]:
    """Counters of a GPU's memory by name; {} if there is no GPU.

    'allocated_bytes.all.current', '.peak', '.allocated' and '.freed', the same for
    reserved_bytes, requested_bytes, allocation and segment, num_alloc_retries and
    num_ooms.

    device: a GPU, by default the current one.

    >>> torch.cuda.memory_stats()['num_ooms'] >= 0
    True
    """
    return _C._cuda_memory_stats(device) if is_available() else {}


def memory_allocated(device: Any = None) -> int:
    """The bytes that tensors on the GPU use.

    device: a GPU, by default the current one.

    >>> before = torch.cuda.memory_allocated()
    >>> x = torch.zeros(1024, device='cuda')
    >>> torch.cuda.memory_allocated() - before
    4096
    """
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The maximum of memory_allocated() since the last reset.

    device: a GPU, by default the current one.

    >>> torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
    True
    """
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """The bytes allocated from the GPU, including those cached for later tensors.

    device: a GPU, by default the current one.

    >>> torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    True
    """
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The maximum of memory_reserved() since the last reset.

    device: a GPU, by default the current one.

    >>> torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
    True
    """
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peaks to the current use.

    device: a GPU, by default the current one.

    >>> torch.cuda.reset_peak_memory_stats()
    >>> torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()
    True
    """
    _C._cuda_reset_peaks(device)


def empty_cache() -> None:
    """Return cached memory that no tensor uses to the GPUs.

    >>> torch.cuda.empty_cache()
    """
    for i in range(device_count()):
        _C._cuda_empty_cache(i)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The (free, total) bytes of a GPU, from its driver.

    device: a GPU, by default the current one.

    >>> free, total = torch.cuda.mem_get_info()
    >>> 0 <= free <= total
    True
    """
    return _C._cuda_memory_info(device)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let this process allocate only a part of a GPU's memory.

    fraction is a float from 0.0 to 1.0, device the GPU (default: the current one). An
    allocation beyond it raises OutOfMemoryError. Raises TypeError for a value that is
    not a float, ValueError for one out of range.

    >>> torch.cuda.set_per_process_memory_fraction(0.5)
    >>> torch.cuda.set_per_process_memory_fraction(1.0)
    """
    if not isinstance(fraction, float):
        raise TypeError(
            f"set_per_process_memory_fraction(): fraction is {fraction!r}; give a "
            "float from 0.0 to 1.0"
        )
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"set_per_process_memory_fraction(): fraction is {fraction}; give a float "
            "from 0.0 to 1.0"
        )
    _C._cuda_memory_fraction(device, fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The fraction that set_per_process_memory_fraction() set for a device, or 1.0.

    >>> torch.cuda.get_per_process_memory_fraction()
    1.0
    """
    return _C._cuda_memory_fraction(device, -1.0)


# --- random numbers ------------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the current GPU's random numbers; does nothing if there is no GPU.

    >>> torch.cuda.manual_seed(0)
    >>> x = torch.rand(2, device='cuda')
    >>> torch.cuda.manual_seed(0)
    >>> torch.equal(torch.rand(2, device='cuda'), x)
    True
    """
    if is_available():
        _C._cuda_seed(None, seed)


def manual_seed_all(seed: int) -> None:
    """Seed the random numbers of all GPUs; does nothing if there is none.

    >>> torch.cuda.manual_seed_all(3)
    >>> torch.cuda.initial_seed()
    3
    """
    for i in range(device_count()):
        _C._cuda_seed(i, seed)


def seed() -> None:
    """Seed the current GPU's random numbers from the system's randomness.

    >>> torch.cuda.seed()
    >>> torch.cuda.initial_seed() >= 0
    True
    """
    if is_available():
        _C._cuda_seed(None, None)


def seed_all() -> None:
    """Seed all GPUs' random numbers with one seed from the system's randomness.

    >>> torch.cuda.seed_all()
    >>> torch.cuda.initial_seed() >= 0
    True
    """
    if is_available():
        manual_seed_all(_C._cuda_seed(0, None))


def initial_seed() -> int:
    """The seed of the current GPU's random numbers.

    >>> torch.cuda.manual_seed(3)
    >>> torch.cuda.initial_seed()
    3
    """
    return _C._cuda_initial_seed(None)


_SYNC_MODES = ("default", "warn", "error")


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Set what happens when an operation makes the host wait for a GPU.

    debug_mode: 'default' or 0, they wait; 'warn' or 1, they warn; 'error' or 2, they
    raise RuntimeError. Such are item(), copies to the host that are not pinned and
    non_blocking, nonzero() and others whose result's shape depends on values. What
    says that it waits, synchronize(), always may.

    >>> torch.cuda.set_sync_debug_mode('default')
    """
    if debug_mode in _SYNC_MODES:
        debug_mode = _SYNC_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"set_sync_debug_mode(): {debug_mode!r} is not a mode; give 'default', "
            "'warn' or 'error'"
        )
    _C._set_sync_debug_mode(int(debug_mode))


def get_sync_debug_mode() -> int:
    """The mode of set_sync_debug_mode: 0, 1 or 2.

    >>> torch.cuda.get_sync_debug_mode()
    0
    """
    return _C._get_sync_debug_mode()


def get_rng_state(device: Any = "cuda") -> _C.Tensor:
    """The state of a GPU's default generator, a Tensor of uint8 on the CPU.

    device: a GPU, by default the current one.

    >>> state = torch.cuda.get_rng_state()
    >>> first = torch.rand(2, device='cuda')
    >>> torch.cuda.set_rng_state(state)
    >>> torch.equal(torch.rand(2, device='cuda'), first)
    True
    """
    return _C._default_generator(_C.device("cuda", _C._cuda_index(device))).get_state()


def set_rng_state(new_state: _C.Tensor, device: Any = "cuda") -> None:
    """Restore the state that get_rng_state() returned.

    new_state: a Tensor of uint8 on the CPU, also of another GPU. device: a GPU, by
    default the current one.

    >>> torch.cuda.set_rng_state(torch.cuda.get_rng_state(1), 1)
    """
    place = _C.device("cuda", _C._cuda_index(device))
    _C._default_generator(place).set_state(new_state)


def get_rng_state_all() -> list[_C.Tensor]:
    """The states of all GPUs' default generators.

    >>> len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
    True
    """
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Restore the states that get_rng_state_all() returned.

    new_states: one for each GPU, in their order.

    >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


# --- transfers -----------------------------------------------------------------------


class transfers:
    """Counts copies between devices, and how often the host waits for a GPU.

    transfers() counts from its creation, `with transfers() as t:` within the block.
    host_to_device, device_to_host and device_to_device are the numbers of copies, with
    _bytes appended their bytes, waits the number of waits. A copy to the host also
    waits. reset() starts again from 0.

    >>> with torch.cuda.transfers() as moved:
    ...     x = torch.ones(256, 4).cuda()
    >>> moved.host_to_device, moved.host_to_device_bytes
    (1, 4096)
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start again from 0."""
        self._end: Any = None
        self._start = _C._traffic()

    def __enter__(self) -> Self:
        self.reset()
        return self

    def __exit__(self, *error: object) -> Literal[False]:
        self._end = _C._traffic()
        return False

    def counts(self) -> dict[str, int]:
        """All counts as a dict."""
        now = self._end or _C._traffic()
        names = [name for name in now if name != "waits_bytes"]
        return {name: now[name] - self._start[name] for name in names}

    def __getattr__(self, name: str) -> int:
        if not name.startswith("_"):
            counts = self.counts()
            if name in counts:
                return counts[name]
        raise AttributeError(f"transfers has no {name!r}; counts() has all counts")

    def __repr__(self) -> str:
        cells = (f"{name}={value}" for name, value in self.counts().items())
        return f"transfers({', '.join(cells)})"


# --- the simulator -------------------------------------------------------------------


def sim_counters(device: Any = None) -> dict[str, int]:
    """The calls, launches, copies, ... of device, a simulated GPU, or of all for None.

    >>> before = torch.cuda.sim_counters()['launches']
    >>> x = torch.ones(2, device='cuda')
    >>> torch.cuda.sim_counters()['launches'] > before
    True
    """
    from json import loads

    index = -1 if device is None else _C._cuda_index(device)
    return loads(_C._sim_control(f"count {index}"))


def sim_fail(text: str) -> None:
    """Make simulated calls fail.

    text: 'malloc:3', the third allocation from now on, once; 'malloc:3+', also all
    after it; 'copy:1,launch:2', several; '', none.

    >>> torch.cuda.sim_fail('')
    """
    _C._sim_control(f"failures {text}")


def sim_schedule(name: str) -> None:
    """Set when simulated work runs: name is 'eager', 'lazy' or 'random:SEED'.

    >>> torch.cuda.sim_schedule('eager')
    """
    _check_schedule("sim_schedule", name)
    _C._sim_control(f"schedule {name}")


def sim_schedules(seeds: int = 8) -> Iterator[str]:
    """Set one schedule after the other: 'eager', 'lazy', 'random:1', 'random:2', ...

    seeds  the number of random orders

    A program that synchronizes as it has to gives the same results under all of them.
    Before the next one, and at the end, all GPUs are synchronized; then the schedule is
    again what it was.

    >>> for schedule in torch.cuda.sim_schedules(seeds=2):
    ...     print(schedule, torch.ones(3, device='cuda').sum().item())
    eager 3.0
    lazy 3.0
    random:1 3.0
    random:2 3.0
    """
    if isinstance(seeds, bool) or not hasattr(seeds, "__index__"):
        raise TypeError(
            f"sim_schedules(): seeds is {seeds!r}; give a number, such as 8"
        )
    if (count := seeds.__index__()) < 0:
        raise ValueError(f"sim_schedules(): seeds is {count}; give 0 or more")
    return _schedules(["eager", "lazy", *(f"random:{i + 1}" for i in range(count))])


def _schedules(names):
    before = _C._sim_control("schedule")
    try:
        for name in names:
            sim_schedule(name)
            yield name
            for i in range(device_count()):
                synchronize(i)
    finally:
        sim_schedule(before)


def _clocks():
    from json import loads

    report = _C._sim_control("clock") if is_available() else ""
    if not report:
        raise RuntimeError(
            "clock(): no card is chosen, whose time could be estimated; choose one "
            "before the first use of a device: cuda.simulate(1, card='T4')"
        )
    return loads(report)


def clock(card: str | None = None) -> int:
    """The time on the clock of simulated GPUs, in nanoseconds since their first use.

    It says how long the program would have taken so far on the card that simulate()
    was told: what the host did and waited for. Work that is queued and not waited for
    is not in it; synchronize() first. card is one of several cards, None the first.
    RuntimeError without a card.

    >>> import subprocess, sys
    >>> code = '''
    ... import pydevtensor as torch
    ... torch.cuda.simulate(1, card="T4", host="fixed")
    ... begin = torch.cuda.clock()
    ... x = torch.ones(1000, 1000, device="cuda")
    ... torch.cuda.synchronize()
    ... print(torch.cuda.clock() > begin)
    ... '''
    >>> subprocess.check_output([sys.executable, '-P', '-c', code])
    b'True\\n'
    """
    clocks = _clocks()["cards"]
    if card is None:
        return clocks[0]["now"]
    names = _cards("clock", card)
    for found in clocks:
        if [found["name"]] == names:
            return found["now"]
    raise ValueError(
        f"clock(): card is {card!r}, which has no clock; give one of "
        f"{', '.join(found['name'] for found in clocks)}"
    )


from pydevtensor.cuda import (  # noqa: E402
    amp,
    comm,
    graphs,
    memory,
    nvtx,
    random,
    streams,
)
from pydevtensor.cuda.graphs import (  # noqa: E402
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from pydevtensor.cuda.memory import memory_snapshot, memory_summary  # noqa: E402

_publish(__name__)
