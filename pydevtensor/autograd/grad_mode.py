"""torch.autograd.grad_mode: whether operations are recorded."""

from pydevtensor._names import publish as _publish
from pydevtensor.autograd import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]

_publish(__name__, home_of=__all__)
