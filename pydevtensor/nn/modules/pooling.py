"""Pooling layers."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn._functional.pooling import numbers
from pydevtensor.nn.modules.module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    """Base of the max pooling layers."""

    _pool: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride: Any = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _MaxUnpoolNd(Module):
    """Base of the layers that undo max pooling."""

    _ndim = 1
    _pool: Any = None

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        given = (kernel_size, kernel_size if stride is None else stride, padding)
        names = ("kernel_size", "stride", "padding")
        for name, value in zip(names, given, strict=True):
            setattr(self, name, tuple(numbers(name, value, self._ndim)))

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """The maxima at their places, in zeros.

        input        maxima, as a max pooling layer gave them
        indices      their places, int64 of input's shape, which that layer gives with
                     return_indices=True; RuntimeError for others
        output_size  sizes of the result, where more than one would have given as many
                     maxima; ValueError for one that would not have
        """
        return self._pool(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}"
        )


class _AvgPoolNd(Module):
    """Base of the average pooling layers."""

    _pool: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride: Any = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}"
        )


class _LPPoolNd(Module):
    """Base of the power pooling layers."""

    _pool: Any = None

    def __init__(
        self,
        norm_type: float,
        kernel_size: Any,
        stride: Any = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        return self._pool(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, ceil_mode={self.ceil_mode}"
        )


class _AdaptiveMaxPoolNd(Module):
    """Base of the adaptive max pooling layers."""

    _pool: Any = None

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        return self._pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPoolNd(Module):
    """Base of the adaptive average pooling layers."""

    _pool: Any = None

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return self._pool(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _FractionalMaxPoolNd(Module):
    """Base of the fractional max pooling layers."""

    _ndim = 2
    _pool: Any = None

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name}: give either output_size or output_ratio")
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        if isinstance(output_ratio, (int, float)):
            output_ratio = (output_ratio,) * self._ndim
        self.output_ratio = output_ratio
        if output_ratio is not None and not all(0 < r < 1 for r in output_ratio):
            raise ValueError(
                f"{name}: output_ratio is {output_ratio}; give numbers between 0 and 1"
            )

    def forward(self, input: Any) -> Any:
        return self._pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of (..., length): see functional.max_pool1d.

    kernel_size     size of the window, a number or one for each dimension
    stride          step of the window (kernel_size)
    padding         elements added at both ends of each dimension
    dilation        distance between a window's elements
    return_indices  also give where the maxima are
    ceil_mode       let a last window reach over the end

    >>> nn.MaxPool1d(2)(torch.ones(1, 4)).shape
    torch.Size([1, 2])
    """

    _pool = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of (..., height, width): see functional.max_pool2d.

    kernel_size     size of the window, a number or one for each dimension
    stride          step of the window (kernel_size)
    padding         elements added at both ends of each dimension
    dilation        distance between a window's elements
    return_indices  also give where the maxima are
    ceil_mode       let a last window reach over the end

    >>> nn.MaxPool2d(2)(torch.ones(1, 4, 4)).shape
    torch.Size([1, 2, 2])
    """

    _pool = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of three dimensions: see functional.max_pool3d.

    kernel_size     size of the window, a number or one for each dimension
    stride          step of the window (kernel_size)
    padding         elements added at both ends of each dimension
    dilation        distance between a window's elements
    return_indices  also give where the maxima are
    ceil_mode       let a last window reach over the end

    >>> nn.MaxPool3d(2)(torch.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2])
    """

    _pool = staticmethod(F.max_pool3d)


class MaxUnpool1d(_MaxUnpoolNd):
    """Maxima put back to where MaxPool1d found them, in zeros.

    Takes the maxima, their indices, and maybe the output's size: see
    functional.max_unpool1d.

    kernel_size  size of the window, a number or one for each dimension
    stride       step of the window (kernel_size)
    padding      elements added at both ends of each dimension

    >>> nn.MaxUnpool1d(2)(torch.ones(1, 2), torch.zeros(1, 2).long()).shape
    torch.Size([1, 4])
    """

    _pool = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """Maxima put back to where MaxPool2d found them, in zeros.

    Takes the maxima, their indices, and maybe the output's size: see
    functional.max_unpool2d.

    kernel_size  size of the window, a number or one for each dimension
    stride       step of the window (kernel_size)
    padding      elements added at both ends of each dimension

    >>> nn.MaxUnpool2d(2)(torch.ones(1, 2, 2), torch.zeros(1, 2, 2).long()).shape
    torch.Size([1, 4, 4])
    """

    _ndim = 2
    _pool = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """Maxima put back to where MaxPool3d found them, in zeros.

    Takes the maxima, their indices, and maybe the output's size: see
    functional.max_unpool3d.

    kernel_size  size of the window, a number or one for each dimension
    stride       step of the window (kernel_size)
    padding      elements added at both ends of each dimension

    >>> nn.MaxUnpool3d(2)(torch.ones(1, 2, 2, 2), torch.zeros(1, 2, 2, 2).long()).shape
    torch.Size([1, 4, 4, 4])
    """

    _ndim = 3
    _pool = staticmethod(F.max_unpool3d)


