"""Layers that turn channels into pixels, and back."""

from __future__ import annotations

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._function_layer import FunctionLayer

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(FunctionLayer, calls=F.pixel_shuffle):
    """Channels as pixels: (..., C * r * r, H, W) to (..., C, H * r, W * r).

    >>> nn.PixelShuffle(2)(torch.arange(4.0).reshape(4, 1, 1))
    tensor([[[0., 1.],
             [2., 3.]]])
    """


class PixelUnshuffle(FunctionLayer, calls=F.pixel_unshuffle):
    """Pixels as channels: (..., C, H * r, W * r) to (..., C * r * r, H, W).

    >>> nn.PixelUnshuffle(2)(torch.arange(4.0).reshape(1, 2, 2)).flatten()
    tensor([0., 1., 2., 3.])
    """
