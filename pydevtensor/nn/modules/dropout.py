"""Dropout layers."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn._functional.dropout import check_probability
from pydevtensor.nn.modules.module import Module

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        check_probability(p)
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes elements with probability p in training, divides the others by 1 - p.

    After eval() it returns its input. Raises ValueError for a p outside 0 to 1. See
    also Dropout2d, for whole channels.

    p        probability of an element to be zeroed
    inplace  write the result into the input

    >>> nn.Dropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes channels of (N, C, L) or (C, L) with probability p, in training.

    p        probability of a channel to be zeroed, 0 to 1, else ValueError
    inplace  write the result into the input

    >>> nn.Dropout1d(0.5).eval()(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    def forward(self, input: Any) -> Any:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes channels of (N, C, H, W) with probability p, in training.

    p        probability of a channel to be zeroed, 0 to 1, else ValueError
    inplace  write the result into the input

    >>> nn.Dropout2d(0.5).eval()(torch.ones(1, 2, 1, 1)).flatten(1)
    tensor([[1., 1.]])
    """

    def forward(self, input: Any) -> Any:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes channels of (N, C, D, H, W) with probability p, in training.

    p        probability of a channel to be zeroed, 0 to 1, else ValueError
    inplace  write the result into the input

    >>> nn.Dropout3d(0.5).eval()(torch.ones(1, 2, 1, 1, 1)).flatten(1)
    tensor([[1., 1.]])
    """

    def forward(self, input: Any) -> Any:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Sets elements to selu's negative limit with probability p, in training.

    The result is scaled and shifted to keep mean 0 and variance 1.

    p        probability of an element to be changed, 0 to 1, else ValueError
    inplace  write the result into the input

    >>> nn.AlphaDropout(0.5).eval()(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels of (N, C, ...).

    p        probability of a channel to be changed, 0 to 1, else ValueError
    inplace  write the result into the input

    >>> nn.FeatureAlphaDropout(0.5).eval()(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
