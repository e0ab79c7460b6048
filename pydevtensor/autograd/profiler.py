"""torch.autograd.profiler: older names of torch.profiler."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from pydevtensor import profiler as _profiler
from pydevtensor._names import publish as _publish
from pydevtensor.profiler import record_function

__all__ = ["emit_itt", "emit_nvtx", "profile", "record_function"]


class profile(_profiler.profile):
    """Records what a `with` block does; see torch.profiler.profile, which is newer.

    enabled         False: nothing is recorded
    use_cuda, use_device  whether work of GPUs is measured; it is by default, too
    record_shapes, with_flops, profile_memory, with_stack, with_modules  as there
    use_cpu         False: the work of GPUs alone
    others          are for PyTorch's programs and change nothing

    >>> with torch.autograd.profiler.profile() as prof:
    ...     y = torch.ones(2, 3).sum()
    >>> "sum" in prof.table()
    True
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_cpu: bool = True,
        **others: Any,
    ) -> None:
        kinds = _profiler.ProfilerActivity
        super().__init__(
            activities=[kinds.CPU, kinds.CUDA] if use_cpu else [kinds.CUDA],
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
        )
        self.enabled = enabled

    def start(self) -> None:
        """Begin, unless it is not enabled."""
        if self.enabled:
            super().start()

    @property
    def function_events(self) -> Any:
        """The events, in the order of their begin."""
        return self.events()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The table of key_averages(), whose arguments it takes."""
        return self.key_averages().table(*args, **kwargs)

    def total_average(self) -> Any:
        """The sums over all events, under the name Total."""
        return self.key_averages().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events on the CPU in microseconds."""
        return float(self.total_average().self_cpu_time_total)

    def __str__(self) -> str:
        return self.table() if self.enabled else "<a profile that is not enabled>"


class emit_nvtx:
    """A block that would mark operations for NVIDIA's tools; here it only runs.

    NVIDIA's tools show the names of kernels without marks. enabled, record_shapes: have
    no effect.

    >>> with torch.autograd.profiler.emit_nvtx():
    ...     y = torch.ones(2) + 1
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class emit_itt(emit_nvtx):
    """The same for Intel's tools. enabled, record_shapes: have no effect.

    >>> with torch.autograd.profiler.emit_itt():
    ...     y = torch.ones(2) + 1
    """


_publish(__name__)
