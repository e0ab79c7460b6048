"""Special functions that are composed of others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dtype, Tensor


@function(out=True)
def ndtr(input: Tensor) -> Tensor:
    """The part of the normal distribution that lies below each element.

    >>> import pydevtensor as torch
    >>> torch.special.ndtr(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0.1587, 0.5000, 0.8413])
    """
    return _C.mul(_C.erfc(input * -math.sqrt(0.5)), 0.5)


@function()
def softmax(input: Tensor, dim: int, *, dtype: Dtype | None = None) -> Tensor:
    """The same as torch.softmax().

    >>> torch.special.softmax(torch.zeros(2), 0)
    tensor([0.5000, 0.5000])
    """
    return _C.softmax(input, dim, dtype=dtype)


@function()
def log_softmax(input: Tensor, dim: int, *, dtype: Dtype | None = None) -> Tensor:
    """The same as torch.log_softmax().

    >>> torch.special.log_softmax(torch.zeros(2), 0)
    tensor([-0.6931, -0.6931])
    """
    return _C.log_softmax(input, dim, dtype=dtype)
