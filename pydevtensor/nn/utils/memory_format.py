"""The order of a convolution's weight in memory."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn.modules import conv
from pydevtensor.nn.modules.module import Module, need_module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(
    name: str, module: Module, kinds: tuple[type[Any], ...], memory_format: Any
) -> Module:
    need_module(name, module)
    for each in module.modules():
        if isinstance(each, kinds):
            weight: Any = each.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Store the weights of the 2D convolutions in a module in that order.

    Transposed convolutions too. Returns the module.

    module         the module, or a convolution itself
    memory_format  the order, such as torch.channels_last

    >>> net = nn.Sequential(nn.Conv2d(2, 2, 3))
    >>> net = nn.utils.convert_conv2d_weight_memory_format(net, torch.channels_last)
    >>> net[0].weight.stride()
    (18, 1, 6, 2)
    """
    return _convert(
        "convert_conv2d_weight_memory_format",
        module,
        (conv.Conv2d, conv.ConvTranspose2d),
        memory_format,
    )


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Store the weights of the 3D convolutions in a module in that order.

    Transposed convolutions too. Returns the module.

    module         the module, or a convolution itself
    memory_format  the order, such as torch.channels_last_3d

    >>> net = nn.Conv3d(2, 1, 2)
    >>> net = nn.utils.convert_conv3d_weight_memory_format(net, torch.channels_last_3d)
    >>> net.weight.stride()
    (16, 1, 8, 4, 2)
    """
    return _convert(
        "convert_conv3d_weight_memory_format",
        module,
        (conv.Conv3d, conv.ConvTranspose3d),
        memory_format,
    )
