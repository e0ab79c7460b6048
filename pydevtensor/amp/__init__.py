"""Automatic mixed precision: autocast, and GradScaler for gradients in float16."""

from pydevtensor._names import publish as _publish
from pydevtensor.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from pydevtensor.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
__all__ += ["is_autocast_available"]

_publish(__name__)
