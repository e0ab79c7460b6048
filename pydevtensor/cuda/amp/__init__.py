"""The older names of torch.amp, for GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import amp
from pydevtensor._names import make_modules as _make_modules
from pydevtensor._names import publish as _publish

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """torch.autocast('cuda').

    >>> with torch.cuda.amp.autocast():
    ...     torch.is_autocast_enabled('cuda')
    True
    """

    def __init__(
        self, enabled: bool = True, dtype: Any = None, cache_enabled: bool | None = None
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """torch.amp.GradScaler('cuda').

    >>> torch.cuda.amp.GradScaler(init_scale=8.0).get_scale()
    8.0
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None
) -> Callable[..., Any]:
    """torch.amp.custom_fwd(device_type='cuda').

    >>> @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)
    ... def forward(ctx, x):
    ...     return x
    """
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Callable[..., Any]:
    """torch.amp.custom_bwd(device_type='cuda').

    >>> @torch.cuda.amp.custom_bwd
    ... def backward(ctx, gradient):
    ...     return gradient
    """
    return amp.custom_bwd(bwd, device_type="cuda")


_make_modules(__name__, autocast_mode=autocast, grad_scaler=GradScaler)
_publish(__name__)
