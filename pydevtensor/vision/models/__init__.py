"""Networks for images, with torchvision's names in their state_dict()."""

from pydevtensor._names import publish as _publish
from pydevtensor.vision.models.alexnet import *
from pydevtensor.vision.models.resnet import *
from pydevtensor.vision.models.squeezenet import *
from pydevtensor.vision.models.vgg import *

_publish(__name__)
