"""A part of torchvision: data sets, transforms, models and utils.

Data are read from local files; nothing is loaded from the network. Images are Pillow's
(`pip install pillow`). Under `python -m pydevtensor run`,
`import torchvision` is this package.

>>> torch.vision.transforms.CenterCrop(2)(torch.arange(16).reshape(1, 4, 4))
tensor([[[ 5,  6],
         [ 9, 10]]])
"""

from typing import TYPE_CHECKING

from pydevtensor._names import publish as _publish

if TYPE_CHECKING:
    from pydevtensor.vision import datasets, io, models, ops, transforms, utils

__version__ = (
    "0.28.0+pydevtensor"  # the torchvision that goes with the PyTorch followed
)
__all__ = ["datasets", "io", "models", "ops", "transforms", "utils"]

_publish(__name__, later=__all__)
