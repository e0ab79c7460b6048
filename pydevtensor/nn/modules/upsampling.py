"""Layers that change the size of images."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules.module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """functional.interpolate to a size, or by a scale_factor.

    Takes (N, C, and 1 to 3 dimensions). ValueError unless one of size and scale_factor
    is given, NotImplementedError for a mode that does not go with the number of
    dimensions.

    size                    sizes of the result, an int or one for each dimension
    scale_factor            factor of the sizes, a number or one for each
    mode                    'nearest', 'linear', 'bilinear', 'bicubic', 'trilinear' or
                            others of nn.functional.interpolate()
    align_corners           the first and the last elements stay where they are, else
                            the borders; ValueError for 'nearest' and 'area' unless it
                            is left out
    recompute_scale_factor  let the ratio of the sizes, which are rounded down, count in
                            place of scale_factor

    >>> nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[1., 1., 3., 3.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name: str = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Any) -> Any:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

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
