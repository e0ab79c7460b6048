"""Grids of images, and files of them."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor._names import publish as _publish

__all__ = ["make_grid", "save_image"]


def make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Any:
    """One image (C, H, W) of the images (B, C, H, W), or of a list of them.

    One channel becomes three. TypeError or ValueError for others. See also
    save_image().

    tensor       the images, a tensor (B, C, H, W), (C, H, W) or (H, W), or a list of
                 tensors of one shape
    nrow         the images in a row
    padding      pixels between the images and around them
    normalize    bring the values to 0 to 1
    value_range  bring this to 0 to 1, a tuple (least, greatest); by default what there
                 is
    scale_each   take least and greatest of each image
    pad_value    value of the pixels between

    >>> torch.vision.utils.make_grid(torch.rand(10, 3, 4, 4)).shape
    torch.Size([3, 14, 50])
    """
    if isinstance(tensor, list) and all(isinstance(t, torch.Tensor) for t in tensor):
        tensor = torch.stack(tensor)
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"make_grid(): a {type(tensor).__name__} was given; give a tensor or a "
            "list of tensors"
        )
    if not 2 <= tensor.ndim <= 4:
        raise ValueError(
            f"make_grid(): the shape {[*tensor.shape]} is not (B, C, H, W), "
            "(C, H, W) or (H, W)"
        )
    if value_range is not None and not isinstance(value_range, tuple):
        raise TypeError("make_grid(): value_range has to be a tuple (least, greatest)")
    images = tensor.reshape((1,) * (4 - tensor.ndim) + tuple(tensor.shape))
    if images.shape[1] == 1:
        images = images.expand(-1, 3, -1, -1)
    if normalize:
        images = images.clone()
        for part in images if scale_each else [images]:
            low, high = value_range or (part.min().item(), part.max().item())
            part.clamp_(low, high).sub_(low).div_(max(high - low, 1e-5))
    if images.shape[0] == 1:
        return images.squeeze(0)
    count, channels, h, w = images.shape
    across = min(nrow, count)
    down = -(-count // across)
    size = channels, (h + padding) * down + padding, (w + padding) * across + padding
    grid = images.new_full(size, pad_value)
    for i, image in enumerate(images):
        top = i // across * (h + padding) + padding
        left = i % across * (w + padding) + padding
        grid[:, top : top + h, left : left + w] = image
    return grid


def save_image(tensor: Any, fp: Any, format: str | None = None, **options: Any) -> None:
    """Write images as a grid (see make_grid) into a file, by Pillow.

    See also make_grid().

    tensor   the images, with values from 0 to 1, as for make_grid()
    fp       a path, or a file that is open for writing bytes
    format   the format's name, such as 'PNG'; by default the ending of the path says it
    options  arguments of make_grid() by name, such as nrow

    >>> torch.vision.utils.save_image(torch.rand(4, 3, 8, 8), 'grid.png', nrow=2)
    """
    from pydevtensor.vision.transforms.functional import to_pil_image

    grid = make_grid(tensor, **options).detach()
    values = grid.mul(255).add(0.5).clamp(0, 255).to("cpu", torch.uint8)
    to_pil_image(values).save(fp, format=format)


_publish(__name__)
