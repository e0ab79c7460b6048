"""Activations, an element or a row at a time."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dtype, Number, Tensor, Truth


@function()
def relu(input: Tensor, inplace: Truth = False) -> Tensor:
    """max(x, 0) of each element.

    inplace  write the result into the input

    >>> nn.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _C.relu_(input) if inplace else _C.relu(input)


@function()
def relu_(input: Tensor) -> Tensor:
    """relu, in place.

    >>> nn.functional.relu_(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _C.relu_(input)


@function()
def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: Truth = False
) -> Tensor:
    """x, or negative_slope * x where x is negative.

    negative_slope  what negative elements are multiplied by
    inplace         write the result into the input

    >>> nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    if inplace:
        return _C._leaky_relu_(input, negative_slope)
    return _C._leaky_relu(input, negative_slope)


@function()
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu, in place.

    negative_slope  what negative elements are multiplied by

    >>> nn.functional.leaky_relu_(torch.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return _C._leaky_relu_(input, negative_slope)


@function()
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, or weight * x where x is negative.

    Raises RuntimeError for another number of weights.

    weight  one element, or one for each channel (dimension 1)

    >>> nn.functional.prelu(torch.tensor([-1.0, 2.0]), torch.tensor([0.25]))
    tensor([-0.2500,  2.0000])
    """
    input, weight = _C._autocast_lower(input, weight)
    if weight.ndim > 1:
        raise RuntimeError(
            f"weight has shape {[*weight.shape]}; give a vector, or a tensor "
            "without dimensions"
        )
    if input.ndim and weight.ndim:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.numel() not in (1, channels):
            raise RuntimeError(
                f"weight has {weight.numel()} elements; give 1, or {channels} "
                f"for the channels of an input of shape {[*input.shape]}"
            )
        weight = weight.reshape([-1] + [1] * (input.ndim - 2))
    elif weight.numel() > 1:
        raise RuntimeError(
            f"weight has {weight.numel()} elements; give 1 for an input without "
            "dimensions"
        )
    elif weight.ndim:
        weight = weight.reshape([])
    return _C._prelu(input, weight)


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
        return leaky_relu(input, (lower + upper) / 2, inplace)
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
    return _C._named(input * slopes, "RreluWithNoiseBackward0")


@function()
def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
) -> Tensor:
    """rrelu, in place.

    lower, upper  bounds of the slopes
    training      draw the slopes; otherwise all are the mean of lower and upper

    >>> nn.functional.rrelu_(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    return rrelu(input, lower, upper, training, True)


@function()
def elu(input: Tensor, alpha: float = 1.0, inplace: Truth = False) -> Tensor:
    """x, or alpha * (e^x - 1) where x is negative.

    alpha    the limit is -alpha for large negative elements
    inplace  write the result into the input

    >>> nn.functional.elu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _C._elu_(input, alpha) if inplace else _C._elu(input, alpha)


@function()
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """elu, in place.

    alpha  what e^x - 1 is multiplied by where x is negative

    >>> nn.functional.elu_(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _C._elu_(input, alpha)


@function()
def selu(input: Tensor, inplace: Truth = False) -> Tensor:
    """1.0507 * x, or 1.7581 * (e^x - 1) where x is negative.

    inplace  write the result into the input

    >>> nn.functional.selu(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return _C.selu_(input) if inplace else _C.selu(input)


@function()
def selu_(input: Tensor) -> Tensor:
    """selu, in place.

    >>> nn.functional.selu_(torch.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return _C.selu_(input)


@function()
def celu(input: Tensor, alpha: float = 1.0, inplace: Truth = False) -> Tensor:
    """x, or alpha * (e^(x / alpha) - 1) where x is negative.

    alpha    the limit is -alpha for large negative elements; RuntimeError for 0
    inplace  write the result into the input

    >>> nn.functional.celu(torch.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.4323,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("alpha is 0, which divides; give another number")
    return _C.celu_(input, alpha) if inplace else _C.celu(input, alpha)


@function()
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """celu, in place.

    alpha  as for celu, not 0

    >>> nn.functional.celu_(torch.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.4323,  2.0000])
    """
    return celu(input, alpha, True)


@function(out=True)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi the normal's CDF.

    approximate  'none' or 'tanh', a faster formula; RuntimeError for another

    >>> nn.functional.gelu(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    if approximate == "none":
        return _C._gelu(input)
    if approximate == "tanh":
        return _C._gelu_tanh(input)
    raise RuntimeError(f"approximate is {approximate!r}; give 'none' or 'tanh'")


@function()
def silu(input: Tensor, inplace: Truth = False) -> Tensor:
    """x * sigmoid(x).

    inplace  write the result into the input

    >>> nn.functional.silu(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return _C._silu_(input) if inplace else _C._silu(input)


@function()
def mish(input: Tensor, inplace: Truth = False) -> Tensor:
    """x * tanh(log(1 + e^x)).

    inplace  write the result into the input

    >>> nn.functional.mish(torch.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return _C._mish_(input) if inplace else _C._mish(input)


@function()
def hardtanh(
    input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0, inplace: Truth = False
) -> Tensor:
    """Each element, or the bound that it exceeds; at a bound the gradient is 0.

    Raises ValueError where min_val is greater than max_val.

    min_val, max_val  the bounds
    inplace           write the result into the input

    >>> nn.functional.hardtanh(torch.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError(
            f"min_val is {min_val} and max_val {max_val}; give a min_val "
            "that is not greater than max_val"
        )
    if input.dtype == _C.bool:
        raise RuntimeError("the input holds bools; convert it with .int()")
    call = _C._hardtanh_ if inplace else _C._hardtanh
    return call(input, min_val, max_val)


@function()
def hardtanh_(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0) -> Tensor:
    """hardtanh, in place.

    min_val, max_val  the bounds that elements are clamped to

    >>> nn.functional.hardtanh_(torch.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    return hardtanh(input, min_val, max_val, True)


@function()
def relu6(input: Tensor, inplace: Truth = False) -> Tensor:
    """min(max(x, 0), 6) of each element.

    inplace  write the result into the input

    >>> nn.functional.relu6(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


@function()
def hardswish(input: Tensor, inplace: Truth = False) -> Tensor:
    """x * min(max(x + 3, 0), 6) / 6.

    inplace  write the result into the input

    >>> nn.functional.hardswish(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([-0.3333,  1.6667,  9.0000])
    """
    return _C._hardswish_(input) if inplace else _C._hardswish(input)


@function()
def hardsigmoid(input: Tensor, inplace: Truth = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6.

    inplace  write the result into the input

    >>> nn.functional.hardsigmoid(torch.tensor([-1.0, 2.0, 9.0]))
    tensor([0.3333, 0.8333, 1.0000])
    """
    return _C._hardsigmoid_(input) if inplace else _C._hardsigmoid(input)


@function()
def threshold(
    input: Tensor, threshold: Number, value: Number, inplace: Truth = False
) -> Tensor:
    """Each element that is greater than threshold, and value for the others.

    inplace  write the result into the input

    >>> nn.functional.threshold(torch.tensor([-1.0, 2.0]), 0.5, 9)
    tensor([9., 2.])
    """
    call = _C.threshold_ if inplace else _C.threshold
    return call(input, threshold, value)


@function()
def threshold_(input: Tensor, threshold: Number, value: Number) -> Tensor:
    """threshold, in place.

    threshold  elements up to this one are replaced
    value      what replaces them

    >>> nn.functional.threshold_(torch.tensor([-1.0, 2.0]), 0.5, 9)
    tensor([9., 2.])
    """
    return _C.threshold_(input, threshold, value)


@function(out=True)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and 0 where it is nearer than that.

    lambd  the distance, 0 or more, else RuntimeError

    >>> nn.functional.softshrink(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    if not lambd >= 0:
        raise RuntimeError(f"lambd is {lambd}; give 0 or more")
    return _C._softshrink(input, lambd)


@function(out=True)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, and 0 where it is not beyond lambd on either side.

    lambd  the distance from 0

    >>> nn.functional.hardshrink(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    return _C._hardshrink(input, lambd)


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


@function(out=True)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + e^(beta x)) / beta, or x where beta x is above threshold.

    >>> nn.functional.softplus(torch.tensor([-1.0, 2.0]))
    tensor([0.3133, 2.1269])
    """
    (input,) = _C._autocast_float_on_gpu(input)
    return _C._softplus(input, beta, threshold)


@function(out=True)
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), computed stably.

    >>> nn.functional.logsigmoid(torch.tensor([-1.0, 2.0]))
    tensor([-1.3133, -0.1269])
    """
    return _C._log_sigmoid(input)


@function()
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + e^-x).

    >>> nn.functional.sigmoid(torch.tensor([-1.0, 2.0]))
    tensor([0.2689, 0.8808])
    """
    return input.sigmoid()


@function()
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent.

    >>> nn.functional.tanh(torch.tensor([-1.0, 2.0]))
    tensor([-0.7616,  0.9640])
    """
    return input.tanh()


@function()
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of input along dim, times the sigmoid of the second half.

    Raises RuntimeError for a dimension of odd size.

    dim  the dimension that is halved

    >>> nn.functional.glu(torch.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """
    if not input.ndim:
        raise RuntimeError("the input has no dimensions; give at least 1")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(
            f"dimension {dim} of the input has size {size}, an odd number; give "
            "an even one, which can be halved"
        )
    return _C._glu(*input.split(size // 2, dim)) if size else input


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


@function()
def softmin(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: Dtype | None = None,
) -> Tensor:
    """softmax of -input.

    dim    the dimension along which the results add up to 1
    dtype  convert the input to it first

    >>> nn.functional.softmin(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.6652, 0.2447, 0.0900])
    """
    return softmax(-input, softmax_dim("softmin", dim, input.ndim), dtype=dtype)


@function()
def log_softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: Dtype | None = None,
) -> Tensor:
    """log(softmax(input)), computed stably.

    dim    the dimension along which the results add up to 1
    dtype  convert the input to it first

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
