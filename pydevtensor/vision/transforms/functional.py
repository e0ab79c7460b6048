"""The functions behind the transforms, for Pillow's images and for tensors."""

from pydevtensor._names import publish as _publish
from pydevtensor.vision.transforms._functional.color import *
from pydevtensor.vision.transforms._functional.convert import *
from pydevtensor.vision.transforms._functional.geometry import *

_publish(__name__)
