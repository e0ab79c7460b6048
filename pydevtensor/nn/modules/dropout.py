"""Dropout layers."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn._functional.dropout import check_probability
from pydevtensor.nn.modules._function_layer import FunctionLayer

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _DropoutNd(FunctionLayer):
    def _set_options(self, **options: Any) -> None:
        check_probability(options["p"])
        super()._set_options(**options)


class Dropout(_DropoutNd, calls=F.dropout):
    """Zeroes elements with probability p in training, divides the others by 1 - p.

    After eval() it returns its input. Raises ValueError for a p outside 0 to 1. See
    also Dropout2d, for whole channels.

    >>> nn.Dropout(0.5).eval()(torch.ones(2))
    tensor([1., 1.])
    """


class Dropout1d(_DropoutNd, calls=F.dropout1d):
    """Zeroes channels of (N, C, L) or (C, L) with probability p, in training.

    >>> nn.Dropout1d(0.5).eval()(torch.ones(1, 2))
    tensor([[1., 1.]])
    """


class Dropout2d(_DropoutNd, calls=F.dropout2d):
    """Zeroes channels of (N, C, H, W) with probability p, in training.

    >>> nn.Dropout2d(0.5).eval()(torch.ones(1, 2, 1, 1)).flatten(1)
    tensor([[1., 1.]])
    """


class Dropout3d(_DropoutNd, calls=F.dropout3d):
    """Zeroes channels of (N, C, D, H, W) with probability p, in training.

    >>> nn.Dropout3d(0.5).eval()(torch.ones(1, 2, 1, 1, 1)).flatten(1)
    tensor([[1., 1.]])
    """


class AlphaDropout(_DropoutNd, calls=F.alpha_dropout):
    """Sets elements to selu's negative limit with probability p, in training.

    The result is scaled and shifted to keep mean 0 and variance 1.

    >>> nn.AlphaDropout(0.5).eval()(torch.ones(1, 2))
    tensor([[1., 1.]])
    """


class FeatureAlphaDropout(_DropoutNd, calls=F.feature_alpha_dropout):
    """AlphaDropout of whole channels of (N, C, ...).

    >>> nn.FeatureAlphaDropout(0.5).eval()(torch.ones(1, 2))
    tensor([[1., 1.]])
    """
