"""What programs use of torchvision: data sets, transforms, models and utils.

Data are read from local files; nothing is loaded from the network. Images are Pillow's
(`pip install pydevtensor[vision]`). Under `python -m pydevtensor run`,
`import torchvision` is this package.

>>> torch.vision.transforms.CenterCrop(2)(torch.arange(16).reshape(1, 4, 4))
tensor([[[ 5,  6],
         [ 9, 10]]])
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydevtensor.vision import datasets, io, models, ops, transforms, utils

__version__ = (
    "0.28.0+pydevtensor"  # the torchvision that goes with the PyTorch followed
)
__all__ = ["datasets", "io", "models", "ops", "transforms", "utils"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        from pydevtensor._absent import absent

        raise AttributeError(absent(__name__, name))
    from importlib import import_module

    return import_module("pydevtensor.vision." + name)


def __dir__() -> list[str]:
    return sorted(__all__)
