"""The transforms by the names of torchvision's second version.

They are those of torch.vision.transforms, and take images and tensors; boxes and masks
they take as images.
"""

from pydevtensor._names import publish as _publish
from pydevtensor.vision.transforms.color import *
from pydevtensor.vision.transforms.compose import *
from pydevtensor.vision.transforms.convert import *
from pydevtensor.vision.transforms.functional import (
    InterpolationMode as InterpolationMode,
)
from pydevtensor.vision.transforms.geometry import *
from pydevtensor.vision.transforms.v2 import functional as functional
from pydevtensor.vision.transforms.v2._transforms import *

_publish(__name__)
