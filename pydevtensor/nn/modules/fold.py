"""Windows of a plane as columns, and back."""

from __future__ import annotations

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._function_layer import FunctionLayer

__all__ = ["Fold", "Unfold"]


class Unfold(FunctionLayer, calls=F.unfold):
    """The elements of each window as a column: nn.functional.unfold.

    From (N, C, H, W) or (C, H, W). See also Fold, which goes back.

    >>> nn.Unfold((2, 2))(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 12, 9])
    """


class Fold(Unfold, calls=F.fold):
    """Sums of windows in a plane: nn.functional.fold.

    From (N, C * kernel elements, windows) or without N; elements where windows overlap
    are added. RuntimeError where the numbers do not fit. See also Unfold, which it
    reverses.

    >>> nn.Fold((4, 4), (2, 2))(torch.ones(1, 12, 9)).shape
    torch.Size([1, 3, 4, 4])
    """
