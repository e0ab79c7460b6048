"""Functions that change colors."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor.vision._libraries import is_image, numpy, pillow
from pydevtensor.vision.transforms._functional.convert import (
    convert_image_dtype,
    get_dimensions,
)

__all__ = ["adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation"]
__all__ += ["invert", "rgb_to_grayscale", "to_grayscale"]


def _checked(img: Any, factor: float, name: str) -> None:
    channels = get_dimensions(img)[0]
    if factor < 0:
        raise ValueError(f"{name}(): the factor is {factor}; give 0 or more")
    if isinstance(img, torch.Tensor) and channels not in (1, 3):
        raise TypeError(f"{name}(): the tensor has {channels} channels; give 1 or 3")


def _blend(a: Any, b: Any, factor: float) -> Any:
    bound = 1.0 if a.dtype.is_floating_point else 255
    return (factor * a + (1 - factor) * b).clamp(0, bound).to(a.dtype)


def _enhanced(img: Any, kind: str, factor: float) -> Any:
    return getattr(pillow("ImageEnhance"), kind)(img).enhance(factor)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """The brightness of colors, 0.2989 red + 0.587 green + 0.114 blue, 1 or 3 times.

    >>> torch.vision.transforms.functional.rgb_to_grayscale(torch.ones(3, 1, 1))
    tensor([[[0.9999]]])
    """
    if num_output_channels not in (1, 3):
        raise ValueError(
            f"rgb_to_grayscale(): num_output_channels is {num_output_channels}; give "
            "1 or 3"
        )
    if is_image(img):
        gray = img.convert("L")
        if num_output_channels == 3:
            return pillow().merge("RGB", (gray, gray, gray))
        return gray
    if get_dimensions(img)[0] == 1:
        gray = img.clone()
    else:
        red, green, blue = img.unbind(-3)
        gray = (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype)
        gray = gray.unsqueeze(-3)
    if num_output_channels == 1:
        return gray
    return gray.expand(*img.shape[:-3], 3, *img.shape[-2:])


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """rgb_to_grayscale() of one of Pillow's images.

    >>> TF = torch.vision.transforms.functional
    >>> TF.to_grayscale(TF.to_pil_image(torch.ones(3, 2, 2))).mode
    'L'
    """
    if not is_image(img):
        raise TypeError("to_grayscale() takes an image; use rgb_to_grayscale()")
    return rgb_to_grayscale(img, num_output_channels)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Brighter by a factor: 0 is black, 1 the image itself.

    >>> TF = torch.vision.transforms.functional
    >>> TF.adjust_brightness(torch.full((1, 1, 1), 0.25), 2)
    tensor([[[0.5000]]])
    """
    _checked(img, brightness_factor, "adjust_brightness")
    if is_image(img):
        return _enhanced(img, "Brightness", brightness_factor)
    return _blend(img, torch.zeros_like(img), brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """More contrast by a factor: 0 is a plain gray, 1 the image itself.

    >>> TF = torch.vision.transforms.functional
    >>> TF.adjust_contrast(torch.tensor([[[0.0, 1.0]]]), 0.5)
    tensor([[[0.2500, 0.7500]]])
    """
    _checked(img, contrast_factor, "adjust_contrast")
    if is_image(img):
        return _enhanced(img, "Contrast", contrast_factor)
    gray = rgb_to_grayscale(img)
    gray = gray if gray.dtype.is_floating_point else gray.to(torch.float32)
    return _blend(img, gray.mean(dim=(-3, -2, -1), keepdim=True), contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """More color by a factor: 0 is gray, 1 the image itself.

    >>> TF = torch.vision.transforms.functional
    >>> TF.adjust_saturation(torch.rand(3, 2, 2), 0)[:, 0, 0].unique().numel()
    1
    """
    _checked(img, saturation_factor, "adjust_saturation")
    if is_image(img):
        return _enhanced(img, "Color", saturation_factor)
    if img.shape[-3] == 1:
        return img
    return _blend(img, rgb_to_grayscale(img), saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """The colors turned by a part of the circle, from -0.5 to 0.5.

    >>> red = torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1)
    >>> torch.vision.transforms.functional.adjust_hue(red, 1 / 3).flatten().round()
    tensor([0., 1., 0.])
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"adjust_hue(): {hue_factor} is not between -0.5 and 0.5")
    _checked(img, 0, "adjust_hue")
    if is_image(img):
        np = numpy("adjust_hue()")

        if img.mode in ("L", "1", "I", "F"):
            return img
        hue, saturation, value = img.convert("HSV").split()
        turned = np.array(hue, dtype=np.uint8) + np.uint8(int(hue_factor * 255) % 256)
        hue = pillow().fromarray(turned)
        return pillow().merge("HSV", (hue, saturation, value)).convert(img.mode)
    if img.shape[-3] == 1:
        return img
    rgb = convert_image_dtype(img, torch.float32) if img.dtype is torch.uint8 else img
    return convert_image_dtype(_turned(rgb, hue_factor), img.dtype)


def _turned(rgb: Any, by: float) -> Any:
    """Colors with their hue, a number from 0 to 6 around the circle, turned."""
    red, green, blue = rgb.unbind(-3)
    value = rgb.amax(-3)
    spread = value - rgb.amin(-3)
    safe = torch.where(spread == 0, torch.ones_like(spread), spread)
    hue = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    # A channel falls from the value by the spread, as far as its hue is away.
    channels = [
        value - spread * torch.minimum(k, 4 - k).clamp(0, 1)
        for k in ((n + hue + 6 * by) % 6 for n in (5, 3, 1))
    ]
    return torch.stack(channels, -3)


def invert(img: Any) -> Any:
    """The negative of an image.

    >>> torch.vision.transforms.functional.invert(torch.tensor([[[0.25]]]))
    tensor([[[0.7500]]])
    """
    if is_image(img):
        return pillow("ImageOps").invert(img)
    get_dimensions(img)
    return (1 if img.dtype.is_floating_point else 255) - img
