"""Pooling layers."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn._functional.pooling import numbers
from pydevtensor.nn.modules._function_layer import FunctionLayer

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


class _Windows(FunctionLayer):
    """Base of pooling over windows, which do not overlap without a stride."""

    _ndim = 0  # of those that keep a number for each dimension
    _shown = ("kernel_size", "stride", "padding")

    def _set_options(self, **options: Any) -> None:
        if options["stride"] is None:
            options["stride"] = options["kernel_size"]
        if self._ndim:
            for name in ("kernel_size", "stride", "padding"):
                options[name] = tuple(numbers(name, options[name], self._ndim))
        super()._set_options(**options)


class _MaxPoolNd(
    _Windows, takes="kernel_size, stride, padding, dilation, return_indices, ceil_mode"
):
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")


class _MaxUnpoolNd(
    _Windows,
    takes="kernel_size, stride, padding",
    inputs="input, indices, output_size=None",
):
    _ndim = 1


class _AvgPoolNd(_Windows):
    pass


class _LPPoolNd(FunctionLayer):
    pass


class _AdaptiveMaxPoolNd(FunctionLayer):
    _shown = ("output_size",)


class _AdaptiveAvgPoolNd(FunctionLayer):
    pass


class _FractionalMaxPoolNd(
    FunctionLayer,
    takes="kernel_size, output_size, output_ratio, return_indices, _random_samples",
):
    _ndim = 2
    _shown = ()

    def _set_options(self, **options: Any) -> None:
        name, ratio = type(self).__name__, options["output_ratio"]
        if (options["output_size"] is None) == (ratio is None):
            raise ValueError(f"{name}: give either output_size or output_ratio")
        if isinstance(ratio, (int, float)):
            ratio = (ratio,) * self._ndim
        if ratio is not None and not all(0 < r < 1 for r in ratio):
            raise ValueError(
                f"{name}: output_ratio is {ratio}; give numbers between 0 and 1"
            )
        super()._set_options(**{**options, "output_ratio": ratio})


class MaxPool1d(_MaxPoolNd, calls=F.max_pool1d):
    """The maximum of each window of (..., length): see functional.max_pool1d.

    >>> nn.MaxPool1d(2)(torch.ones(1, 4)).shape
    torch.Size([1, 2])
    """


class MaxPool2d(_MaxPoolNd, calls=F.max_pool2d):
    """The maximum of each window of (..., height, width): see functional.max_pool2d.

    >>> nn.MaxPool2d(2)(torch.ones(1, 4, 4)).shape
    torch.Size([1, 2, 2])
    """


class MaxPool3d(_MaxPoolNd, calls=F.max_pool3d):
    """The maximum of each window of three dimensions: see functional.max_pool3d.

    >>> nn.MaxPool3d(2)(torch.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2])
    """


class MaxUnpool1d(_MaxUnpoolNd, calls=F.max_unpool1d):
    """Maxima put back to where MaxPool1d found them, in zeros.

    Takes the maxima, their indices, and maybe the output's size: see
    functional.max_unpool1d.

    >>> nn.MaxUnpool1d(2)(torch.ones(1, 2), torch.zeros(1, 2).long()).shape
    torch.Size([1, 4])
    """


class MaxUnpool2d(_MaxUnpoolNd, calls=F.max_unpool2d):
    """Maxima put back to where MaxPool2d found them, in zeros.

    Takes the maxima, their indices, and maybe the output's size: see
    functional.max_unpool2d.

    >>> nn.MaxUnpool2d(2)(torch.ones(1, 2, 2), torch.zeros(1, 2, 2).long()).shape
    torch.Size([1, 4, 4])
    """

    _ndim = 2


class MaxUnpool3d(_MaxUnpoolNd, calls=F.max_unpool3d):
    """Maxima put back to where MaxPool3d found them, in zeros.

    Takes the maxima, their indices, and maybe the output's size: see
    functional.max_unpool3d.

    >>> nn.MaxUnpool3d(2)(torch.ones(1, 2, 2, 2), torch.zeros(1, 2, 2, 2).long()).shape
    torch.Size([1, 4, 4, 4])
    """

    _ndim = 3


class AvgPool1d(_AvgPoolNd, calls=F.avg_pool1d):
    """The average of each window of (..., length): see functional.avg_pool1d.

    >>> nn.AvgPool1d(2)(torch.ones(1, 4)).shape
    torch.Size([1, 2])
    """

    _ndim = 1


class AvgPool2d(_AvgPoolNd, calls=F.avg_pool2d):
    """The average of each window of (..., height, width): see functional.avg_pool2d.

    >>> nn.AvgPool2d(2)(torch.ones(1, 4, 4)).shape
    torch.Size([1, 2, 2])
    """


class AvgPool3d(_AvgPoolNd, calls=F.avg_pool3d):
    """The average of each window of three dimensions: see functional.avg_pool3d.

    >>> nn.AvgPool3d(2)(torch.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2])
    """


class FractionalMaxPool2d(_FractionalMaxPoolNd, calls=F.fractional_max_pool2d):
    """The maximum of windows of (..., height, width) at random distances.

    >>> nn.FractionalMaxPool2d(2, output_size=3)(torch.ones(1, 5, 5)).shape
    torch.Size([1, 3, 3])
    """


class FractionalMaxPool3d(_FractionalMaxPoolNd, calls=F.fractional_max_pool3d):
    """The maximum of windows of (..., depth, height, width) at random distances.

    >>> nn.FractionalMaxPool3d(2, output_size=3)(torch.ones(1, 5, 5, 5)).shape
    torch.Size([1, 3, 3, 3])
    """

    _ndim = 3


class LPPool1d(_LPPoolNd, calls=F.lp_pool1d):
    """The p-th root of the sum of x^p over each window of (..., length).

    >>> nn.LPPool1d(2, 2)(torch.ones(1, 4)).shape
    torch.Size([1, 2])
    """


class LPPool2d(_LPPoolNd, calls=F.lp_pool2d):
    """The p-th root of the sum of x^p over each window of (..., height, width).

    >>> nn.LPPool2d(2, 2)(torch.ones(1, 4, 4)).shape
    torch.Size([1, 2, 2])
    """


class LPPool3d(_LPPoolNd, calls=F.lp_pool3d):
    """The p-th root of the sum of x^p over each window of (..., depth, height, width).

    >>> nn.LPPool3d(2, 2)(torch.ones(1, 4, 4, 4)).shape
    torch.Size([1, 2, 2, 2])
    """


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, calls=F.adaptive_max_pool1d):
    """The maximum of each of the windows that divide (..., length) evenly.

    >>> nn.AdaptiveMaxPool1d(2)(torch.ones(1, 5)).shape
    torch.Size([1, 2])
    """


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, calls=F.adaptive_max_pool2d):
    """The maximum of each of the windows that divide (..., height, width) evenly.

    >>> nn.AdaptiveMaxPool2d(2)(torch.ones(1, 5, 5)).shape
    torch.Size([1, 2, 2])
    """


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd, calls=F.adaptive_max_pool3d):
    """The maximum of each of the windows that divide three dimensions evenly.

    >>> nn.AdaptiveMaxPool3d(2)(torch.ones(1, 5, 5, 5)).shape
    torch.Size([1, 2, 2, 2])
    """


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, calls=F.adaptive_avg_pool1d):
    """The average of each of the windows that divide (..., length) evenly.

    >>> nn.AdaptiveAvgPool1d(2)(torch.ones(1, 5)).shape
    torch.Size([1, 2])
    """


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, calls=F.adaptive_avg_pool2d):
    """The average of each of the windows that divide (..., height, width) evenly.

    >>> nn.AdaptiveAvgPool2d(2)(torch.ones(1, 5, 5)).shape
    torch.Size([1, 2, 2])
    """


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd, calls=F.adaptive_avg_pool3d):
    """The average of each of the windows that divide three dimensions evenly.

    >>> nn.AdaptiveAvgPool3d(2)(torch.ones(1, 5, 5, 5)).shape
    torch.Size([1, 2, 2, 2])
    """
