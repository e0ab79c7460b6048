"""Functions that move pixels: crops, flips, borders, sizes, rotations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import pydevtensor as torch
from pydevtensor.vision._libraries import numpy, pillow
from pydevtensor.vision.transforms._functional.convert import _array, get_dimensions

__all__ = ["InterpolationMode", "center_crop", "crop", "five_crop", "hflip", "pad"]
__all__ += ["resize", "resized_crop", "rotate", "vflip"]


class InterpolationMode(Enum):
    """How values between pixels are found.

    value  a member's value, such as 'bilinear'; ValueError for another

    >>> torch.vision.transforms.functional.InterpolationMode.BILINEAR.value
    'bilinear'
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_OF_PILLOW = {"nearest": 0, "nearest-exact": 0, "lanczos": 1, "bilinear": 2}
_OF_PILLOW |= {"bicubic": 3, "box": 4, "hamming": 5}


def _mode(interpolation: Any) -> str:
    """The name of a mode, which Pillow's number may stand for."""
    if isinstance(interpolation, InterpolationMode):
        return interpolation.value
    for name, number in _OF_PILLOW.items():
        if interpolation == number and not isinstance(interpolation, str):
            return name
    raise TypeError(
        f"interpolation is {interpolation!r}; give a member of InterpolationMode"
    )


def _pair(size: Any, what: str = "size") -> tuple[int, int]:
    """(height, width) of an int or a sequence of one or two."""
    if isinstance(size, int):
        return size, size
    size = tuple(size)
    if len(size) not in (1, 2):
        raise ValueError(f"{what} has {len(size)} numbers; give one or two")
    return size[0], size[-1]


# --- crops and flips


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """The part that begins at (top, left); zeros where it reaches over the edge.

    >>> TF = torch.vision.transforms.functional
    >>> TF.crop(torch.arange(9).reshape(1, 3, 3), 1, 1, 2, 2)
    tensor([[[4, 5],
             [7, 8]]])
    """
    _, h, w = get_dimensions(img)
    if not isinstance(img, torch.Tensor):
        return img.crop((left, top, left + width, top + height))
    bottom, right = top + height, left + width
    part = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if top >= 0 and left >= 0 and bottom <= h and right <= w:
        return part
    edges = [max(-left, 0), max(-top, 0), max(right - w, 0), max(bottom - h, 0)]
    return pad(part, edges)


