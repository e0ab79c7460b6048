"""Gradient clipping, parameters as one vector, sequences of different lengths."""

from pydevtensor._names import publish as _publish
from pydevtensor.nn.utils import rnn
from pydevtensor.nn.utils.clip_grad import *
from pydevtensor.nn.utils.convert_parameters import *

_publish(__name__)