class AvgPool1d(_AvgPoolNd):
    """The average of each window of (..., length): see functional.avg_pool1d.

    kernel_size        size of the window, a number or one for each dimension
    stride             step of the window (kernel_size)
    padding            elements added at both ends of each dimension
    ceil_mode          let a last window reach over the end
    count_include_pad  count the padding as elements of a mean

    >>> nn.AvgPool1d(2)(torch.ones(1, 4)).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        for name in ("kernel_size", "stride", "padding"):
            setattr(self, name, tuple(numbers(name, getattr(self, name), 1)))
        del self.divisor_override

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool2d(_AvgPoolNd):
    """The average of each window of (..., height, width): see functional.avg_pool2d.

    kernel_size        size of the window, a number or one for each dimension
    stride             step of the window (kernel_size)
    padding            elements added at both ends of each dimension
    ceil_mode          let a last window reach over the end
    count_include_pad  count the padding as elements of a mean
    divisor_override   divide the sums by this number

    >>> nn.AvgPool2d(2)(torch.ones(1, 4, 4)).shape
    torch.Size([1, 2, 2])
    """

    _pool = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolNd):
    """The average of each window of three dimensions: see functional.avg_pool3d.

    kernel_size        size of the window, a number or one for each dimension
    stride             step of the window (kernel_size)
    padding            elements added at both ends of each dimension
    ceil_mode          let a last window reach over the end
    count_include_pad  count the padding as elements of a mean
    divisor_override   divide the sums by this number

    >>> nn.AvgPool3d(2)(torch.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2])
    """

    _pool = staticmethod(F.avg_pool3d)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The maximum of windows of (..., height, width) at random distances.

    kernel_size     size of the window, a number or one for each dimension
    output_size     the number of windows, an int or one for each dimension
    output_ratio    in its place, windows for each element, a number from 0 to 1 for
                    each dimension
    return_indices  also give where the maxima are

    >>> nn.FractionalMaxPool2d(2, output_size=3)(torch.ones(1, 5, 5)).shape
    torch.Size([1, 3, 3])
    """

    _pool = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The maximum of windows of (..., depth, height, width) at random distances.

    kernel_size     size of the window, a number or one for each dimension
    output_size     the number of windows, an int or one for each dimension
    output_ratio    in its place, windows for each element, a number from 0 to 1 for
                    each dimension
    return_indices  also give where the maxima are

    >>> nn.FractionalMaxPool3d(2, output_size=3)(torch.ones(1, 5, 5, 5)).shape
    torch.Size([1, 3, 3, 3])
    """

    _ndim = 3
    _pool = staticmethod(F.fractional_max_pool3d)


class LPPool1d(_LPPoolNd):
    """The p-th root of the sum of x^p over each window of (..., length).

    norm_type    p; inf: the largest |x|, -inf: the least; ZeroDivisionError for 0
    kernel_size  size of the window, a number or one for each dimension
    stride       step of the window (kernel_size)
    ceil_mode    let a last window reach over the end

    >>> nn.LPPool1d(2, 2)(torch.ones(1, 4)).shape
    torch.Size([1, 2])
    """

    _pool = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """The p-th root of the sum of x^p over each window of (..., height, width).

    norm_type    p; inf: the largest |x|, -inf: the least; ZeroDivisionError for 0
    kernel_size  size of the window, a number or one for each dimension
    stride       step of the window (kernel_size)
    ceil_mode    let a last window reach over the end

    >>> nn.LPPool2d(2, 2)(torch.ones(1, 4, 4)).shape
    torch.Size([1, 2, 2])
    """

    _pool = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """The p-th root of the sum of x^p over each window of (..., depth, height, width).

    norm_type    p; inf: the largest |x|, -inf: the least; ZeroDivisionError for 0
    kernel_size  size of the window, a number or one for each dimension
    stride       step of the window (kernel_size)
    ceil_mode    let a last window reach over the end

    >>> nn.LPPool3d(2, 2)(torch.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2])
    """

    _pool = staticmethod(F.lp_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maximum of each of the windows that divide (..., length) evenly.

    output_size     how many windows, the result's size, an int
    return_indices  also give where the maxima are

    >>> nn.AdaptiveMaxPool1d(2)(torch.ones(1, 5)).shape
    torch.Size([1, 2])
    """

    _pool = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maximum of each of the windows that divide (..., height, width) evenly.

    output_size     how many windows, an int, or one for each dimension, where None
                    keeps the input's size
    return_indices  also give where the maxima are

    >>> nn.AdaptiveMaxPool2d(2)(torch.ones(1, 5, 5)).shape
    torch.Size([1, 2, 2])
    """

    _pool = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maximum of each of the windows that divide three dimensions evenly.

    output_size     how many windows, an int, or one for each dimension, where None
                    keeps the input's size
    return_indices  also give where the maxima are

    >>> nn.AdaptiveMaxPool3d(2)(torch.ones(1, 5, 5, 5)).shape
    torch.Size([1, 2, 2, 2])
    """

    _pool = staticmethod(F.adaptive_max_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The average of each of the windows that divide (..., length) evenly.

    output_size  how many windows, the result's size, an int

    >>> nn.AdaptiveAvgPool1d(2)(torch.ones(1, 5)).shape
    torch.Size([1, 2])
    """

    _pool = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The average of each of the windows that divide (..., height, width) evenly.

    output_size  how many windows, an int, or one for each dimension, where None keeps
                 the input's size

    >>> nn.AdaptiveAvgPool2d(2)(torch.ones(1, 5, 5)).shape
    torch.Size([1, 2, 2])
    """

    _pool = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The average of each of the windows that divide three dimensions evenly.

    output_size  how many windows, an int, or one for each dimension, where None keeps
                 the input's size

    >>> nn.AdaptiveAvgPool3d(2)(torch.ones(1, 5, 5, 5)).shape
    torch.Size([1, 2, 2, 2])
    """

    _pool = staticmethod(F.adaptive_avg_pool3d)
