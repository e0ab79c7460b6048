"""The functions behind the modules of pydevtensor.nn."""

from pydevtensor._names import publish as _publish
from pydevtensor.nn._functional.activation import *
from pydevtensor.nn._functional.attention import *
from pydevtensor.nn._functional.conv import *
from pydevtensor.nn._functional.distance import *
from pydevtensor.nn._functional.dropout import *
from pydevtensor.nn._functional.linear import *
from pydevtensor.nn._functional.loss import *
from pydevtensor.nn._functional.normalization import *
from pydevtensor.nn._functional.padding import *
from pydevtensor.nn._functional.pooling import *
from pydevtensor.nn._functional.sparse import *
from pydevtensor.nn._functional.vision import *

_publish(__name__)
