"""The modules of nn, a file for each subject, by the names of torch.nn.modules."""

from pydevtensor._names import publish as _publish
from pydevtensor.nn.modules import utils as utils
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

_publish(__name__)
