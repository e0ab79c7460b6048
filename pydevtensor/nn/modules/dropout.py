"""Dropout layers."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn._functional.dropout import check_probability
from pydevtensor.nn.modules.module import Module

__all__ = ["Dropout"]


class Dropout(Module):
    """Zeroes elements with probability p in training, divides the others by 1 - p.

    After eval() it returns its input. Raises ValueError for a p outside 0 to 1.

    >>> nn.Dropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        check_probability(p)
        self.p = p
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
