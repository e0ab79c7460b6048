"""torch.cuda.memory: the memory of GPUs."""

from pydevtensor._names import publish as _publish
from pydevtensor.cuda import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_peak_memory_stats,
)

__all__ = ["empty_cache", "max_memory_allocated", "max_memory_reserved"]
__all__ += ["mem_get_info", "memory_allocated", "memory_reserved", "memory_stats"]
__all__ += ["memory_summary", "reset_peak_memory_stats"]

_publish(__name__)
