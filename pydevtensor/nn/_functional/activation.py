"""Activations that are composed of other functions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.nn import functional as F

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dtype, Tensor, Truth


@function()
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: Truth = False,
) -> Tensor:
    """leaky_relu with a slope of each element, random in training.

    Raises RuntimeError where lower is greater than upper.

    lower, upper  bounds of the slopes
    training      draw the slopes; otherwise all are the mean of the bounds
    inplace       write the result into the input

    >>> nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    if not lower <= upper:
        raise RuntimeError(
            f"lower is {lower} and upper {upper}; give a lower that is not "
            "greater than upper"
        )
    if not training:
        return F.leaky_relu(input, (lower + upper) / 2, inplace)
    if not input.is_floating_point():
        raise NotImplementedError(
            f"the input is of {input.dtype}; convert it with .float()"
        )
    slopes = _C.ones_like(input)
    low = input.detach() <= 0
    if input.device.type == "cpu":  # PyTorch draws where a slope is needed only
        drawn = _C.empty(int(low.sum()), dtype=_C.float64).uniform_(lower, upper)
        slopes.masked_scatter_(low, drawn.to(input.dtype))
    else:
        slopes = _C.where(low, _C.empty_like(input).uniform_(lower, upper), slopes)
    if inplace:
        return input.mul_(slopes)
    return _C._named(_C._flat(input) * slopes, "RreluWithNoiseBackward0")


@function(package=True)
def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
) -> Tensor:
    """rrelu, in place.

    lower, upper  bounds of the slopes
    training      draw the slopes; otherwise all are the mean of lower and upper

    >>> x = torch.tensor([-1.0, 2.0])
    >>> nn.functional.rrelu_(x) is x
    True
    """
    return rrelu(input, lower, upper, training, True)


@function()
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    >>> nn.functional.tanhshrink(torch.tensor([-1.0, 2.0]))
    tensor([-0.2384,  1.0360])
    """
    return input - input.tanh()


@function()
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|).

    >>> nn.functional.softsign(torch.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


def softmax_dim(name: str, dim: Any, ndim: int) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"{name}: without dim, one is chosen by the number of dimensions; give dim",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


@function()
def softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: Dtype | None = None,
) -> Tensor:
    """e^x divided by its sum along dim, converted to dtype first if it is given.

    >>> nn.functional.softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.0900, 0.2447, 0.6652])
    """
    dim = softmax_dim("softmax", dim, input.ndim)
    return _C.softmax(input, dim, dtype)


@function(like="softmax")
def softmin(input, dim=None, _stacklevel=3, dtype=None) -> Tensor:
    """softmax of -input.

    dim    the dimension along which the results add up to 1
    dtype  convert the input to it first

    >>> nn.functional.softmin(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.6652, 0.2447, 0.0900])
    """
    return softmax(-input, softmax_dim("softmin", dim, input.ndim), dtype=dtype)


@function(like="softmin")
def log_softmax(input, dim=None, _stacklevel=3, dtype=None) -> Tensor:
    """log(softmax(input)), computed stably.

    >>> nn.functional.log_softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([-2.4076, -1.4076, -0.4076])
    """
    dim = softmax_dim("log_softmax", dim, input.ndim)
    return _C.log_softmax(input, dim, dtype)


@function()
def gumbel_softmax(
    logits: Tensor,
    tau: float = 1,
    hard: Truth = False,
    eps: float = 1e-10,
    dim: int = -1,
) -> Tensor:
    """softmax((logits + g) / tau) along dim, g being samples of Gumbel's distribution.

    logits  logarithms of probabilities, up to a constant
    tau     the temperature: the smaller, the nearer to one-hot vectors
    hard    give one-hot vectors of the greatest elements, with the gradient of the soft
            ones
    eps     has no effect
    dim     the dimension along which the results add up to 1

    >>> y = nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True)
    >>> y.sum(-1)
    tensor([1., 1.])
    """
    noise = -_C.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    greatest = soft.max(dim, keepdim=True)[1]
    one = _C.zeros_like(logits).scatter_(dim, greatest, 1.0)
    return one - soft.detach() + soft
