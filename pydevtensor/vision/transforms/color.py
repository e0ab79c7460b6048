"""Transforms that change colors."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor.vision.transforms import functional as F
from pydevtensor.vision.transforms._transform import Transform
from pydevtensor.vision.transforms.geometry import _uniform

__all__ = ["ColorJitter", "Grayscale", "RandomGrayscale"]


class Grayscale(Transform):
    """The brightness of colors, once or three times.

    num_output_channels  1 or 3 equal ones; ValueError, when called, for another

    >>> torch.vision.transforms.Grayscale(3)(torch.ones(3, 2, 2)).shape
    torch.Size([3, 2, 2])
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, self.num_output_channels)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(num_output_channels={self.num_output_channels})"


class RandomGrayscale(Transform):
    """The brightness of colors, or the image unchanged.

    p  probability of the brightness

    >>> torch.vision.transforms.RandomGrayscale(p=1.0)(torch.ones(3, 2, 2)).shape
    torch.Size([3, 2, 2])
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        if torch.rand(1) >= self.p:
            return img
        return F.rgb_to_grayscale(img, F.get_dimensions(img)[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed at random, in random order.

    Draws randperm(4), then one number for each that changes. ValueError for negative
    numbers, and limits out of order or range.

    brightness  x for factors from max(0, 1 - x) to 1 + x, or the two limits
    contrast    the same
    saturation  the same
    hue         x, up to 0.5, for turns from -x to x of the circle of colors, or the two
                limits

    >>> torch.vision.transforms.ColorJitter(brightness=0.5)(torch.rand(3, 2, 2)).shape
    torch.Size([3, 2, 2])
    """

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0
    ) -> None:
        super().__init__()
        self.brightness: tuple[float, float] | None = self._limits(
            "brightness", brightness
        )
        self.contrast: tuple[float, float] | None = self._limits("contrast", contrast)
        self.saturation: tuple[float, float] | None = self._limits(
            "saturation", saturation
        )
        self.hue: tuple[float, float] | None = self._limits(
            "hue", hue, 0.0, (-0.5, 0.5)
        )

    def _limits(
        self, name: str, value: Any, middle: float = 1.0, within: Any = (0, None)
    ) -> tuple[float, float] | None:
        if isinstance(value, int | float):
            if value < 0:
                raise ValueError(f"ColorJitter: {name} is {value}, and negative")
            low = middle - value
            value = (max(low, 0.0) if middle else low, middle + value)
        low, high = (float(v) for v in value)
        least, most = within
        if low > high or low < least or (most is not None and high > most):
            raise ValueError(
                f"ColorJitter: {name} is {value}; the limits have to be in order and "
                f"{'not negative' if most is None else f'within {within}'}"
            )
        return None if low == high == middle else (low, high)

    @staticmethod
    def get_params(
        brightness: Any, contrast: Any, saturation: Any, hue: Any
    ) -> tuple[Any, ...]:
        """Draw the order, and the four factors or None.

        brightness, contrast  the two limits of the factor; None: no change
        saturation, hue       the two limits of the factor; None: no change

        >>> torch.vision.transforms.ColorJitter.get_params(None, None, None, None)[1:]
        (None, None, None, None)
        """
        order = torch.randperm(4)
        limits = (brightness, contrast, saturation, hue)
        return order, *(pair and _uniform(*pair) for pair in limits)

    def forward(self, img: Any) -> Any:
        order, *factors = self.get_params(
            self.brightness, self.contrast, self.saturation, self.hue
        )
        change = (
            F.adjust_brightness,
            F.adjust_contrast,
            F.adjust_saturation,
            F.adjust_hue,
        )
        for i in order.tolist():
            if factors[i] is not None:
                img = change[i](img, factors[i])
        return img

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(brightness={self.brightness}, "
            f"contrast={self.contrast}, saturation={self.saturation}, hue={self.hue})"
        )