def center_crop(img: Any, output_size: Any) -> Any:
    """The middle of an image, with a border of zeros if the image is smaller.

    >>> TF = torch.vision.transforms.functional
    >>> TF.center_crop(torch.arange(9).reshape(1, 3, 3), 1)
    tensor([[[4]]])
    """
    height, width = _pair(output_size)
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        wide, high = max(width - w, 0), max(height - h, 0)
        img = pad(img, [wide // 2, high // 2, (wide + 1) // 2, (high + 1) // 2])
        _, h, w = get_dimensions(img)
    return crop(img, round((h - height) / 2), round((w - width) / 2), height, width)


def five_crop(img: Any, size: Any) -> tuple[Any, ...]:
    """The four corners (top left, top right, bottom left, bottom right), the middle.

    >>> TF = torch.vision.transforms.functional
    >>> [int(c) for c in TF.five_crop(torch.arange(9).reshape(1, 3, 3), 1)]
    [0, 2, 6, 8, 4]
    """
    height, width = _pair(size)
    _, h, w = get_dimensions(img)
    if width > w or height > h:
        raise ValueError(f"five_crop(): {size} is more than the image, {(h, w)}")
    corners = [(0, 0), (0, w - width), (h - height, 0), (h - height, w - width)]
    parts = [crop(img, top, left, height, width) for top, left in corners]
    return (*parts, center_crop(img, (height, width)))


def hflip(img: Any) -> Any:
    """The image with left and right exchanged.

    >>> torch.vision.transforms.functional.hflip(torch.tensor([[[1, 2]]]))
    tensor([[[2, 1]]])
    """
    get_dimensions(img)
    return img.flip(-1) if isinstance(img, torch.Tensor) else img.transpose(0)


def vflip(img: Any) -> Any:
    """The image with top and bottom exchanged.

    >>> torch.vision.transforms.functional.vflip(torch.tensor([[[1], [2]]]))
    tensor([[[2],
             [1]]])
    """
    get_dimensions(img)
    return img.flip(-2) if isinstance(img, torch.Tensor) else img.transpose(1)


# --- borders

_SOURCES = {"edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """A border around the image.

    padding: one number, [left and right, top and bottom], or [left, top, right,
    bottom]. padding_mode: 'constant' for fill, 'edge' for the last pixel, 'reflect' or
    'symmetric' for a mirror image without or with it.

    >>> torch.vision.transforms.functional.pad(torch.ones(1, 1, 1), [1, 0])
    tensor([[[0., 1., 0.]]])
    """
    if isinstance(padding, int):
        padding = [padding]
    edges = list(padding)
    if len(edges) not in (1, 2, 4):
        raise ValueError(f"pad(): padding has {len(edges)} numbers; give 1, 2 or 4")
    left, top, right, bottom = edges * (4 // len(edges))
    if padding_mode not in ("constant", *_SOURCES):
        raise ValueError(
            f"pad(): padding_mode is {padding_mode!r}; give constant, edge, reflect or "
            "symmetric"
        )
    _, h, w = get_dimensions(img)
    tensor = isinstance(img, torch.Tensor)
    if padding_mode == "constant":
        if not tensor:
            bands = len(img.getbands())
            if isinstance(fill, int | float) and bands > 1:
                fill = (int(fill),) * bands
            border = (left, top, right, bottom)
            return pillow("ImageOps").expand(img, border=border, fill=fill)
        shape = (*img.shape[:-2], h + top + bottom, w + left + right)
        out = img.new_empty(shape)
        if isinstance(fill, int | float):
            out.fill_(fill)
        else:
            values = img.new_tensor(fill)
            out.copy_(values.view(-1, 1, 1) if values.ndim else values)
        # Negative numbers crop.
        inner = crop(img, max(-top, 0), max(-left, 0), h, w) if min(edges) < 0 else img
        high, wide = h + min(top, 0) + min(bottom, 0), w + min(left, 0) + min(right, 0)
        y, x = max(top, 0), max(left, 0)
        out[..., y : y + high, x : x + wide] = inner[..., :high, :wide]
        return out
    np = numpy("pad()")
    rows = np.pad(np.arange(h), (top, bottom), _SOURCES[padding_mode])
    columns = np.pad(np.arange(w), (left, right), _SOURCES[padding_mode])
    if tensor:
        for dim, index in ((-2, rows), (-1, columns)):
            img = img.index_select(dim, torch.from_numpy(index).to(img.device))
        return img
    from pydevtensor.vision.transforms._functional.convert import to_pil_image

    return to_pil_image(_array(img)[rows][:, columns], img.mode)


# --- sizes


def resize(
    img: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """The image in another size.

    size: (height, width), or one number for the shorter side, and then max_size limits
    the longer one. Where it gets smaller, antialias averages over all pixels (Pillow
    always does, and so does LANCZOS). BOX and HAMMING are for Pillow's images.

    >>> torch.vision.transforms.functional.resize(torch.ones(3, 4, 8), 2).shape
    torch.Size([3, 2, 4])
    """
    mode = _mode(interpolation)
    _, h, w = get_dimensions(img)
    if isinstance(size, int) or len(size) == 1:
        short = size if isinstance(size, int) else size[0]
        scaled = int(short * max(h, w) / min(h, w))
        if max_size is not None:
            if max_size <= short:
                raise ValueError(
                    f"resize(): max_size={max_size} has to be more than size={short}"
                )
            if scaled > max_size:
                short, scaled = int(max_size * short / scaled), max_size
        height, width = (short, scaled) if h <= w else (scaled, short)
    else:
        if max_size is not None:
            raise ValueError("resize(): max_size goes with one number as size")
        height, width = _pair(size)
    if (height, width) == (h, w):
        return img
    if not isinstance(img, torch.Tensor):
        return img.resize((width, height), _OF_PILLOW[mode])
    if mode not in ("nearest", "nearest-exact", *_REACHES):
        raise ValueError(
            f"resize(): {mode!r} is for Pillow's images; convert with to_pil_image()"
        )
    if "nearest" in mode:
        half = 0.5 if mode == "nearest-exact" else 0.0
        for dim, (old, new) in ((-2, (h, height)), (-1, (w, width))):
            index = [min(int((i + half) * old / new), old - 1) for i in range(new)]
            img = img.index_select(dim, torch.tensor(index, device=img.device))
        return img
    dtype = img.dtype if img.dtype.is_floating_point else torch.float32
    smooth = bool(antialias) or mode == "lanczos"
    rows = _weights(h, height, mode, smooth).to(img.device, dtype)
    columns = _weights(w, width, mode, smooth).to(img.device, dtype)
    out = torch.matmul(rows, torch.matmul(img.to(dtype), columns.t()))
    if img.dtype is not dtype:
        limit = 255 if img.dtype is torch.uint8 else None
        out = out.round() if limit is None else out.round().clamp(0, limit)
    return out.to(img.dtype)


# How far the filters reach on each side.
_REACHES = {"bilinear": 1.0, "bicubic": 2.0, "lanczos": 3.0}


def _weights(old: int, new: int, mode: str, antialias: bool) -> Any:
    """The matrix (new, old) that makes new pixels of the old ones along one side."""
    np = numpy("resize() of a tensor")

    scale = old / new
    stretch = max(scale, 1.0) if antialias else 1.0
    reach, a = _REACHES[mode], -0.5 if antialias else -0.75
    matrix = np.zeros((new, old))
    for i in range(new):
        center = scale * (i + 0.5)
        if antialias:
            low = max(int(center - reach * stretch + 0.5), 0)
            high = min(int(center + reach * stretch + 0.5), old)
            at = range(low, high)
        else:
            first = math.floor(center - 0.5) - int(reach) + 1
            at = range(first, first + 2 * int(reach))
        near = np.array([abs(j + 0.5 - center) / stretch for j in at])
        if mode == "bilinear":
            values = np.maximum(1 - near, 0)
        elif mode == "lanczos":
            values = np.where(near < 3, np.sinc(near) * np.sinc(near / 3), 0)
        else:
            inner = ((a + 2) * near - (a + 3)) * near * near + 1
            outer = (((near - 5) * near + 8) * near - 4) * a
            values = np.where(near < 1, inner, np.where(near < 2, outer, 0))
        values /= values.sum()
        for j, value in zip(at, values, strict=True):
            matrix[i, min(max(j, 0), old - 1)] += value
    return torch.from_numpy(matrix)


def resized_crop(
    img: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """crop(), then resize().

    >>> TF = torch.vision.transforms.functional
    >>> TF.resized_crop(torch.ones(3, 8, 8), 2, 2, 4, 4, (2, 2)).shape
    torch.Size([3, 2, 2])
    """
    img = crop(img, top, left, height, width)
    return resize(img, size, interpolation, antialias=antialias)


def rotate(
    img: Any,
    angle: float,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Any = None,
) -> Any:
    """The image turned by an angle in degrees, counter-clockwise.

    center: (x, y) of the point that stays. expand: make the result large enough for all
    of it. fill: what is where no pixel comes from. Tensors take the nearest pixel.

    >>> torch.vision.transforms.functional.rotate(torch.tensor([[[1, 2], [3, 4]]]), 90)
    tensor([[[2, 4],
             [1, 3]]])
    """
    mode = _mode(interpolation)
    channels, h, w = get_dimensions(img)
    if not isinstance(img, torch.Tensor):
        if isinstance(fill, int | float):
            fill = (int(fill),) * channels if channels > 1 else fill
        elif fill is not None:
            fill = tuple(fill) if channels > 1 else fill[0]
        return img.rotate(angle, _OF_PILLOW[mode], expand, center, fillcolor=fill)
    if mode != "nearest":
        raise ValueError(
            f"rotate(): tensors take the nearest pixel, and {mode!r} was asked for; "
            "convert with to_pil_image()"
        )
    turn = math.radians(angle % 360)
    cos, sin = round(math.cos(turn), 15), round(math.sin(turn), 15)
    middle = (w / 2, h / 2) if center is None else center
    width, height = w, h
    if expand:
        width = math.ceil(abs(w * cos) + abs(h * sin) - 1e-6)
        height = math.ceil(abs(w * sin) + abs(h * cos) - 1e-6)
    kind: Any = {"device": img.device, "dtype": torch.float64}
    x = torch.arange(width, **kind) + 0.5 - (width / 2 if expand else middle[0])
    y = (torch.arange(height, **kind) + 0.5).unsqueeze(1)
    y = y - (height / 2 if expand else middle[1])
    source_x = (cos * x - sin * y + middle[0] - 0.5).round().to(torch.int64)
    source_y = (sin * x + cos * y + middle[1] - 0.5).round().to(torch.int64)
    inside = (source_x >= 0) & (source_x < w) & (source_y >= 0) & (source_y < h)
    out = img[..., source_y.clamp(0, h - 1), source_x.clamp(0, w - 1)]
    values = img.new_tensor(0 if fill is None else fill)
    values = values.view(-1, 1, 1) if values.ndim else values
    return torch.where(inside, out, values)
