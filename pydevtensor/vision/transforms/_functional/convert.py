"""Conversions between images, arrays and tensors."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor.vision._libraries import is_image, numpy, pillow

__all__ = ["convert_image_dtype", "get_dimensions", "get_image_num_channels"]
__all__ += ["get_image_size", "normalize", "pil_to_tensor", "to_pil_image", "to_tensor"]

_MODES = {"I": "int32", "I;16": "uint16", "I;16B": ">u2", "F": "float32"}


def _array(image: Any) -> Any:
    """An array (H, W, C) of an image's values, which may be written."""
    np = numpy("an image's array")

    values = np.array(image, _MODES.get(image.mode, "uint8"), copy=True)
    if image.mode == "1":
        values *= 255
    return values.reshape(image.size[1], image.size[0], len(image.getbands()))


def get_dimensions(img: Any) -> list[int]:
    """[channels, height, width] of an image or a tensor.

    >>> torch.vision.transforms.functional.get_dimensions(torch.ones(3, 4, 5))
    [3, 4, 5]
    """
    if isinstance(img, torch.Tensor):
        if img.ndim < 2:
            raise TypeError(
                f"a tensor of shape {[*img.shape]} is not an image; give (..., C, H, W)"
            )
        return [1 if img.ndim == 2 else img.shape[-3], *img.shape[-2:]]
    if is_image(img):
        return [len(img.getbands()), img.size[1], img.size[0]]
    raise TypeError(
        f"a {type(img).__name__} is not an image; give one of Pillow's or a tensor"
    )


def get_image_size(img: Any) -> list[int]:
    """[width, height] of an image or a tensor.

    >>> torch.vision.transforms.functional.get_image_size(torch.ones(3, 4, 5))
    [5, 4]
    """
    return get_dimensions(img)[:0:-1]


def get_image_num_channels(img: Any) -> int:
    """The channels of an image or a tensor.

    >>> torch.vision.transforms.functional.get_image_num_channels(torch.ones(3, 4, 5))
    3
    """
    return get_dimensions(img)[0]


def to_tensor(pic: Any) -> Any:
    """A tensor (C, H, W) of an image or an array (H, W, C).

    Values of 8 bits are divided by 255 and have the default dtype; others stay.

    >>> TF = torch.vision.transforms.functional
    >>> import numpy as np
    >>> TF.to_tensor(np.full((1, 2, 3), 255, dtype=np.uint8)).shape
    torch.Size([3, 1, 2])
    """
    np = numpy("to_tensor()")

    if isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(
                f"to_tensor(): an array of shape {[*pic.shape]} is not an image; give "
                "(H, W) or (H, W, C)"
            )
        values = pic[:, :, None] if pic.ndim == 2 else pic
    elif is_image(pic):
        values = _array(pic)
    else:
        raise TypeError(
            f"to_tensor(): a {type(pic).__name__} is not an image; give one "
            "of Pillow's or a NumPy array"
        )
    eight = values.dtype == np.uint8
    if values.dtype == np.uint16:
        values = values.astype(np.int32)
    out = torch.from_numpy(np.ascontiguousarray(values.transpose(2, 0, 1)))
    return out.to(torch.get_default_dtype()).div_(255) if eight else out


