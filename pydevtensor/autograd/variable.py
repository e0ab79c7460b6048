"""torch.autograd.variable: the older name of tensors that have gradients."""

from pydevtensor._names import publish as _publish
from pydevtensor.autograd import Variable

__all__ = ["Variable"]

_publish(__name__, home_of=__all__)
