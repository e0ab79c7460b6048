"""The base of transforms that are modules."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn.modules.module import Module


class Transform(Module):
    """A module whose forward() takes an image."""

    def forward(self, img: Any) -> Any:
        """The image after the transform, or a tuple of images.

        img  an image of Pillow, or a tensor (..., channels, height, width); TypeError
             for others
        """
        return super().forward(img)