def pil_to_tensor(pic: Any) -> Any:
    """A tensor (C, H, W) of an image, with its values and element type.

    >>> image = torch.vision.transforms.functional.to_pil_image(torch.zeros(3, 2, 2))
    >>> torch.vision.transforms.functional.pil_to_tensor(image).dtype
    torch.uint8
    """
    np = numpy("pil_to_tensor()")

    if not is_image(pic):
        raise TypeError(
            f"pil_to_tensor(): a {type(pic).__name__} is not an image of Pillow's; use "
            "to_tensor() for an array"
        )
    values = _array(pic)
    if values.dtype == np.uint16:
        values = values.astype(np.int32)
    return torch.from_numpy(np.ascontiguousarray(values.transpose(2, 0, 1)))


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """An image of a tensor (C, H, W) or an array (H, W, C).

    Floating values, between 0 and 1, are multiplied by 255. mode: Pillow's name of the
    colors; without it, it follows from the channels and the element type.

    >>> torch.vision.transforms.functional.to_pil_image(torch.rand(3, 4, 5)).size
    (5, 4)
    """
    np = numpy("to_pil_image()")

    if not isinstance(pic, torch.Tensor | np.ndarray):
        raise TypeError(
            f"to_pil_image(): a {type(pic).__name__} was given; give a tensor or a "
            "NumPy array"
        )
    if pic.ndim not in (2, 3):
        raise ValueError(
            f"to_pil_image(): a shape of {pic.ndim} dimensions is not an image; "
            "give 2 or 3"
        )
    if isinstance(pic, torch.Tensor):
        pic = pic.detach().cpu()
        if pic.ndim == 2:
            pic = pic.unsqueeze(0)
        if pic.dtype.is_floating_point and mode != "F":
            pic = pic.mul(255).to(torch.uint8)
        values = pic.permute(1, 2, 0).contiguous().numpy()
    else:
        values = pic[:, :, None] if pic.ndim == 2 else pic
    channels = values.shape[2]
    if channels > 4:
        raise ValueError(
            f"to_pil_image(): {channels} channels do not make an image; give 1 to 4"
        )
    single = {"uint8": "L", "int16": "I;16", "int32": "I", "float32": "F"}
    found: str | None = {2: "LA", 3: "RGB", 4: "RGBA"}.get(channels)
    if channels == 1:
        found = single.get(values.dtype.name)
        values = values[:, :, 0]
    elif values.dtype != np.uint8:
        found = None
    if found is None:
        raise TypeError(
            f"to_pil_image(): Pillow has no images of {channels} channels of "
            f"{values.dtype}; convert to torch.uint8"
        )
    possible = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV")}.get(channels, (found,))
    if channels == 4:
        possible = ("RGBA", "CMYK", "RGBX")
    if mode is not None and mode not in possible:
        raise ValueError(
            f"to_pil_image(): mode {mode!r} does not fit {channels} channels of "
            f"{values.dtype}; give one of {possible}"
        )
    image = pillow()
    if mode in (None, found):
        if found == "I;16":
            values = values.astype(np.uint16)
        return image.fromarray(values)
    size = values.shape[1], values.shape[0]
    return image.frombytes(mode, size, np.ascontiguousarray(values).tobytes())


def convert_image_dtype(image: Any, dtype: Any = torch.float32) -> Any:
    """The image in another element type, with values scaled to the type's range.

    >>> TF = torch.vision.transforms.functional
    >>> TF.convert_image_dtype(torch.tensor([0, 255], dtype=torch.uint8))
    tensor([0., 1.])
    >>> TF.convert_image_dtype(torch.tensor([0.0, 1.0]), torch.uint8)
    tensor([  0, 255], dtype=torch.uint8)
    """
    if image.dtype is dtype:
        return image
    if image.dtype.is_floating_point:
        if dtype.is_floating_point:
            return image.to(dtype)
        wide = dtype is torch.int64 or (
            dtype is torch.int32 and image.dtype is not torch.float64
        )
        if wide:
            raise RuntimeError(
                f"convert_image_dtype(): {image.dtype} cannot hold the values of "
                f"{dtype}; choose a smaller type"
            )
        return image.mul(_greatest(dtype) + 1 - 1e-3).to(dtype)
    theirs = _greatest(image.dtype)
    if dtype.is_floating_point:
        return image.to(dtype) / theirs
    mine = _greatest(dtype)
    if theirs > mine:
        factor = (theirs + 1) // (mine + 1)
        return torch.div(image, factor, rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((mine + 1) // (theirs + 1))


def _greatest(dtype: Any) -> int:
    from pydevtensor import iinfo

    return 1 if dtype is torch.bool else iinfo(dtype).max


def normalize(tensor: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    """(tensor - mean) / std, with a mean and a deviation for each channel.

    >>> torch.vision.transforms.functional.normalize(torch.ones(1, 1, 2), [0.5], [0.25])
    tensor([[[2., 2.]]])
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"normalize(): a {type(tensor).__name__} was given; convert it with "
            "to_tensor() first"
        )
    if not tensor.dtype.is_floating_point:
        raise TypeError(
            f"normalize(): the tensor is {tensor.dtype}; convert it with "
            "convert_image_dtype() first"
        )
    if tensor.ndim < 3:
        raise ValueError(
            f"normalize(): the shape {[*tensor.shape]} is not an image; "
            "give (..., C, H, W)"
        )
    shift = torch.as_tensor(mean, dtype=tensor.dtype, device=tensor.device)
    scale = torch.as_tensor(std, dtype=tensor.dtype, device=tensor.device)
    if (scale == 0).any().item():
        raise ValueError(f"normalize(): std is {std}, and no deviation may be 0")
    shift, scale = (v.view(-1, 1, 1) if v.ndim == 1 else v for v in (shift, scale))
    if not inplace:
        tensor = tensor.clone()
    return tensor.sub_(shift).div_(scale)
