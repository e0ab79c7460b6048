"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn import init
from pydevtensor.nn._functional.conv import padded
from pydevtensor.nn.modules._layer import Layer, Parametrized, explain
from pydevtensor.nn.modules.lazy import Lazy

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(
    Layer,
    takes="in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, "
    "padding: Any = 0, dilation: Any = 1, groups: int = 1, bias, padding_mode: str "
    "= 'zeros', device, dtype",
):
    """Base of convolutions.

    in_channels   channels of the input
    out_channels  channels of the result
    kernel_size   size of the kernel, an int or one for each dimension
    stride        step of the kernel
    padding       elements added at both ends of a dimension, an int or one for each;
                  'same' keeps the size (for stride 1), 'valid' adds none
    dilation      distance between the kernel's elements
    groups        parts of the channels with kernels of their own, which divides both
    padding_mode  the values added: 'zeros', 'reflect', 'replicate' or 'circular'
    """

    _ints = ("in_channels", "out_channels", "groups")
    _ndim = 0  # that the kernel slides along
    _function = ""  # its name in nn.functional, which fx replaces while it traces
    transposed: bool = False

    def _make(self, *, bias: Any, device: Any, dtype: Any, **options: Any) -> None:
        for name in ("kernel_size", "stride", "padding", "dilation"):
            if not isinstance(options[name], str):
                options[name] = self._each(options[name])
        Parametrized._make(self, **options)
        self.transposed = type(self).transposed
        self.output_padding: Any = self._each(0)
        self._check()
        self._make_parameters(bias, device, dtype)

    def __getstate__(self) -> dict[str, Any]:
        """With what PyTorch's layers keep for paddings other than zeros."""
        around: list[int] = []
        if not isinstance(self.padding, str):
            around = [n for n in reversed(self.padding) for _ in range(2)]
        return {**self.__dict__, "_reversed_padding_repeated_twice": around}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.pop("_reversed_padding_repeated_twice", None)

    def _each(self, value: Any) -> Any:
        """A number for each dimension."""
        try:
            return tuple(value)
        except TypeError:
            return (value,) * self._ndim

    def _check(self) -> None:
        name, groups = type(self).__name__, self.groups
        if groups <= 0:
            raise ValueError(f"{name}: groups is {groups}; it must be positive")
        for kind in ("in_channels", "out_channels"):
            channels = getattr(self, kind)
            if channels % groups:
                raise ValueError(
                    f"{name}: {kind} must be divisible by groups, and {channels} is "
                    f"not by {groups}"
                )
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ValueError(
                    f"{name}: padding is {self.padding!r}; give numbers, 'same' or "
                    "'valid'"
                )
            if self.padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError(
                    f"{name}: padding='same' is not supported for strided "
                    f"convolutions, and stride is {self.stride}"
                )
        if self.padding_mode not in _MODES:
            raise ValueError(
                f"{name}: padding_mode is {self.padding_mode!r}; give one of {_MODES}"
            )
        if self.transposed and self.padding_mode != "zeros":
            raise ValueError(
                f'{name}: only "zeros" padding mode is supported, not '
                f"{self.padding_mode!r}"
            )

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return first, second // self.groups, *self.kernel_size

    def _make_parameters(self, bias: bool, device: Any, dtype: Any) -> None:
        shape = (self.out_channels,) if bias else None
        self._add({"weight": self._weight_shape(), "bias": shape}, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize weight and bias again, uniform within 1 / sqrt(fan in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _pads(self) -> list[tuple[int, int]]:
        """The padding before and after each dimension."""
        if self.padding == "valid":
            return [(0, 0)] * self._ndim
        if self.padding == "same":
            covered = [
                d * (k - 1)
                for d, k in zip(self.dilation, self.kernel_size, strict=False)
            ]
            return [(c // 2, c - c // 2) for c in covered]
        return [(int(p), int(p)) for p in self.padding]

    def _run(self, input: Any) -> Any:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = padded(input, self._pads(), self.padding_mode)
            padding = 0
        return getattr(F, self._function)(
            input,
            self.weight,
            self.bias,
            self.stride,
            padding,
            self.dilation,
            self.groups,
        )

    def forward(self, input: Any) -> Any:
        try:
            return self._run(input)
        except Exception as error:
            explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}"
        ]
        zeros, ones = (0,) * self._ndim, (1,) * self._ndim
        for name, usual in (
            ("padding", zeros),
            ("dilation", ones),
            ("output_padding", zeros),
            ("groups", 1),
        ):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class Conv1d(_ConvNd):
    """Convolves (N, C, L) or (C, L) with out_channels kernels.

    weight is (out_channels, in_channels / groups, *kernel_size); weight and bias start
    uniform between -k and k, k = 1 / sqrt(in_channels / groups * kernel elements).
    Raises ValueError for channels that groups does not divide, RuntimeError for an
    input of another shape, dtype or device.

    >>> nn.Conv1d(2, 4, 3, padding='same')(torch.ones(5, 2, 8)).shape
    torch.Size([5, 4, 8])
    """

    _ndim = 1
    _function = "conv1d"


class Conv2d(_ConvNd):
    """Convolves (N, C, H, W) or (C, H, W), as Conv1d.

    >>> net = nn.Conv2d(3, 6, kernel_size=3, stride=2, padding=1)
    >>> net(torch.ones(2, 3, 8, 8)).shape
    torch.Size([2, 6, 4, 4])
    >>> nn.Conv2d(3, 6, kernel_size=(3, 5), bias=False)
    Conv2d(3, 6, kernel_size=(3, 5), stride=(1, 1), bias=False)
    """

    _ndim = 2
    _function = "conv2d"


class Conv3d(_ConvNd):
    """Convolves (N, C, D, H, W) or (C, D, H, W), as Conv1d.

    >>> nn.Conv3d(2, 4, 3)(torch.ones(2, 5, 5, 5)).shape
    torch.Size([4, 3, 3, 3])
    """

    _ndim = 3
    _function = "conv3d"


class _ConvTransposeNd(
    _ConvNd,
    takes="in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, "
    "padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias, dilation: Any "
    "= 1, padding_mode: str = 'zeros', device, dtype",
):
    """Base of transposed convolutions.

    stride          step of the kernel, by which the result grows
    padding         elements that the result lacks at both ends of a dimension
    output_padding  elements added at one end of the result, fewer than stride or
                    dilation
    padding_mode    'zeros'; ValueError for another
    """

    transposed = True

    def _make(self, *, output_padding: Any, **options: Any) -> None:
        super()._make(**options)
        self.output_padding: Any = self._each(output_padding)

    def _output_padding(self, input: Any, wanted: Any) -> Any:
        """The output_padding that gives the result the wanted sizes."""
        if wanted is None:
            return self.output_padding
        ndim = self._ndim
        if len(wanted) not in (ndim, input.ndim):
            raise ValueError(
                f"{self}: output_size has {len(wanted)} numbers; for an input of "
                f"{input.ndim} dimensions give {ndim} or {input.ndim}"
            )
        wanted = [*wanted][-ndim:]
        least = [
            (size - 1) * s - 2 * p + d * (k - 1) + 1
            for size, s, p, d, k in zip(
                input.shape[-ndim:],
                self.stride,
                self.padding,
                self.dilation,
                self.kernel_size,
                strict=False,
            )
        ]
        most = [size + s - 1 for size, s in zip(least, self.stride, strict=False)]
        if any(not a <= b <= c for a, b, c in zip(least, wanted, most, strict=False)):
            raise ValueError(
                f"{self}: output_size is {wanted}; for an input of shape "
                f"{[*input.shape]} give sizes from {least} to {most}"
            )
        return [b - a for a, b in zip(least, wanted, strict=False)]

    def forward(self, input: Any, output_size: Any = None) -> Any:
        """The transposed convolution of input.

        input        (N, in_channels, ...) or (in_channels, ...)
        output_size  sizes of the result, in place of those that output_padding gives;
                     ValueError for those that stride does not allow
        """
        try:
            return getattr(F, self._function)(
                input,
                self.weight,
                self.bias,
                self.stride,
                self.padding,
                self._output_padding(input, output_size),
                self.groups,
                self.dilation,
            )
        except Exception as error:
            if output_size is None:
                explain(self, error, input=input)
            raise


class ConvTranspose1d(_ConvTransposeNd):
    """The transposed convolution of (N, C, L) or (C, L), with out_channels kernels.

    Each size becomes (size - 1) * stride - 2 * padding + dilation * (kernel - 1) +
    output_padding + 1; a call may give output_size instead. weight is (in_channels,
    out_channels / groups, *kernel_size). Errors as of Conv1d.

    >>> nn.ConvTranspose1d(2, 4, 3, stride=2)(torch.ones(5, 2, 8)).shape
    torch.Size([5, 4, 17])
    """

    _ndim = 1
    _function = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """The transposed convolution of (N, C, H, W) or (C, H, W), as ConvTranspose1d.

    >>> up = nn.ConvTranspose2d(3, 2, kernel_size=4, padding=1, stride=2)
    >>> up(torch.ones(1, 3, 8, 8)).shape
    torch.Size([1, 2, 16, 16])
    """

    _ndim = 2
    _function = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """The transposed convolution of (N, C, D, H, W) or (C, D, H, W).

    >>> nn.ConvTranspose3d(2, 4, 2, stride=2)(torch.ones(2, 3, 3, 3)).shape
    torch.Size([4, 6, 6, 6])
    """

    _ndim = 3
    _function = "conv_transpose3d"


class _LazyConv(Lazy, _ConvNd):
    """Takes in_channels from the first input."""

    def __init__(self, out_channels: int, kernel_size: Any, *args: Any, **kwargs: Any):
        super().__init__(0, out_channels, kernel_size, *args, **kwargs)

    def _make_parameters(self, bias: bool, device: Any, dtype: Any) -> None:
        self._make_lazy(bias, device, dtype)

    def _shapes_for(self, input: Any) -> dict[str, Any]:
        ndim = self._ndim
        if input.ndim not in (ndim + 1, ndim + 2):
            raise RuntimeError(
                f"{self}: the input has shape {[*input.shape]}; it has to have "
                f"{ndim + 1} dimensions, or {ndim + 2} with a batch"
            )
        self.in_channels = input.shape[-ndim - 1]
        self._check()
        return {"weight": self._weight_shape(), "bias": (self.out_channels,)}

    def _load_one(self, name: str, value: Any, given: Any, assign: bool) -> None:
        super()._load_one(name, value, given, assign)
        if name == "weight":
            self.in_channels: Any = (
                given.shape[0] if self.transposed else given.shape[1] * self.groups
            )


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d that takes in_channels from its first input, then becomes a Conv1d.

    >>> net = nn.LazyConv1d(4, 3)
    >>> net(torch.ones(1, 2, 8)).shape
    torch.Size([1, 4, 6])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that takes in_channels from its first input, then becomes a Conv2d.

    It takes the other arguments of Conv2d too.

    >>> net = nn.LazyConv2d(4, kernel_size=3)
    >>> net(torch.ones(1, 2, 8, 8)).shape
    torch.Size([1, 4, 6, 6])
    >>> net
    Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1))
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that takes in_channels from its first input, then becomes a Conv3d.

    >>> nn.LazyConv3d(4, 3)(torch.ones(1, 2, 8, 8, 8)).shape
    torch.Size([1, 4, 6, 6, 6])
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """A ConvTranspose1d that takes in_channels from its first input.

    >>> nn.LazyConvTranspose1d(4, 3)(torch.ones(1, 2, 8)).shape
    torch.Size([1, 4, 10])
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """A ConvTranspose2d that takes in_channels from its first input.

    >>> nn.LazyConvTranspose2d(4, 3)(torch.ones(1, 2, 8, 8)).shape
    torch.Size([1, 4, 10, 10])
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """A ConvTranspose3d that takes in_channels from its first input.

    >>> nn.LazyConvTranspose3d(4, 3)(torch.ones(1, 2, 8, 8, 8)).shape
    torch.Size([1, 4, 10, 10, 10])
    """

    cls_to_become = ConvTranspose3d
