"""The functions that torchvision's second version adds."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor.vision._libraries import is_image
from pydevtensor.vision.transforms import functional as _first

__all__ = ["grayscale_to_rgb", "to_dtype", "to_dtype_image", "to_image"]


def to_image(inpt: Any) -> Any:
    """A tensor (C, H, W) of an image or an array (H, W, C), with its values.

    >>> torch.vision.transforms.v2.functional.to_image(torch.ones(1, 2, 2)).shape
    torch.Size([1, 2, 2])
    """
    if isinstance(inpt, torch.Tensor):
        return inpt if inpt.ndim > 2 else inpt.unsqueeze(0)
    if is_image(inpt):
        return _first.pil_to_tensor(inpt)
    values = torch.as_tensor(inpt)
    values = values[..., None] if values.ndim == 2 else values
    return values.movedim(-1, -3).contiguous()


def to_dtype(inpt: Any, dtype: torch.dtype = torch.float32, scale: bool = False) -> Any:
    """The image in another element type, with values scaled to its range if scale.

    >>> x = torch.tensor([255], dtype=torch.uint8)
    >>> torch.vision.transforms.v2.functional.to_dtype(x, torch.float32, scale=True)
    tensor([1.])
    """
    return _first.convert_image_dtype(inpt, dtype) if scale else inpt.to(dtype)


to_dtype_image = to_dtype


def grayscale_to_rgb(inpt: Any) -> Any:
    """The image with its channel three times; one of three channels as it is.

    >>> x = torch.ones(1, 2, 2)
    >>> torch.vision.transforms.v2.functional.grayscale_to_rgb(x).shape
    torch.Size([3, 2, 2])
    """
    if is_image(inpt):
        return inpt.convert("RGB")
    return inpt if inpt.shape[-3] == 3 else inpt.expand(*inpt.shape[:-3], 3, -1, -1)
