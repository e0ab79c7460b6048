"""Transforms that move pixels.

Random ones draw from the default generator: a flip one number of rand(1), a crop one
randint() for the top and one for the left, a rotation one number of uniform_().
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pydevtensor as torch
from pydevtensor.vision.transforms import functional as F
from pydevtensor.vision.transforms._functional.geometry import (
    InterpolationMode,
    _mode,
    _pair,
)
from pydevtensor.vision.transforms._transform import Transform

__all__ = ["CenterCrop", "FiveCrop", "Pad", "RandomCrop", "RandomHorizontalFlip"]
__all__ += ["RandomResizedCrop", "RandomRotation", "RandomVerticalFlip", "Resize"]

_BILINEAR, _NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


def _uniform(low: float, high: float) -> float:
    return torch.empty(1).uniform_(low, high).item()


class Resize(Transform):
    """The image in another size.

    See also transforms.functional.resize().

    size           (height, width), or one number for the shorter side
    interpolation  how values between pixels are found, an InterpolationMode; BOX and
                   HAMMING are for Pillow's images, ValueError for a tensor
    max_size       greatest length of the longer side, for one number as size
    antialias      average over all pixels where a tensor gets smaller, as Pillow does

    >>> torch.vision.transforms.Resize(2)(torch.ones(3, 4, 8)).shape
    torch.Size([3, 2, 4])
    """

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: Any = _BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, int):
            _pair(size)
        self.size = size
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def forward(self, img: Any) -> Any:
        return F.resize(
            img, self.size, self.interpolation, self.max_size, self.antialias
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, "
            f"interpolation={_mode(self.interpolation)}, max_size={self.max_size}, "
            f"antialias={self.antialias})"
        )


class CenterCrop(Transform):
    """The middle of an image.

    A smaller image gets a border of zeros.

    size  (height, width), or one number for both

    >>> torch.vision.transforms.CenterCrop(1)(torch.arange(9).reshape(1, 3, 3))
    tensor([[[4]]])
    """

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size: tuple[int, int] = _pair(size)

    def forward(self, img: Any) -> Any:
        return F.center_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class FiveCrop(Transform):
    """A tuple of the four corners and the middle.

    ValueError, when called, for an image that is smaller.

    size  (height, width) of each, or one number for both

    >>> len(torch.vision.transforms.FiveCrop(1)(torch.arange(9).reshape(1, 3, 3)))
    5
    """

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size: tuple[int, int] = _pair(size)

    def forward(self, img: Any) -> tuple[Any, ...]:
        return F.five_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class Pad(Transform):
    """A border around the image, as transforms.functional.pad().

    padding       one number, [left and right, top and bottom], or [left, top, right,
                  bottom]
    fill          value of the border, a number or one for each channel
    padding_mode  'constant' for fill, 'edge' for the last pixel, 'reflect' or
                  'symmetric' for a mirror image without or with it

    >>> torch.vision.transforms.Pad([1, 0])(torch.ones(1, 1, 1))
    tensor([[[0., 1., 0.]]])
    """

    def __init__(
        self, padding: Any, fill: Any = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, "
            f"padding_mode={self.padding_mode})"
        )


class RandomCrop(Transform):
    """A part of the image, of one size, from anywhere.

    ValueError, when called, for an image that is smaller.

    size           (height, width), or one number for both
    padding        a border that is added first, as for Pad
    pad_if_needed  add one if the image is smaller
    fill           value of the border, a number or one for each channel
    padding_mode   how the border is filled, as for Pad

    >>> torch.vision.transforms.RandomCrop(2)(torch.ones(3, 4, 4)).shape
    torch.Size([3, 2, 2])
    """

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size: tuple[int, int] = _pair(size)
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    @staticmethod
    def get_params(img: Any, output_size: Any) -> tuple[int, int, int, int]:
        """Draw (top, left, height, width) of a part.

        img          the image
        output_size  (height, width) of the part; ValueError for more than the image

        >>> torch.vision.transforms.RandomCrop.get_params(torch.ones(3, 4, 4), (4, 4))
        (0, 0, 4, 4)
        """
        _, h, w = F.get_dimensions(img)
        height, width = output_size
        if h < height or w < width:
            raise ValueError(
                f"RandomCrop: {(height, width)} is more than the image, {(h, w)}; pad "
                "it with pad_if_needed=True"
            )
        if (h, w) == (height, width):
            return 0, 0, h, w
        top = int(torch.randint(0, h - height + 1, size=(1,)).item())
        left = int(torch.randint(0, w - width + 1, size=(1,)).item())
        return top, left, height, width

    def forward(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        height, width = self.size
        if self.pad_if_needed:
            for dim, wanted in ((2, width), (1, height)):
                missing = wanted - F.get_dimensions(img)[dim]
                if missing > 0:
                    edges = [missing, 0] if dim == 2 else [0, missing]
                    img = F.pad(img, edges, self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomResizedCrop(Transform):
    """A part of the image, of any size and aspect, brought to one size.

    It is the middle of the image if ten draws do not fit.

    size           (height, width) of the result, or one number for both
    scale          limits of the part's area, as a part of the image's
    ratio          limits of the part's width divided by its height
    interpolation  how values between pixels are found, an InterpolationMode
    antialias      average over all pixels where a tensor gets smaller, as Pillow does

    >>> torch.vision.transforms.RandomResizedCrop(2)(torch.ones(3, 8, 8)).shape
    torch.Size([3, 2, 2])
    """

    def __init__(
        self,
        size: Any,
        scale: Any = (0.08, 1.0),
        ratio: Any = (3 / 4, 4 / 3),
        interpolation: Any = _BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size: tuple[int, int] = _pair(size)
        self.scale = scale
        self.ratio = ratio
        self.interpolation = interpolation
        self.antialias = antialias

    @staticmethod
    def get_params(img: Any, scale: Any, ratio: Any) -> tuple[int, int, int, int]:
        """Draw (top, left, height, width) of a part.

        img    the image
        scale  limits of the part's area, as a part of the image's
        ratio  limits of the part's width divided by its height

        >>> transforms = torch.vision.transforms
        >>> image = torch.ones(3, 4, 4)
        >>> transforms.RandomResizedCrop.get_params(image, (1.0, 1.0), (1.0, 1.0))
        (0, 0, 4, 4)
        """
        _, h, w = F.get_dimensions(img)
        limits = torch.log(torch.tensor(ratio)).tolist()
        for _ in range(10):
            area = h * w * _uniform(scale[0], scale[1])
            aspect = torch.exp(torch.empty(1).uniform_(limits[0], limits[1])).item()
            width = round(math.sqrt(area * aspect))
            height = round(math.sqrt(area / aspect))
            if 0 < width <= w and 0 < height <= h:
                top = int(torch.randint(0, h - height + 1, size=(1,)).item())
                left = int(torch.randint(0, w - width + 1, size=(1,)).item())
                return top, left, height, width
        width, height = w, h
        if w / h < min(ratio):
            height = round(w / min(ratio))
        elif w / h > max(ratio):
            width = round(h * max(ratio))
        return (h - height) // 2, (w - width) // 2, height, width

    def forward(self, img: Any) -> Any:
        part = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *part, self.size, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        scale, ratio = (
            tuple(round(v, 4) for v in pair) for pair in (self.scale, self.ratio)
        )
        return (
            f"{type(self).__name__}(size={self.size}, scale={scale}, ratio={ratio}, "
            f"interpolation={_mode(self.interpolation)}, antialias={self.antialias})"
        )


class RandomHorizontalFlip(Transform):
    """Left and right exchanged, or the image unchanged.

    p  probability of the exchange

    >>> torch.vision.transforms.RandomHorizontalFlip(p=1.0)(torch.tensor([[[1, 2]]]))
    tensor([[[2, 1]]])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return F.hflip(img) if torch.rand(1) < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom exchanged, or the image unchanged.

    p  probability of the exchange

    >>> transforms = torch.vision.transforms
    >>> transforms.RandomVerticalFlip(p=0.0)(torch.tensor([[[1], [2]]])).flatten()
    tensor([1, 2])
    """

    def forward(self, img: Any) -> Any:
        return F.vflip(img) if torch.rand(1) < self.p else img


class RandomRotation(Transform):
    """The image turned by an angle from -degrees to degrees, or between two limits.

    Counter-clockwise; see also transforms.functional.rotate().

    degrees        one number, 0 or more, or the two limits; ValueError for others
    interpolation  how values between pixels are found, an InterpolationMode; NEAREST
                   alone for a tensor, else ValueError
    expand         make the result large enough for all of the image
    center         (x, y) of the point that stays, in pixels; None: the middle
    fill           value where no pixel comes from, a number or one for each channel

    >>> transforms = torch.vision.transforms
    >>> transforms.RandomRotation((90, 90))(torch.tensor([[[1, 2], [3, 4]]]))
    tensor([[[2, 4],
             [1, 3]]])
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Any = _NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        if isinstance(degrees, int | float):
            if degrees < 0:
                raise ValueError(f"RandomRotation: degrees is {degrees}, and negative")
            degrees = (-degrees, degrees)
        if len(degrees) != 2:
            raise ValueError("RandomRotation: degrees has to be one number or two")
        self.degrees: list[float] = [float(d) for d in degrees]
        self.interpolation = interpolation
        self.expand = expand
        self.center = center
        self.fill = fill

    @staticmethod
    def get_params(degrees: Any) -> float:
        """Draw an angle, in degrees.

        degrees  the two limits

        >>> torch.vision.transforms.RandomRotation.get_params([90, 90])
        90.0
        """
        return _uniform(float(degrees[0]), float(degrees[1]))

    def forward(self, img: Any) -> Any:
        angle = self.get_params(self.degrees)
        return F.rotate(
            img, angle, self.interpolation, self.expand, self.center, self.fill
        )

    def __repr__(self) -> str:
        center = "" if self.center is None else f", center={self.center}"
        return (
            f"{type(self).__name__}(degrees={self.degrees}, "
            f"interpolation={_mode(self.interpolation)}, expand={self.expand}"
            f"{center}, fill={self.fill})"
        )
