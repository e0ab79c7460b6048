"""A layer that mixes groups of channels."""

from __future__ import annotations

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._function_layer import FunctionLayer

__all__ = ["ChannelShuffle"]


class ChannelShuffle(FunctionLayer, calls=F.channel_shuffle):
    """The channels of (N, C, ...), one of each of the groups in turn.

    >>> nn.ChannelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """
