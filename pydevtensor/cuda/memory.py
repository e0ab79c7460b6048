"""torch.cuda.memory: the memory of GPUs, and which lines of the program hold it."""

from __future__ import annotations

import warnings
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.cuda import device_count, is_available
from pydevtensor.module_paths import ModulePaths

__all__ = ["empty_cache", "ipc_collect", "max_memory_allocated", "max_memory_reserved"]
__all__ += ["mem_get_info", "memory_allocated", "memory_reserved", "memory_snapshot"]
__all__ += ["memory_stats", "memory_summary", "reset_peak_memory_stats"]
__all__ += ["get_allocator_backend"]
__all__ += ["get_per_process_memory_fraction", "set_per_process_memory_fraction"]

_MOST_EVENTS = 1_000_000
_LINES = 10  # that memory_summary() shows
_modules: ModulePaths | None = None


# --- counters ----------------------------------------------------------------------


def memory_stats(device: Any = None) -> dict[str, int]:
    """Counters of a GPU's memory by name; {} if there is no GPU.

    'allocated_bytes.all.current', '.peak', '.allocated' and '.freed', the same for
    reserved_bytes, requested_bytes, allocation and segment, num_alloc_retries and
    num_ooms.

    device: a GPU, by default the current one.

    >>> torch.cuda.memory_stats()['num_ooms'] >= 0
    True
    """
    return _C._device_memory_stats(device) if is_available() else {}


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
    _C._device_reset_peaks(device)


def empty_cache() -> None:
    """Return cached memory that no tensor uses to the GPUs.

    >>> torch.cuda.empty_cache()
    """
    for i in range(device_count()):
        _C._device_empty_cache(i)


def ipc_collect() -> None:
    """Let go of tensors that were sent to other processes and are not used there.

    Each tensor that is sent does the same, and an allocation that finds too little
    memory.

    >>> torch.cuda.ipc_collect()
    """
    _C._ipc_collect()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The (free, total) bytes of a GPU, from its driver.

    device: a GPU, by default the current one.

    >>> free, total = torch.cuda.mem_get_info()
    >>> 0 <= free <= total
    True
    """
    return _C._device_memory_info(device)


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
    _C._device_memory_fraction(device, fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The fraction that set_per_process_memory_fraction() set for a device, or 1.0.

    >>> torch.cuda.get_per_process_memory_fraction()
    1.0
    """
    return _C._device_memory_fraction(device, -1.0)


def get_allocator_backend() -> str:
    """'native', as there is one allocator.

    >>> torch.cuda.memory.get_allocator_backend()
    'native'
    """
    return "native"


def _set_allocator_settings(env: str) -> None:
    """Change settings of PYTORCH_ALLOC_CONF, for later allocations (docs/devices.md).

    Warns, as in PyTorch: torch._C._accelerator_setAllocatorSettings() is the new name.
    Raises ValueError for an unknown setting and for a value that it cannot have,
    RuntimeError for text that is not key:value,key:value.
    """
    warnings.warn(
        "torch.cuda.memory._set_allocator_settings() has another name since PyTorch "
        "2.10; call torch._C._accelerator_setAllocatorSettings()",
        FutureWarning,
        stacklevel=2,
    )
    _C._accelerator_setAllocatorSettings(env)


# --- a table -------------------------------------------------------------------------


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            break
        n /= 1024
    return f"{int(n)} B" if unit == "B" else f"{n:.1f} {unit}"


class _Summary(str):
    """A table to print, with a bar in a notebook."""

    shares: tuple[int, int, int]  # bytes in tensors, otherwise reserved, and in total

    def _repr_html_(self) -> str:
        from html import escape

        tensors, cached, total = self.shares
        parts = ((tensors, "#3572b0", "in tensors"), (cached, "#a9c6e3", "cached"))
        x, bars = 0.0, ""
        for part, color, title in parts:
            width = 600 * part / max(total, 1)
            bars += (
                f'<rect x="{x:.2f}" width="{width:.2f}" height="20" fill="{color}">'
                f"<title>{title}: {_size(part)}</title></rect>"
            )
            x += width
        return (
            '<svg width="602" height="22"><rect width="600" height="20" '
            f'fill="none" stroke="currentColor"/>{bars}</svg><pre>{escape(self)}</pre>'
        )


def _by_line(index: int) -> list[str]:
    """The source lines that hold memory, if _record_memory_history() was called."""
    from pydevtensor.printing import name_of_file

    source_lines = _C._source_lines()
    held: dict[int, list[int]] = {}
    for _, size, place, _, _ in _C._device_storages(index):
        if place >= 0:
            row = held.setdefault(place, [0, 0])
            row[0] += size
            row[1] += 1
    if not held:
        return []
    largest = sorted(held.items(), key=lambda item: -item[1][0])
    lines = ["held by the tensors that these lines made:"]
    for place, (size, count) in largest[:_LINES]:
        file, line, function, module = source_lines[place]
        plural = "s" if count > 1 else ""
        where = f"{name_of_file(file)}:{line} {function}"
        where += f" in {module}" if module else ""
        lines.append(f"{_size(size):>12} {count:>6} tensor{plural:1} {where}")
    if rest := largest[_LINES:]:
        size = sum(row[0] for _, row in rest)
        lines.append(f"{_size(size):>12} by {len(rest)} other lines")
    return lines


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The memory use of a GPU as a table to print; a notebook shows a bar above it.

    After torch.cuda.memory._record_memory_history() also the lines of the program whose
    tensors hold the memory.

    device: a GPU, by default the current one. abbreviated: leave out the
    rows of requested bytes and segments.

    >>> len(torch.cuda.memory_summary().splitlines()) > 5
    True
    """
    if not _C._device_count("cuda"):
        return f"no CUDA device: {_C._device_why('cuda')}"
    index = _C._device_index(device)
    stats = _C._device_memory_stats(index)
    free, total = _C._device_memory_info(index)
    name = _C._device_properties(index)["name"]
    lines = [
        f"Memory of cuda:{index} ({name}): {_size(free)} free of {_size(total)}",
        f"{'':18}{'now':>12}{'peak':>12}{'total':>12}{'freed':>12}",
    ]
    rows = {
        "in tensors": "allocated_bytes",
        "requested": "requested_bytes",
        "reserved": "reserved_bytes",
        "blocks": "allocation",
        "segments": "segment",
    }
    for title, counter in rows.items():
        if abbreviated and counter in ("requested_bytes", "segment"):
            continue
        show = _size if counter.endswith("bytes") else str
        parts = ("current", "peak", "allocated", "freed")
        cells = (f"{show(stats[f'{counter}.all.{part}']):>12}" for part in parts)
        lines.append(f"{title:18}{''.join(cells)}")
    lines.append(
        f"freed the cache to allocate {stats['num_alloc_retries']} times, out of "
        f"memory {stats['num_ooms']} times"
    )
    summary = _Summary("\n".join(lines + _by_line(index)))
    tensors = stats["allocated_bytes.all.current"]
    cached = stats["reserved_bytes.all.current"] - tensors
    summary.shares = (tensors, cached, total)
    return summary


# --- the history ---------------------------------------------------------------------


def _record_memory_history(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = _MOST_EVENTS,
    device: Any = None,
) -> None:
    """Keep, from now on, which line allocates the memory of GPUs.

    enabled      'all' also keeps the last max_entries allocations and frees, of tensors
                 and of segments; 'state' keeps the lines of live blocks only; None ends
                 it
    max_entries  at most a million
    context, stacks, device   are accepted for PyTorch's programs and change nothing

    Then memory_summary(), out-of-memory errors and memory_snapshot() name lines, and
    memory_summary() the module of nn that ran, as "Net.layers.0". An allocation costs
    about half a microsecond more meanwhile.

    >>> torch.cuda.memory._record_memory_history("state")
    >>> torch.cuda.memory._record_memory_history(None)
    """
    if enabled not in ("all", "state", None):
        raise ValueError(
            f"_record_memory_history(): enabled is {enabled!r}; give 'all', 'state' or "
            "None"
        )
    if type(max_entries) is not int or max_entries < 1:
        raise ValueError(
            f"_record_memory_history(): max_entries is {max_entries!r}; give a number "
            "from 1 on"
        )
    events = min(max_entries, _MOST_EVENTS) if enabled == "all" else 0
    _C._memory_history(-1 if enabled is None else events)
    global _modules
    if _modules is not None:
        _modules.remove()
        _modules = None
    if enabled is not None:
        _modules = ModulePaths()


def _frames(
    source_lines: list[tuple[str, int, str, str]], place: int
) -> list[dict[str, Any]]:
    if place < 0:
        return []
    file, line, function, _ = source_lines[place]
    return [{"filename": file, "line": line, "name": function}]


def memory_snapshot(
    mempool_id: Any = None, include_traces: bool = True
) -> list[dict[str, Any]]:
    """The segments of all GPUs' memory with their blocks, as PyTorch's dicts.

    A segment has 'device', 'address', 'total_size', 'allocated_size', 'active_size',
    'requested_size' (bytes), 'stream', 'segment_type', 'is_expandable' and 'blocks'; a
    block 'address', 'size', 'requested_size', 'state' ('active_allocated',
    'active_pending_free' or 'inactive') and, after _record_memory_history(), 'frames'.

    mempool_id and include_traces have no effect.

    >>> x = torch.zeros(1000, device='cuda')
    >>> sum(s['allocated_size'] for s in torch.cuda.memory_snapshot()) >= 4000
    True
    """
    source_lines = _C._source_lines()
    segments: dict[tuple[int, int], dict[str, Any]] = {}
    for index in range(_C._device_count("cuda")):
        storages = _C._device_storages(index)
        lines = {address: place for address, _, place, _, _ in storages}
        blocks = _C._device_memory_blocks(index)
        for head, address, stream, size, requested, taken, pending, grows in blocks:
            segment = segments.setdefault(
                (index, head),
                {
                    "device": index,
                    "address": head,
                    "total_size": 0,
                    "allocated_size": 0,
                    "active_size": 0,
                    "requested_size": 0,
                    "stream": stream,
                    "segment_type": "small" if size <= 1 << 20 else "large",
                    "segment_pool_id": (0, 0),
                    "is_expandable": grows,
                    "frames": [],
                    "blocks": [],
                },
            )
            state = "active_pending_free" if pending else "inactive"
            segment["blocks"].append(
                {
                    "address": address,
                    "size": size,
                    "requested_size": requested if taken else 0,
                    "state": "active_allocated" if taken else state,
                    "frames": _frames(source_lines, lines.get(address, -1)),
                }
            )
            segment["total_size"] += size
            segment["allocated_size"] += size if taken else 0
            segment["active_size"] += size if taken or pending else 0
            segment["requested_size"] += requested if taken else 0
    return sorted(segments.values(), key=lambda s: (s["device"], s["address"]))


def _settings() -> dict[str, Any]:
    text, max_split_size, threshold, expandable, divisions = _C._memory_settings()
    return {
        "PYTORCH_CUDA_ALLOC_CONF": text,
        "max_split_size": max_split_size,
        "garbage_collection_threshold": threshold,
        "expandable_segments": expandable,
        "roundup_power2_divisions": {str(1 << i): n for i, n in enumerate(divisions)},
    }


def _snapshot(device: Any = None) -> dict[str, Any]:
    """memory_snapshot() under 'segments', the events that were kept under
    'device_traces', and the settings of PYTORCH_ALLOC_CONF.

    An event's 'action' is 'alloc', 'free_requested' or 'free_completed' of a tensor's
    memory; 'segment_alloc' or 'segment_free' of a segment, 'segment_map' or
    'segment_unmap' of pages of one that grows (expandable_segments:True).

    >>> sorted(torch.cuda.memory._snapshot())
    ['allocator_settings', 'device_traces', 'segments']
    """
    source_lines = _C._source_lines()
    traces: list[list[dict[str, Any]]] = [[] for _ in range(_C._device_count("cuda"))]
    sizes: dict[int, int] = {}
    events = _C._memory_events() or ()
    for time, address, stream, size, place, index, action in events:
        freed = action == "free"
        event = {
            "addr": address,
            "size": sizes.get(address, size) if freed else size,
            "stream": stream,
            "time_us": time,
            "frames": _frames(source_lines, place),
        }
        if freed:
            traces[index].append({**event, "action": "free_requested"})
            traces[index].append({**event, "action": "free_completed"})
        else:
            if action == "alloc":
                sizes[address] = size
            traces[index].append({**event, "action": action})
    return {
        "segments": memory_snapshot(),
        "device_traces": traces,
        "allocator_settings": _settings(),
    }


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Write _snapshot() as a pickle that PyTorch's viewer of memory opens.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     torch.cuda.memory._dump_snapshot(file.name)
    """
    import os
    import pickle

    with open(os.fspath(filename), "wb") as file:
        pickle.dump(_snapshot(), file)


_publish(__name__)
