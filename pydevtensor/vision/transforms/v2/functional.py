"""The functions behind the transforms, by the names of torchvision's second version."""

from pydevtensor._names import publish as _publish
from pydevtensor.vision.transforms.functional import *
from pydevtensor.vision.transforms.v2._functional import *

_publish(__name__)
