"""Windows of a plane as columns, and back."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules.module import Module

__all__ = ["Fold", "Unfold"]


class Unfold(Module):
    """The elements of each window as a column: nn.functional.unfold.

    From (N, C, H, W) or (C, H, W). See also Fold, which goes back.

    kernel_size  size of the window, a number or two
    dilation     distance between a window's elements, a number or two
    padding      zeros added at both ends of each dimension, a number or two
    stride       step of the window, a number or two

    >>> nn.Unfold((2, 2))(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 12, 9])
    """

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        return F.unfold(
            input, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Fold(Unfold):
    """Sums of windows in a plane: nn.functional.fold.

    From (N, C * kernel elements, windows) or without N; elements where windows overlap
    are added. RuntimeError where the numbers do not fit. See also Unfold, which it
    reverses.

    output_size  height and width of the result, a number or two
    kernel_size  size of the window, a number or two
    dilation     distance between a window's elements, a number or two
    padding      zeros that Unfold added at both ends of each dimension
    stride       step of the window, a number or two

    >>> nn.Fold((4, 4), (2, 2))(torch.ones(1, 12, 9)).shape
    torch.Size([1, 3, 4, 4])
    """

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return F.fold(
            input,
            self.output_size,
            self.kernel_size,
            self.dilation,
            self.padding,
            self.stride,
        )

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, " + super().extra_repr()
