"""GradScaler for models of which each rank has a part."""

from __future__ import annotations

from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.amp.grad_scaler import GradScaler

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """GradScaler that skips a step on all ranks if one of them has infinite gradients.

    device          'cuda' or 'cpu'
    init_scale      the first factor
    process_group   changes nothing: the ranks that share a parameter skip together

    backoff_factor, growth_factor, growth_interval and enabled: those of GradScaler.

    >>> from pydevtensor.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
    >>> ShardedGradScaler('cpu', init_scale=8.0).get_scale()
    8.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__(
            device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


_publish(__name__)
