"""Gradient clipping, and parameters as one vector."""

from pydevtensor._names import publish as _publish
from pydevtensor.nn.utils.clip_grad import *
from pydevtensor.nn.utils.convert_parameters import *

_publish(__name__)
