"""The functions behind the modules of pydevtensor.nn.

Those that are written in Python are in _functional.
"""

from pydevtensor import _C
from pydevtensor._C import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from pydevtensor._names import publish as _publish

globals().update(_C._namespace("nn.functional"))
_publish(__name__)
