"""Layers that change the size of images."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._function_layer import FunctionLayer

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(
    FunctionLayer,
    calls=F.interpolate,
    takes="size, scale_factor, mode, align_corners, recompute_scale_factor",
):
    """functional.interpolate to a size, or by a scale_factor.

    Takes (N, C, and 1 to 3 dimensions). ValueError unless one of size and scale_factor
    is given, NotImplementedError for a mode that does not go with the number of
    dimensions.

    >>> nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[1., 1., 3., 3.]]])
    """

    def _set_options(self, **options: Any) -> None:
        self.name: str = type(self).__name__
        factor = options["scale_factor"]
        if isinstance(factor, tuple):
            factor = tuple(map(float, factor))
        else:
            factor = float(factor) if factor else None
        super()._set_options(**{**options, "scale_factor": factor})

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample with mode 'nearest'.

    size          height and width of the result, an int or two
    scale_factor  factor of the sizes, a number or two; give one of the two

    >>> nn.UpsamplingNearest2d(scale_factor=2)(torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """Upsample with mode 'bilinear' and align_corners=True.

    size          height and width of the result, an int or two
    scale_factor  factor of the sizes, a number or two; give one of the two

    >>> nn.UpsamplingBilinear2d(size=(1, 3))(torch.tensor([[[[1.0, 3.0]]]]))
    tensor([[[[1., 2., 3.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
