"""GPUs: devices, memory, streams and events.

The names are PyTorch's, except simulate() and virtual(), which provide GPUs that the
machine does not have, clock(), which tells how long a simulated card would take,
why_unavailable(), and transfers(), which counts copies between devices.
Importing it touches no GPU.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal, Self

from pydevtensor import _C, _streams
from pydevtensor._C import AcceleratorError, OutOfMemoryError
from pydevtensor._names import publish as _publish
from pydevtensor._streams import Event, ExternalStream, Stream
from pydevtensor.cuda.guards import transfer_guard

__all__ = ["AcceleratorError", "Event", "ExternalStream", "OutOfMemoryError", "Stream"]
__all__ += ["StreamContext", "amp", "can_device_access_peer", "clock", "comm"]
__all__ += ["CompileError", "GlobalVariable", "Kernel", "RawKernel", "RawModule"]
__all__ += ["compile_kernel", "current_device", "kernels"]
__all__ += ["KernelError", "checks", "current_stream", "kernel_checks"]
__all__ += ["default_stream", "device", "device_count", "empty_cache"]
__all__ += ["CUDAGraph", "graph", "graph_pool_handle", "graphs"]
__all__ += ["is_current_stream_capturing", "make_graphed_callables"]
__all__ += ["memory", "nvtx", "random", "streams"]
__all__ += ["get_per_process_memory_fraction", "set_per_process_memory_fraction"]
__all__ += ["get_allocator_backend"]
__all__ += ["get_device_capability", "get_device_name", "get_device_properties"]
__all__ += ["init", "ipc_collect"]
__all__ += ["initial_seed", "is_available", "is_bf16_supported", "is_initialized"]
__all__ += ["is_simulated", "manual_seed", "manual_seed_all", "max_memory_allocated"]
__all__ += ["max_memory_reserved", "mem_get_info", "memory_allocated"]
__all__ += ["memory_reserved", "memory_snapshot", "memory_stats", "memory_summary"]
__all__ += ["reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_stream"]
__all__ += [
    "prefetch",
    "sim_counters",
    "sim_fail",
    "sim_schedule",
    "sim_schedules",
    "simulate",
]
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
    return _C._device_count("cuda")


def is_available() -> bool:
    """Whether there is a usable GPU.

    >>> torch.cuda.is_available()
    True
    """
    return _C._device_count("cuda") > 0


def why_unavailable() -> str:
    """Why there is no GPU, or which GPUs are not used and why; '' if all are.

    >>> torch.cuda.why_unavailable()
    ''
    """
    return _C._device_why("cuda")


def is_initialized() -> bool:
    """Whether the CUDA backend is loaded and has found a GPU.

    >>> torch.cuda.init()
    >>> torch.cuda.is_initialized()
    True
    """
    return _C._device_loaded("cuda")


def init() -> None:
    """Load the CUDA backend now rather than at the first use.

    >>> torch.cuda.init()
    """
    _C._device_index(None)


def is_simulated(device: Any = None) -> bool:
    """Whether the GPU is simulated; False if there is none.

    device: a GPU, by default the current one.

    >>> torch.cuda.is_simulated()
    True
    """
    return is_available() and _C._device_properties(device)["simulated"]


# --- the current device --------------------------------------------------------------


def current_device() -> int:
    """The index of the GPU that 'cuda' means.

    >>> torch.cuda.current_device()
    0
    """
    return _C._device_index(None)


def set_device(device: Any) -> None:
    """Make a device current: 'cuda' means this one in this thread.

    >>> torch.cuda.set_device('cuda:0')
    >>> torch.cuda.current_device()
    0
    """
    if device == -1 and type(device) is int:
        return
    _C._device_set(device)


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
            before = _C._device_index(None)
            _C._device_set(self.device)
            self._before.append(before)
        return self

    def __exit__(self, *error: object) -> Literal[False]:
        before = self._before.pop()
        if before is not None:
            _C._device_set(before)
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
    return _CudaDeviceProperties(**_C._device_properties(device))


def get_device_name(device: Any = None) -> str:
    """The name of a GPU; a simulated one is named so.

    device: a GPU, by default the current one.

    >>> isinstance(torch.cuda.get_device_name(0), str)
    True
    """
    return _C._device_properties(device)["name"]


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU as (major, minor).

    device: a GPU, by default the current one.

    >>> torch.cuda.get_device_capability() >= (7, 5)
    True
    """
    facts = _C._device_properties(device)
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
    return _C._device_peer(device, peer_device)


def synchronize(device: Any = None) -> None:
    """Wait until all work on the device is done.

    >>> torch.cuda.synchronize()
    """
    _C._device_synchronize(device)


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
    return _streams.existing(_C._device_index(device, "default_stream"), 0)


def set_stream(stream: Stream | None) -> None:
    """Make stream and its device current; None changes nothing.

    >>> torch.cuda.set_stream(torch.cuda.default_stream())
    """
    if stream is None:
        return
    stream = _streams.checked("set_stream", stream, Stream)
    _C._stream_set(stream.device, stream.cuda_stream)
    _C._device_set(stream.device)


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


# --- transfers -----------------------------------------------------------------------

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


from pydevtensor.cuda import (  # noqa: E402
    amp,
    checks,
    comm,
    graphs,
    kernels,
    memory,
    nvtx,
    random,
    streams,
)
from pydevtensor.cuda._prefetch import prefetch  # noqa: E402
from pydevtensor.cuda._raw_kernels import (  # noqa: E402
    GlobalVariable,
    RawKernel,
    RawModule,
)
from pydevtensor.cuda._simulation import (  # noqa: E402
    clock,
    sim_counters,
    sim_fail,
    sim_schedule,
    sim_schedules,
    simulate,
    virtual,
)
from pydevtensor.cuda.checks import KernelError, kernel_checks  # noqa: E402
from pydevtensor.cuda.graphs import (  # noqa: E402
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from pydevtensor.cuda.kernels import (  # noqa: E402
    CompileError,
    Kernel,
    compile_kernel,
)
from pydevtensor.cuda.kernels import _compile_kernel as _compile_kernel  # noqa: E402
from pydevtensor.cuda.memory import (  # noqa: E402
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    ipc_collect,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from pydevtensor.cuda.random import (  # noqa: E402
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)

_publish(__name__)
