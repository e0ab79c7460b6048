"""Normalization of rows, channels and vectors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Order, PerDim, Sizes, Tensor


@function()
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel (dimension 1), then multiply by weight and add bias.

    running_mean, running_var  statistics to update, or to use, (C,)
    weight, bias               (C,), or None
    training                   normalize by the batch's statistics and update the
                               running ones, whose variance is the unbiased one; else by
                               those
    momentum                   weight of the batch in the running statistics
    eps                        added to the variance, against a division by 0

    >>> mean, var = torch.tensor([2.0]), torch.tensor([4.0])
    >>> nn.functional.batch_norm(torch.tensor([[4.0]]), mean, var)
    tensor([[1.0000]])
    """
    if training:
        if (running_mean is None) != (running_var is None):
            raise ValueError(
                "one of running_mean and running_var is None; give both, or neither"
            )
        if input.ndim > 1 and input.shape[0] * math.prod(input.shape[2:]) == 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{input.shape}; use eval(), or larger batches"
            )
    if input.ndim == 1 and not input.numel():
        return input.clone()  # no channel, and nothing to normalize
    return _C.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


@function()
def normalize(
    input: Tensor,
    p: Order | None = 2.0,
    dim: PerDim | None = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """input divided by its p-norm along dim.

    p    degree of the norm
    dim  the dimension, or several, of the vectors; None: all
    eps  least norm to divide by

    >>> nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    norm = input.norm(2.0 if p is None else p, dim, keepdim=True)
    return input / _C.maximum(norm, _C.full_like(norm, eps))


@function()
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each group of channels of each sample, then scale and shift channels.

    input is (N, C, ...). Raises ValueError where a group has one element in all.

    num_groups    how many groups; RuntimeError unless it divides C
    weight, bias  (C,), or None
    eps           added to the variance, against a division by 0

    >>> nn.functional.group_norm(torch.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"the input has shape {[*input.shape]}; give (N, C, ...)")
    batch, channels = input.shape[:2]
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            f"num_groups is {num_groups}, and the input of shape "
            f"{[*input.shape]} has {channels} channels; give a divisor of these"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and (*given.shape,) != (channels,):
            raise RuntimeError(
                f"{name} has shape {[*given.shape]}; give {[channels]}, an "
                f"element for each channel of the input of shape {[*input.shape]}"
            )
    if input.numel() == batch * num_groups == num_groups:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{[*input.shape]}; use fewer groups"
        )
    input, weight, bias = _C._autocast_float_on_gpu(input, weight, bias)
    # Rows of groups, then channels by statistics that change nothing.
    wide = input.float() if input.itemsize < 4 else input
    result = wide.reshape(
        batch * num_groups, input.numel() // max(batch * num_groups, 1)
    )
    if input.numel():
        result = _C.layer_norm(result, result.shape[1:], None, None, eps)
    result = result.view(input.shape)
    if weight is not None or bias is not None:
        mean, variance = result.new_zeros(channels), result.new_ones(channels)
        scale, shift = (t if t is None else t.to(wide.dtype) for t in (weight, bias))
        result = _C.batch_norm(result, scale, shift, mean, variance, False, 0.0, 0.0)
    return _C._named(result.to(input.dtype), "NativeGroupNormBackward0")


@function()
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each sample, then multiply by weight and add bias.

    input is (N, C, ...). Raises ValueError for one element a channel.

    running_mean, running_var  statistics to update, or to use, (C,)
    weight, bias               (C,), or None
    use_input_stats            normalize by the input's statistics and update the
                               running ones by their means; else by those
    momentum                   weight of the input in the running statistics
    eps                        added to the variance, against a division by 0

    >>> nn.functional.instance_norm(torch.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            "Expected more than 1 spatial element when training, got input size "
            f"{input.shape}; give (N, C, ...)"
        )
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "running_mean and running_var have to be given where "
                "use_input_stats is False"
            )
        return _C.batch_norm(
            input, weight, bias, running_mean, running_var, False, momentum, eps
        )
    batch, channels = input.shape[:2]
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given.numel() != channels:
            raise RuntimeError(
                f"{name} has {given.numel()} elements; give {channels}, "
                "one for each channel"
            )
    # Each channel of each sample is a channel of one big sample.
    scale, shift, means, variances = (
        None if t is None else t.repeat(batch)
        for t in (weight, bias, running_mean, running_var)
    )
    flat = input.reshape(1, batch * channels, *input.shape[2:])
    result = _C.batch_norm(flat, scale, shift, means, variances, True, momentum, eps)
    for running, own in ((running_mean, means), (running_var, variances)):
        if running is not None and own is not None:
            running.copy_(own.view(batch, channels).mean(0))
    return result.view(input.shape)


@function()
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """input / (k + alpha * mean)^beta, the mean of squares over size channels around.

    input: (N, C, ...), of 3 dimensions or more (ValueError where not). Beyond the first
    and last channel are zeros. Krizhevsky et al., 2012.

    size   how many channels, around each one, the mean is of
    alpha  what the mean is multiplied by
    beta   the power
    k      added constant

    >>> x = torch.tensor([[[1.0], [2.0]]])
    >>> nn.functional.local_response_norm(x, 2, alpha=1.0, beta=1.0, k=0.5).flatten()
    tensor([1.0000, 0.6667])
    """
    if input.ndim < 3:
        raise ValueError(f"the input has {input.ndim} dimensions; give 3 or more")
    if not input.numel():
        return input
    before, channels = size // 2, input.shape[1]
    shape = [*input.shape]
    shape[1] = channels + size - 1
    squares = input.new_zeros(shape)
    squares = squares.slice_scatter(input.square(), 1, before, before + channels)
    total = squares.unfold(1, size, 1)
    # For integers the whole part of the mean, as PyTorch's average of a window.
    if input.is_floating_point():
        total = total.mean(-1)
    else:
        total = total.sum(-1).div(size, rounding_mode="trunc")
    return input / (total * alpha + k) ** beta


@function(package=True)
def rms_norm(
    input: Tensor,
    normalized_shape: Sizes,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root of the mean of squares over the last dimensions.

    Raises RuntimeError if input's shape does not end with normalized_shape.

    normalized_shape  the shape of these dimensions, sizes
    weight            what the result is multiplied by, of that shape, or None
    eps               added to the mean; None: the least step from 1 of input's type

    >>> nn.functional.rms_norm(torch.tensor([[3.0, 4.0]]), (2,))
    tensor([[0.8485, 1.1314]])
    """
    shape = tuple(normalized_shape)
    if not shape or tuple(input.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"normalized_shape={[*shape]} does not end the shape of the "
            f"input, {[*input.shape]}; give inputs whose last sizes those are"
        )
    if weight is not None and tuple(weight.shape) != shape:
        raise RuntimeError(
            f"weight has shape {[*weight.shape]}; give one of "
            f"normalized_shape, {[*shape]}"
        )
    if not (input.is_floating_point() or input.is_complex()):
        raise NotImplementedError(
            f"the input is of {input.dtype}; convert it with .float()"
        )
    input, weight = _C._autocast_float_on_gpu(input, weight)
    wide = input.float() if input.itemsize < 4 else input
    part = wide.dtype.to_real()
    least = _C._float_limits(part)[1] if eps is None else eps
    dims = [*range(-len(shape), 0)]
    result = wide * (wide.square().mean(dims, keepdim=True) + least).rsqrt()
    if weight is not None:
        result = result * weight
    return result.to(input.dtype)
