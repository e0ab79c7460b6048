"""Gradient clipping, parametrized weights, sequences of different lengths."""

from pydevtensor._names import publish as _publish
from pydevtensor.nn.utils import parametrizations, parametrize, rnn, stateless
from pydevtensor.nn.utils.clip_grad import *
from pydevtensor.nn.utils.convert_parameters import *
from pydevtensor.nn.utils.fusion import *
from pydevtensor.nn.utils.init import *
from pydevtensor.nn.utils.memory_format import *
from pydevtensor.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from pydevtensor.nn.utils.weight_norm import remove_weight_norm, weight_norm

_publish(__name__)
