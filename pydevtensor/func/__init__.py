"""Transformations of functions: gradients, Jacobians, and maps over a batch.

They compose: hessian is jacrev of jacrev, vmap(grad(f)) the gradient of each sample.
Arguments and results may be tuples, lists and dicts of Tensors.
"""

from pydevtensor._names import publish as _publish
from pydevtensor.func._batch_norm import (
    functionalize,
    replace_all_batch_norm_modules_,
)
from pydevtensor.func._call import functional_call, stack_module_state
from pydevtensor.func._gradients import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from pydevtensor.func._vmap import vmap

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev"]
__all__ += ["functionalize", "jvp", "linearize", "replace_all_batch_norm_modules_"]
__all__ += ["stack_module_state", "vjp", "vmap"]

_publish(__name__)
