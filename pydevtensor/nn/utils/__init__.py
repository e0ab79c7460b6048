"""Gradient clipping, parametrized weights, sequences of different lengths."""

from pydevtensor._names import publish as _publish
from pydevtensor.nn.utils import parametrizations as parametrizations
from pydevtensor.nn.utils import parametrize as parametrize
from pydevtensor.nn.utils import rnn as rnn
from pydevtensor.nn.utils import stateless as stateless
from pydevtensor.nn.utils.clip_grad import *
from pydevtensor.nn.utils.convert_parameters import *
from pydevtensor.nn.utils.fusion import *
from pydevtensor.nn.utils.init import *
from pydevtensor.nn.utils.memory_format import *
from pydevtensor.nn.utils.spectral_norm import (
    remove_spectral_norm as remove_spectral_norm,
)
from pydevtensor.nn.utils.spectral_norm import spectral_norm as spectral_norm
from pydevtensor.nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from pydevtensor.nn.utils.weight_norm import weight_norm as weight_norm

_publish(__name__, later=("prune",))
