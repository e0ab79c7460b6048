"""Losses of values against values."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.autograd import no_grad
from pydevtensor.nn._functional._reduction import (
    as_input,
    loss_function,
    need_floats,
    reduce_loss,
)

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor, Text, Value


def _gap(name: str, input: Any, target: Any, frames: int = 4) -> Any:
    """input - target, with a warning if they broadcast, which counts the frames to the
    caller. One of them may hold bools."""
    if input.shape != target.shape:
        warnings.warn(
            f"{name}: the target's size {[*target.shape]} differs from the input's "
            f"{[*input.shape]}, so they broadcast; reshape one of them",
            stacklevel=frames,
        )
    input, target = _C._autocast_float(input, target)
    dtype = _C.promote_types(input.dtype, target.dtype)
    if name != "l1_loss":
        need_floats(input if input.dtype == dtype else target)
        input, target = input.to(dtype), target.to(dtype)
    return input - target


def _weighted(loss: Any, input: Any, weight: Any, reduction: str) -> Any:
    """The losses times weights, whose mean is divided by the weights' sum."""
    if weight.shape != input.shape:
        raise ValueError(
            f"the weight has shape {[*weight.shape]} and the input "
            f"{[*input.shape]}; give a weight for each element"
        )
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return reduce_loss("", loss, "mean" if reduction == "plain mean" else reduction)


@loss_function()
def mse_loss(
    input: Tensor,
    target: Tensor,
    reduction: Text = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared differences.

    Different shapes broadcast, with a warning.

    target     the wanted values
    reduction  'mean', 'sum', or 'none' for one loss each; ValueError for another
    weight     what each element counts, of input's shape, else ValueError; the mean is
               divided by their sum

    >>> nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    squares = _gap("mse_loss", input, target).square()
    if weight is not None:
        return _weighted(squares, input, weight, reduction)
    return reduce_loss("MseLoss", squares, reduction)


@loss_function()
def l1_loss(
    input: Tensor,
    target: Tensor,
    reduction: Text = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute differences.

    Different shapes broadcast, with a warning.

    target  the wanted values
    weight  what each element counts, of input's shape; the mean is divided by their sum

    >>> nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """
    gap = _gap("l1_loss", input, target)
    if weight is not None:
        return _weighted(gap.abs(), input, weight, reduction)
    return reduce_loss("", gap.abs(), reduction)


@function()
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: Text = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Half the squared difference up to delta, linear with slope delta above it.

    Different shapes broadcast, with a warning.

    target     the wanted values
    reduction  'mean', 'sum', or 'none' for one loss each
    delta      where the square ends, more than 0, else RuntimeError
    weight     what each element counts, of input's shape; the mean is not divided by
               their sum

    >>> nn.functional.huber_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.7500)
    """
    if delta <= 0:
        raise RuntimeError(f"delta is {delta}; give more than 0")
    loss = _huber(_gap("huber_loss", input, target, 3).abs(), delta)
    (input,) = _C._autocast_float(input)
    loss = as_input(loss, input)
    if weight is not None:
        kind = "plain mean" if reduction == "mean" else reduction
        return _weighted(loss, input, weight, kind)
    return reduce_loss("HuberLoss", loss, reduction)


def _huber(gap: Any, delta: float) -> Any:
    near, far = 0.5 * gap.square(), delta * (gap - 0.5 * delta)
    return _C.where(gap <= delta, near, far)


@loss_function()
def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: Text = "mean", beta: float = 1.0
) -> Tensor:
    """huber_loss with a delta of beta, divided by beta; l1_loss if beta is 0.

    target  the wanted values
    beta    where the square ends, 0 or more, else RuntimeError

    >>> nn.functional.smooth_l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.7500)
    """
    if beta < 0:
        raise RuntimeError(f"beta is {beta}; give 0 or more")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    loss = _huber(_gap("smooth_l1_loss", input, target).abs(), beta)
    loss = reduce_loss("", loss, reduction)
    return _C._named(loss / beta, "SmoothL1LossBackward0")


@loss_function(around="eps")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: Text = "mean",
) -> Tensor:
    """The negative log-likelihood of counts t: e^x - t x, x being a rate's logarithm.

    target     the counts, of a shape that broadcasts with input's
    log_input  whether input holds logarithms of rates; if False, the rates, and the
               loss is x - t log(x + eps)
    full       add Stirling's approximation of log(t!) where t is above 1, which changes
               no gradient of input
    eps        added to a rate before its logarithm, with log_input=False

    >>> nn.functional.poisson_nll_loss(torch.tensor([0.0]), torch.tensor([2.0]))
    tensor(1.)
    """
    input, target = _C._autocast_float(input, target)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduce_loss("", loss, reduction)


@function()
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Value,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Text = "mean",
) -> Tensor:
    """The negative log-likelihood of target under normal distributions.

    input holds their means.

    target     the values seen, of input's shape
    var        their variances, 0 or more: a number, a tensor of input's shape, or one
               without the last dimension or with size 1 there; ValueError for others
    full       add the constant log(2 pi) / 2, which changes no gradient
    eps        least variance: smaller ones count as this, so that no loss is infinite
    reduction  'mean', 'sum', or 'none' for one loss each

    >>> x, t = torch.tensor([1.0]), torch.tensor([3.0])
    >>> nn.functional.gaussian_nll_loss(x, t, torch.tensor([4.0]))
    tensor(1.1931)
    """
    if not isinstance(var, _C.Tensor):
        var = input.new_full((), var).expand(input.shape)
    if (var < 0).any():
        raise ValueError(
            "var has negative elements; give variances, such as x.exp() or x.square()"
        )
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif var.ndim != input.ndim or (*input.shape[:-1], 1) != (*var.shape,):
            raise ValueError(
                f"var has shape {[*var.shape]}; give input's shape, "
                f"{[*input.shape]}, or that without its last size"
            )
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target).square() / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss("", loss, reduction)
