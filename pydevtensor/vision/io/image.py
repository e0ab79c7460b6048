"""Images in files, by Pillow."""

from __future__ import annotations

import io
import os
from enum import Enum
from typing import Any

import pydevtensor as torch
from pydevtensor._names import publish as _publish
from pydevtensor.vision._libraries import pillow

__all__ = ["ImageReadMode", "decode_image", "read_image", "write_jpeg", "write_png"]


class ImageReadMode(Enum):
    """The channels of an image that is read.

    >>> from pydevtensor.vision.io import ImageReadMode
    >>> ImageReadMode.RGB.value
    3
    """

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


_MODES = {"GRAY": "L", "GRAY_ALPHA": "LA", "RGB": "RGB", "RGB_ALPHA": "RGBA"}


def _opened(file: Any, mode: Any) -> Any:
    from pydevtensor.vision.transforms.functional import pil_to_tensor

    mode = ImageReadMode[mode] if isinstance(mode, str) else mode
    with pillow().open(file) as image:
        if mode is not ImageReadMode.UNCHANGED:
            image = image.convert(_MODES[mode.name])
        elif image.mode in ("P", "1"):
            image = image.convert("RGB" if image.mode == "P" else "L")
        return pil_to_tensor(image)


def read_image(path: Any, mode: Any = ImageReadMode.UNCHANGED) -> Any:
    """The image in a file, a tensor (C, H, W) of uint8.

    >>> torch.vision.io.write_png(torch.zeros(3, 2, 4, dtype=torch.uint8), 'black.png')
    >>> torch.vision.io.read_image('black.png').shape
    torch.Size([3, 2, 4])
    """
    return _opened(os.fspath(path), mode)


def decode_image(input: Any, mode: Any = ImageReadMode.UNCHANGED) -> Any:
    """The image in the bytes of a file, which are a tensor of uint8.

    >>> black = torch.zeros(3, 2, 4, dtype=torch.uint8)
    >>> torch.vision.io.write_png(black, 'black.png')
    >>> with open('black.png', 'rb') as file:
    ...     data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    >>> torch.vision.io.decode_image(data).shape
    torch.Size([3, 2, 4])
    """
    if not isinstance(input, torch.Tensor) or input.dtype is not torch.uint8:
        raise RuntimeError(
            "decode_image(): give a tensor of uint8, or use read_image()"
        )
    return _opened(io.BytesIO(input.cpu().numpy().tobytes()), mode)


def _written(input: Any, filename: Any, format: str, **options: Any) -> None:
    from pydevtensor.vision.transforms.functional import to_pil_image

    if input.dtype is not torch.uint8 or input.ndim != 3:
        raise RuntimeError(
            f"an image of {input.dtype} and shape {[*input.shape]} cannot be written; "
            "give (C, H, W) of torch.uint8"
        )
    to_pil_image(input).save(os.fspath(filename), format, **options)


def write_png(input: Any, filename: Any, compression_level: int = 6) -> None:
    """Write a tensor (C, H, W) of uint8 into a PNG file.

    >>> torch.vision.io.write_png(torch.zeros(3, 2, 4, dtype=torch.uint8), 'black.png')
    """
    _written(input, filename, "PNG", compress_level=compression_level)


def write_jpeg(input: Any, filename: Any, quality: int = 75) -> None:
    """Write a tensor (C, H, W) of uint8 into a JPEG file.

    >>> torch.vision.io.write_jpeg(torch.zeros(3, 2, 4, dtype=torch.uint8), 'black.jpg')
    """
    _written(input, filename, "JPEG", quality=quality)


_publish(__name__)
