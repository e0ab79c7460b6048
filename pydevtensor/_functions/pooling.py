"""Pooling of nn.functional that is the package's as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor._functions import function
from pydevtensor.nn import functional as F

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dims, Tensor


@function()
def max_pool1d(
    input: Tensor,
    kernel_size: Dims,
    stride: Dims | None = None,
    padding: Dims = 0,  # type: ignore[assignment]
    dilation: Dims = 1,  # type: ignore[assignment]
    ceil_mode: bool = False,
) -> Tensor:
    """As nn.functional.max_pool1d(): the maximum of each window of (..., length).

    >>> torch.max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    tensor([[3., 4.]])
    """
    return F.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


@function()
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Dims,
    stride: Dims | None = None,
    padding: Dims = 0,  # type: ignore[assignment]
    dilation: Dims = 1,  # type: ignore[assignment]
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """As nn.functional.max_pool1d() with return_indices: the maxima and their indices.

    >>> torch.max_pool1d_with_indices(torch.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    (tensor([[3., 4.]]), tensor([[1, 3]]))
    """
    return F.max_pool1d_with_indices(
        input, kernel_size, stride, padding, dilation, ceil_mode
    )


@function()
def max_pool2d(
    input: Tensor,
    kernel_size: Dims,
    stride: Dims | None = None,
    padding: Dims = 0,  # type: ignore[assignment]
    dilation: Dims = 1,  # type: ignore[assignment]
    ceil_mode: bool = False,
) -> Tensor:
    """As nn.functional.max_pool2d(): the maximum of windows of (..., height, width).

    >>> torch.max_pool2d(torch.ones(1, 4, 4), 2).shape
    torch.Size([1, 2, 2])
    """
    return F.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


@function()
def max_pool3d(
    input: Tensor,
    kernel_size: Dims,
    stride: Dims | None = None,
    padding: Dims = 0,  # type: ignore[assignment]
    dilation: Dims = 1,  # type: ignore[assignment]
    ceil_mode: bool = False,
) -> Tensor:
    """As nn.functional.max_pool3d(): the maximum of windows of three dimensions.

    >>> torch.max_pool3d(torch.ones(1, 4, 4, 4), 2).shape
    torch.Size([1, 2, 2, 2])
    """
    return F.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


@function()
def avg_pool1d(
    input: Tensor,
    kernel_size: Dims,
    stride: Dims | None = None,
    padding: Dims = 0,  # type: ignore[assignment]
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """As nn.functional.avg_pool1d(): the average of each window of (..., length).

    >>> torch.avg_pool1d(torch.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    tensor([[2., 3.]])
    """
    return F.avg_pool1d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad
    )


@function()
def adaptive_avg_pool1d(input: Tensor, output_size: Dims) -> Tensor:
    """The average of each of output_size windows that divide (..., length) evenly.

    >>> torch.adaptive_avg_pool1d(torch.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    tensor([[2., 3.]])
    """
    return F.adaptive_avg_pool1d(input, output_size)


@function()
def adaptive_max_pool1d(input: Tensor, output_size: Dims) -> tuple[Tensor, Tensor]:
    """The maximum of each of output_size windows that divide (..., length) evenly.

    Returns the maxima and where they are, int64.

    >>> torch.adaptive_max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    (tensor([[3., 4.]]), tensor([[1, 3]]))
    """
    return F.adaptive_max_pool1d_with_indices(input, output_size)
