"""The transforms that torchvision's second version adds."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor.nn import Module
from pydevtensor.vision.transforms.v2 import functional

__all__ = ["Identity", "ToDtype", "ToImage"]


class ToImage(Module):
    """A tensor (C, H, W) of an image or an array (H, W, C), with its values.

    >>> image = torch.vision.transforms.ToPILImage()(torch.ones(3, 2, 2))
    >>> torch.vision.transforms.v2.ToImage()(image).dtype
    torch.uint8
    """

    def forward(self, pic: Any) -> Any:
        """The tensor."""
        return functional.to_image(pic)


class ToDtype(Module):
    """The image in another element type.

    dtype  the element type, such as torch.float32
    scale  whether values are scaled to the type's range

    >>> t = torch.vision.transforms.v2.ToDtype(torch.float32, scale=True)
    >>> t(torch.tensor([255], dtype=torch.uint8))
    tensor([1.])
    """

    def __init__(self, dtype: torch.dtype, scale: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.scale = scale

    def forward(self, image: Any) -> Any:
        """The image in the other element type."""
        return functional.to_dtype(image, self.dtype, self.scale)


class Identity(Module):
    """The image itself.

    >>> torch.vision.transforms.v2.Identity()(torch.ones(1))
    tensor([1.])
    """

    def forward(self, *inputs: Any) -> Any:
        """The inputs."""
        return inputs[0] if len(inputs) == 1 else inputs
