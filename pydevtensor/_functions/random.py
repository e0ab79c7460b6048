"""Random numbers of further distributions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function, method
from pydevtensor._functions.checks import at_least, floating

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
    """Fill with samples of the Cauchy distribution.

    sigma: the scale, above 0 (RuntimeError). Floating types only.

    median     the center
    generator  the source of the numbers, else the device's default generator

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

    std is positive (RuntimeError). Floating types only (NotImplementedError).

    generator  the source of the numbers, else the device's default generator

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

    p: the probability of success, between 0 and 1 (RuntimeError).

    generator  the source of the numbers, else the device's default generator

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


@function(method=True, out=True)
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Indices drawn with the weights in each row of input.

    (n, num_samples) for (n, k), int64. RuntimeError for negative weights, for rows of
    zeros, and for more samples than weights without replacement.

    generator  the source of the numbers, else the device's default generator

    >>> torch.tensor([0.0, 1.0]).multinomial(2, replacement=True)
    tensor([1, 1])
    """
    floating("input", input)
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"input has {input.dim()} dimensions; give one row (1) or several (2)"
        )
    at_least(1, "num_samples", num_samples)
    n = input.shape[-1]
    if n >= 1 << 24:
        raise RuntimeError(f"a row has {n} weights; give less than 2^24 of them")
    if not replacement and num_samples > n:
        raise RuntimeError(
            f"{num_samples} samples without replacement of {n} weights; take fewer, or "
            "use replacement=True"
        )
    weights = input.detach()
    if not ((weights >= 0) & (weights < math.inf)).all():
        raise RuntimeError("a weight is negative or not finite; give 0 or more")
    if not (weights > 0).any(-1).all():
        raise RuntimeError("the weights of a row are all 0; give one that is more")
    device, shape = input.device, (*input.shape[:-1], num_samples)
    if replacement and num_samples > 1:
        sums = weights.double().cumsum(-1)
        sums = sums / sums[..., -1:]
        sums[..., -1] = 1
        drawn = _C.rand(shape, dtype=_C.float64, device=device, generator=generator)
        return _C.searchsorted(sums, drawn)
    # The greatest of weight / exponential number (Efraimidis and Spirakis, 2006).
    drawn = _C.empty(input.shape, dtype=input.dtype, device=device)
    drawn.exponential_(generator=generator)
    keys = _C.where(weights > 0, weights / drawn, 0)
    if num_samples == 1:
        return keys.argmax(-1, keepdim=True)
    return keys.topk(num_samples).indices
