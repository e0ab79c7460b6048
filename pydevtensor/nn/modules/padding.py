"""Layers that put elements around their input."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._function_layer import FunctionLayer

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(FunctionLayer, takes="padding: Any"):
    """Base of the padding layers.

    padding  elements at both ends of each dimension, an int, or two ints for each, the
             last one first
    """

    _ndim = 1
    _mode = "constant"
    value: Any = None

    def _set_options(self, **options: Any) -> None:
        padding = options["padding"]
        if isinstance(padding, int):
            padding = (padding,) * (2 * self._ndim)
        super()._set_options(**{**options, "padding": tuple(padding)})

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self._mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd, takes="padding: Any, value: float"):
    """Base of those that pad with a value.

    padding  elements at both ends of each dimension, an int, or two ints for each, the
             last one first; negative ones take elements away
    value    the value to pad with
    """

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_PadNd, takes="padding: Any"):
    """Base of those that pad with zeros.

    padding  elements at both ends of each dimension, an int, or two ints for each, the
             last one first; negative ones take elements away
    """

    value: Any = 0.0

    extra_repr = _PadNd.extra_repr  # before those of ConstantPad1d and its kin


class _ReflectionPadNd(_PadNd):
    """Base of those that mirror.

    padding  elements at both ends of each dimension, an int, or two ints for each, the
             last one first, fewer than there are
    """

    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class _CircularPadNd(_PadNd):
    """Base of those that continue from the other end.

    padding  elements at both ends of each dimension, an int, or two ints for each, the
             last one first, not more than there are
    """

    _mode = "circular"


class ConstantPad1d(_ConstantPadNd, calls=F.pad):
    """Puts value before and after the last dimension.

    >>> nn.ConstantPad1d(1, 9.0)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[9., 1., 2., 3., 9.]])
    """


class ConstantPad2d(_ConstantPadNd, calls=F.pad):
    """Puts value before and after the last two dimensions.

    >>> nn.ConstantPad2d(1, 9.0)(torch.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    _ndim = 2


class ConstantPad3d(_ConstantPadNd, calls=F.pad):
    """Puts value before and after the last three dimensions.

    >>> nn.ConstantPad3d(1, 9.0)(torch.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    _ndim = 3


class ZeroPad1d(_ZeroPadNd, ConstantPad1d, calls=F.pad):
    """Puts zeros before and after the last dimension.

    >>> nn.ZeroPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[0., 1., 2., 3., 0.]])
    """


class ZeroPad2d(_ZeroPadNd, ConstantPad2d, calls=F.pad):
    """Puts zeros before and after the last two dimensions.

    >>> nn.ZeroPad2d(1)(torch.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    _ndim = 2


class ZeroPad3d(_ZeroPadNd, ConstantPad3d, calls=F.pad):
    """Puts zeros before and after the last three dimensions.

    >>> nn.ZeroPad3d(1)(torch.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    _ndim = 3


class ReflectionPad1d(_ReflectionPadNd, calls=F.pad):
    """Mirrors the last dimension at the first and the last element.

    >>> nn.ReflectionPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 1., 2., 3., 2.]])
    """


class ReflectionPad2d(_ReflectionPadNd, calls=F.pad):
    """Mirrors the last two dimensions at the first and the last element.

    >>> nn.ReflectionPad2d(1)(torch.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    _ndim = 2


class ReflectionPad3d(_ReflectionPadNd, calls=F.pad):
    """Mirrors the last three dimensions at the first and the last element.

    >>> nn.ReflectionPad3d(1)(torch.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    _ndim = 3


class ReplicationPad1d(_ReplicationPadNd, calls=F.pad):
    """Repeats the first and the last element of the last dimension.

    >>> nn.ReplicationPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 2., 3., 3.]])
    """


class ReplicationPad2d(_ReplicationPadNd, calls=F.pad):
    """Repeats the first and the last element of the last two dimensions.

    >>> nn.ReplicationPad2d(1)(torch.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    _ndim = 2


class ReplicationPad3d(_ReplicationPadNd, calls=F.pad):
    """Repeats the first and the last element of the last three dimensions.

    >>> nn.ReplicationPad3d(1)(torch.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    _ndim = 3


class CircularPad1d(_CircularPadNd, calls=F.pad):
    """Continues the last dimension from the other end.

    >>> nn.CircularPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]])
    """


class CircularPad2d(_CircularPadNd, calls=F.pad):
    """Continues the last two dimensions from the other end.

    >>> nn.CircularPad2d(1)(torch.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    _ndim = 2


class CircularPad3d(_CircularPadNd, calls=F.pad):
    """Continues the last three dimensions from the other end.

    >>> nn.CircularPad3d(1)(torch.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    _ndim = 3
