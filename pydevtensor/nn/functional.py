"""The functions behind the modules of pydevtensor.nn.

Functions written in Python are in _functional, and those in C are rows of the tables in
csrc/ops/functions.
"""

from pydevtensor import _C
from pydevtensor._C import (
    adaptive_avg_pool1d,
    avg_pool1d,
    celu_,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    hardshrink,
    prelu,
    relu_,
    selu_,
    threshold_,
)
from pydevtensor._names import publish as _publish

globals().update(_C._namespace("nn.functional"))
_publish(__name__)
