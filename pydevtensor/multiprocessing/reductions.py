"""How tensors and events are sent to other processes."""

from pydevtensor._names import publish as _publish
from pydevtensor._sharing import (
    rebuild_cuda_tensor,
    rebuild_event,
    reduce_event,
    reduce_tensor,
)
from pydevtensor._sharing import register as init_reductions

__all__ = ["init_reductions", "rebuild_cuda_tensor", "rebuild_event", "reduce_event"]
__all__ += ["reduce_tensor"]
_publish(__name__)
