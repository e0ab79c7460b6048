"""Random numbers of further distributions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import method
from pydevtensor._functions.checks import floating

if TYPE_CHECKING:
    from pydevtensor._functions.types import Generator, Number, Tensor


@method()
def cauchy_(
    input: Tensor,
    median: Number = 0,
    sigma: Number = 1,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with samples of the Cauchy distribution. sigma is positive.

    >>> generator = torch.manual_seed(0)
    >>> torch.empty(2).cauchy_()
    tensor([10.5977,  0.7648])
    """
    floating("the Tensor", input)
    if not sigma > 0:
        raise RuntimeError(f"sigma is {sigma}; give more than 0")
    drawn = _C.rand(
        input.shape, dtype=_C.float64, device=input.device, generator=generator
    )
    return input.copy_(((drawn - 0.5) * math.pi).tan() * sigma + median)


@method()
def log_normal_(
    input: Tensor,
    mean: Number = 1,
    std: Number = 2,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with samples whose logarithm has that mean and standard deviation.

    std is positive.

    >>> generator = torch.manual_seed(0)
    >>> torch.empty(2).log_normal_()
    tensor([59.2634,  1.5116])
    """
    floating("the Tensor", input, NotImplementedError)
    if not std > 0:
        raise RuntimeError(f"std is {std}; give more than 0")
    # Strided, so that the CPU draws the numbers one by one, as PyTorch does here.
    drawn = _C.empty_strided(
        (input.numel(),), (2,), dtype=_C.float64, device=input.device
    )
    drawn.normal_(mean, std, generator=generator)
    return input.copy_(drawn.exp().reshape(input.shape))


@method()
def geometric_(
    input: Tensor, p: Number, *, generator: Generator | None = None
) -> Tensor:
    """Fill with samples of the geometric distribution: trials up to the first success.

    p is the probability of success.

    >>> generator = torch.manual_seed(0)
    >>> torch.empty(3).geometric_(0.5)
    tensor([1., 1., 2.])
    """
    if input.dtype == _C.bool:
        raise NotImplementedError("not for bools; give numbers")
    if not 0 < p < 1:
        raise RuntimeError(f"p is {p}; give more than 0 and less than 1")
    drawn = _C.rand(
        input.shape, dtype=_C.float64, device=input.device, generator=generator
    )
    return input.copy_((drawn.log() / math.log1p(-p)).ceil())
