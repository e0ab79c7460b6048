"""Modules, losses, and the functions that they call."""

from pydevtensor._names import publish as _publish
from pydevtensor.nn import attention as attention
from pydevtensor.nn import common_types as common_types
from pydevtensor.nn import functional as functional
from pydevtensor.nn import init as init
from pydevtensor.nn import modules as modules
from pydevtensor.nn import parallel as parallel
from pydevtensor.nn import parameter as parameter
from pydevtensor.nn import utils as utils
from pydevtensor.nn.modules.activation import *
from pydevtensor.nn.modules.adaptive import *
from pydevtensor.nn.modules.attention import *
from pydevtensor.nn.modules.batchnorm import *
from pydevtensor.nn.modules.channelshuffle import *
from pydevtensor.nn.modules.container import *
from pydevtensor.nn.modules.conv import *
from pydevtensor.nn.modules.distance import *
from pydevtensor.nn.modules.dropout import *
from pydevtensor.nn.modules.flatten import *
from pydevtensor.nn.modules.fold import *
from pydevtensor.nn.modules.instancenorm import *
from pydevtensor.nn.modules.linear import *
from pydevtensor.nn.modules.linear_cross_entropy_options import *
from pydevtensor.nn.modules.loss import *
from pydevtensor.nn.modules.module import Module as Module
from pydevtensor.nn.modules.normalization import *
from pydevtensor.nn.modules.padding import *
from pydevtensor.nn.modules.pixelshuffle import *
from pydevtensor.nn.modules.pooling import *
from pydevtensor.nn.modules.rnn import *
from pydevtensor.nn.modules.sparse import *
from pydevtensor.nn.modules.transformer import *
from pydevtensor.nn.modules.upsampling import *
from pydevtensor.nn.parallel.data_parallel import DataParallel as DataParallel
from pydevtensor.nn.parameter import Buffer as Buffer
from pydevtensor.nn.parameter import Parameter as Parameter
from pydevtensor.nn.parameter import UninitializedBuffer as UninitializedBuffer
from pydevtensor.nn.parameter import UninitializedParameter as UninitializedParameter

_publish(__name__)
