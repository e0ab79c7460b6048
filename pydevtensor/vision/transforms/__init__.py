"""Transforms of images: Pillow's, and tensors of shape (..., C, H, W)."""

from pydevtensor._names import publish as _publish
from pydevtensor.vision.transforms import functional as functional
from pydevtensor.vision.transforms.color import *
from pydevtensor.vision.transforms.compose import *
from pydevtensor.vision.transforms.convert import *
from pydevtensor.vision.transforms.functional import (
    InterpolationMode as InterpolationMode,
)
from pydevtensor.vision.transforms.geometry import *

from pydevtensor.vision.transforms import v2 as v2  # isort: skip  # needs the above

_publish(__name__)
