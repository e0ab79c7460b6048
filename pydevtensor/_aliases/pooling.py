"""Pooling of nn.functional that is the package's as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor._functions import function
from pydevtensor.nn import functional as F

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dims, Tensor


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
