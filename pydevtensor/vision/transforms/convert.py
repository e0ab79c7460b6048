"""Transforms between images, arrays and tensors."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor.nn import Module
from pydevtensor.vision.transforms import functional as F

__all__ = ["ConvertImageDtype", "Normalize", "PILToTensor", "ToPILImage", "ToTensor"]


class ToTensor:
    """A tensor (C, H, W) of an image or an array (H, W, C); 8 bits become 0 to 1.

    >>> image = torch.vision.transforms.ToPILImage()(torch.ones(3, 2, 2))
    >>> torch.vision.transforms.ToTensor()(image).shape
    torch.Size([3, 2, 2])
    """

    def __call__(self, pic: Any) -> Any:
        return F.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """A tensor (C, H, W) of an image, with its values.

    >>> image = torch.vision.transforms.ToPILImage()(torch.ones(3, 2, 2))
    >>> torch.vision.transforms.PILToTensor()(image).dtype
    torch.uint8
    """

    def __call__(self, pic: Any) -> Any:
        return F.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPILImage:
    """An image of a tensor (C, H, W) or an array (H, W, C).

    mode  the image's, as Pillow names it, such as 'RGB'; None: what the channels and
          type suggest

    >>> torch.vision.transforms.ToPILImage()(torch.ones(3, 2, 2)).mode
    'RGB'
    """

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        shown = "" if self.mode is None else f"mode={self.mode}"
        return f"{type(self).__name__}({shown})"


class ConvertImageDtype(Module):
    """The image in another element type, with values scaled to the type's range.

    dtype  the element type, such as torch.float32

    >>> t = torch.vision.transforms.ConvertImageDtype(torch.float32)
    >>> t(torch.tensor([255], dtype=torch.uint8))
    tensor([1.])
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Any) -> Any:
        """The image in the other element type.

        image  a tensor
        """
        return F.convert_image_dtype(image, self.dtype)


class Normalize(Module):
    """(tensor - mean) / std, with a mean and a deviation for each channel.

    mean, std  a number for each channel; ValueError, when called, for a deviation of 0
    inplace    write the result into the tensor

    >>> torch.vision.transforms.Normalize([0.5], [0.25])(torch.ones(1, 1, 2))
    tensor([[[2., 2.]]])
    """

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor: Any) -> Any:
        """(tensor - mean) / std.

        tensor  a floating one, (..., C, H, W)
        """
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"
