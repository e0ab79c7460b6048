"""Losses of classes and of probabilities."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.nn import functional as F
from pydevtensor.nn._functional._reduction import (
    as_input,
    check_classes,
    loss_function,
    need_classes,
    need_floats,
    need_reduction,
    need_same_size,
    reduce_loss,
)

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor, Text


@loss_function()
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """-(t log x + (1 - t) log(1 - x)); logarithms are at least -100.

    weight  what each element counts, of a shape that broadcasts
    target  the wanted values, of the same shape

    >>> p = torch.tensor([0.9, 0.2])
    >>> nn.functional.binary_cross_entropy(p, torch.tensor([1.0, 0.0]))
    tensor(0.1643)
    """
    need_same_size(input, target)
    input, target = _C._autocast_float(input, target)
    need_floats(input)
    if target.dtype != input.dtype:
        raise RuntimeError(
            f"the input is of {input.dtype} and the target of {target.dtype}; convert "
            f"the target with .to({input.dtype})"
        )
    # Not on a GPU, which would have to be synchronized.
    if input.device.type == "cpu" and ((input < 0) | (input > 1)).any():
        raise RuntimeError(
            "all elements of input should be between 0 and 1; "
            "give probabilities, such as input.sigmoid()"
        )
    least = _C.full_like(input, -100.0)
    loss = -(
        target * _C.maximum(input.log(), least)
        + (1 - target) * _C.maximum((1 - input).log(), least)
    )
    loss = loss if weight is None else loss * weight
    return reduce_loss("BinaryCrossEntropy", loss, reduction)


@loss_function()
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: Text = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), computed stably.

    target      the wanted values, of the same shape, from 0 to 1; ValueError for
                another shape
    weight      what each element counts, of a shape that broadcasts
    pos_weight  what the positive part of each target counts, a tensor that broadcasts
                with target, such as (C); more than 1 for rare classes

    >>> x = torch.tensor([2.0, -1.0])
    >>> nn.functional.binary_cross_entropy_with_logits(x, torch.tensor([1.0, 0.0]))
    tensor(0.2201)
    """
    need_same_size(input, target)
    input, target = _C._autocast_float(input, target)
    need_floats(input, target)
    loss = (1 - target) * input
    soft = -F.logsigmoid(input)
    loss += soft if pos_weight is None else soft * (1 + (pos_weight - 1) * target)
    loss = loss if weight is None else loss * weight
    name = "BinaryCrossEntropyWithLogits"
    return reduce_loss(name, loss, reduction)


@loss_function()
def kl_div(
    input: Tensor, target: Tensor, reduction: Text = "mean", log_target: bool = False
) -> Tensor:
    """target * (log target - input); input holds log-probabilities.

    target      the wanted probabilities, of a shape that broadcasts with input's
    reduction   'batchmean' (the sum divided by the batch size), 'mean' (by the number
                of elements), 'sum', or 'none' for one each
    log_target  whether target holds logarithms of probabilities, as input does

    >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])
    >>> nn.functional.kl_div(q.log(), p, reduction='sum')
    tensor(0.5108)
    """
    input, target = _C._autocast_float(input, target)
    if not (input.is_floating_point() and target.is_floating_point()):
        raise RuntimeError(
            f"the input is of {input.dtype} and the target of {target.dtype}; convert "
            "them with .float()"
        )
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = _C.xlogy(target, target) - target * input
    if reduction == "batchmean":
        return loss.sum() / (input.shape[0] if input.ndim else 1)
    return reduce_loss("", loss, reduction)


@loss_function(around="ignore_index")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Text = "mean",
) -> Tensor:
    """-input at each target class.

    input holds log-probabilities, (N, C, ...) or (C). Raises IndexError for an index
    that is not a class; on a GPU, AcceleratorError at the next synchronization. See
    also cross_entropy, which takes logits.

    target        class indices (int64 or uint8), of input's shape without C
    weight        what each class counts, (C)
    ignore_index  a target that does not count
    reduction     'mean' (the sum divided by the weights of the targets), 'sum', or
                  'none' for one loss each

    >>> x = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log()
    >>> nn.functional.nll_loss(x, torch.tensor([0, 1]))
    tensor(0.1643)
    """
    return _C._nll_loss(input, target, weight, ignore_index, reduction)


@loss_function(around="ignore_index")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Text = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of softmax(input) and target.

    input holds logits, (N, C, ...) or (C). Raises IndexError for an index that is not a
    class (on a GPU, AcceleratorError at the next synchronization), ValueError for
    shapes that do not fit. See also nll_loss, for log-probabilities.

    target           class indices, int64 of input's shape without C, or class
                     probabilities, floating of input's shape
    weight           what each class counts, (C)
    ignore_index     a target that does not count
    reduction        'mean' (weighted), 'sum', or 'none' for one loss each
    label_smoothing  the part of each target that is spread evenly over the classes, 0
                     to 1

    >>> x = torch.tensor([[2.0, -1.0], [0.0, 3.0]])
    >>> nn.functional.cross_entropy(x, torch.tensor([0, 1]))
    tensor(0.0486)
    """
    if label_smoothing > 1:
        raise RuntimeError(f"label_smoothing is {label_smoothing}; give 0 to 1")
    return _C._cross_entropy(
        input, target, weight, ignore_index, reduction, label_smoothing
    )


def _class_rows(input: Any) -> Any:
    """The input as a batch of rows of classes."""
    if input.ndim > 2 or (not input.numel() and input.ndim < 2):
        raise RuntimeError(f"the input has shape {[*input.shape]}; give (N, C) or (C)")
    return input.reshape(1, -1) if input.ndim < 2 else input


@loss_function()
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: float = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """The mean over classes i of max(0, margin - x[target] + x[i])^p, i != target.

    input holds scores, (N, C) or (C). Raises RuntimeError for other shapes and, on the
    CPU, for an index that is not a class.

    target  classes, int64 of shape (N) or ()
    p       power of a difference, 1 or 2, else ValueError
    margin  how much larger the target's score has to be to cost nothing
    weight  what each class counts, (C)

    >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> nn.functional.multi_margin_loss(x, torch.tensor([3]))
    tensor(0.3250)
    """
    if p not in (1, 2):
        raise ValueError(f"p is {p}; give 1 or 2")
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"weight has shape {[*weight.shape]}; give one dimension")
    need_reduction(reduction)
    input, weight = _C._autocast_float(input, weight)
    need_floats(input)
    need_classes(target)
    rows = _class_rows(input)
    count, classes = rows.shape
    if target.ndim > 1 or target.numel() != count:
        raise RuntimeError(
            f"the target has shape {[*target.shape]}; give {count} classes for "
            f"an input of shape {[*input.shape]}"
        )
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"weight has shape {[*weight.shape]}; give {[classes]}")
    index = target.reshape(-1, 1)
    check_classes(index, 0, classes)
    gaps = (margin - rows.gather(1, index) + rows).relu()
    if p == 2:
        gaps = gaps * gaps
    if weight is not None:
        gaps = gaps * weight[index]
    loss = gaps.scatter(1, index, 0.0).sum(1) / classes
    if input.ndim < 2 and not target.ndim:
        loss = loss.squeeze(0)
    return reduce_loss("MultiMarginLoss", loss, reduction)


@loss_function()
def multilabel_margin_loss(
    input: Tensor, target: Tensor, reduction: Text = "mean"
) -> Tensor:
    """The sum of max(0, 1 - (x[t] - x[i])) / C over target classes t and others i.

    input holds scores, (N, C) or (C). Raises RuntimeError for other shapes and, on the
    CPU, for an index that is not a class.

    target  the target classes of each row, ended by -1, int64 of input's shape

    >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> nn.functional.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """
    need_reduction(reduction)
    (input,) = _C._autocast_float(input)
    need_floats(input)
    need_classes(target)
    rows = _class_rows(input)
    if target.shape != input.shape:
        raise RuntimeError(
            f"the target has shape {[*target.shape]}; give the input's, "
            f"{[*input.shape]}"
        )
    classes = rows.shape[1]
    index = target.reshape(rows.shape)
    check_classes(index, -1, classes)
    counts = (index < 0).cumsum(1) == 0  # those before the first -1
    index = _C.where(counts, index, 0)
    is_target = _C.zeros_like(rows, dtype=_C.int64).scatter_add(1, index, counts.long())
    scores = rows.gather(1, index)
    gaps = (1 - scores.unsqueeze(2) + rows.unsqueeze(1)).relu()
    pairs = counts.unsqueeze(2) & (is_target == 0).unsqueeze(1)
    loss = _C.where(pairs, gaps, 0.0).sum((1, 2)) / classes
    loss = loss if input.ndim == 2 else loss.squeeze(0)
    return reduce_loss("MultilabelMarginLoss", loss, reduction)


@loss_function()
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """The mean over classes of the binary cross entropy of sigmoid(input) and target.

    target  1 for the classes of a row, 0 for others, of input's shape, (..., C)
    weight  what each class counts, (C)

    >>> x = torch.tensor([[2.0, -1.0]])
    >>> nn.functional.multilabel_soft_margin_loss(x, torch.tensor([[1.0, 0.0]]))
    tensor(0.2201)
    """
    loss = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(-1) / input.shape[-1]
    return reduce_loss("", loss, reduction)


@loss_function()
def soft_margin_loss(input: Tensor, target: Tensor, reduction: Text = "mean") -> Tensor:
    """log(1 + e^(-target * input)).

    target  1 or -1, of a shape that broadcasts with input's

    >>> nn.functional.soft_margin_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)
    """
    input, target = _C._autocast_float(input, target)
    margin = target * input
    loss = (-margin).exp().log1p() if margin.is_complex() else -F.logsigmoid(margin)
    loss = as_input(loss, input)
    return reduce_loss("SoftMarginLoss", loss, reduction)


@function()
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: Text = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy() of linear(input, linear_weight, linear_bias) and target.

    input (N, in) or (in), linear_weight (C, in) or, for N inputs, (C, d, ..., in),
    which gives logits (N, C, d, ...); linear_bias has linear_weight's shape without in.
    ignore_index: None for -100. options: a LinearCrossEntropyOptions, by which the
    logits of some rows at a time are in memory; for class indices without
    label_smoothing, and for weights of two dimensions, else it is ignored with a
    warning. Gradients have no gradients then.

    target, weight, reduction, label_smoothing: as in cross_entropy(). RuntimeError for
    shapes that do not fit, and for ignore_index with probabilities.

    >>> x, w = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> nn.functional.linear_cross_entropy(x, w, torch.tensor([1]))
    tensor(0.3133)
    """
    _check_linear(input, linear_weight, linear_bias, target, ignore_index)
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        known = reduction in ("mean", "sum", "none") and not label_smoothing
        if known and target.dtype == _C.int64 and linear_weight.dim() == 2:
            from pydevtensor.nn._functional._chunked_loss import chunked

            layer, how = (
                (input, linear_weight, linear_bias),
                (weight, reduction, ignored),
            )
            found: Tensor = chunked(layer, target, how, options)
            return found
        warnings.warn(
            "linear_cross_entropy: options are ignored; they are for class indices of "
            "int64, label_smoothing of 0, and a weight of two dimensions",
            stacklevel=2,
        )
    rows = linear_weight.flatten(0, -2) if linear_weight.dim() > 2 else linear_weight
    logits = F.linear(
        input, rows, None if linear_bias is None else linear_bias.view(-1)
    )
    if linear_weight.dim() > 2:
        logits = logits.unflatten(-1, linear_weight.shape[:-1])
    return F.cross_entropy(
        logits,
        target,
        weight,
        ignore_index=ignored,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _check_linear(x: Any, weight: Any, bias: Any, target: Any, ignored: Any) -> None:
    if x.dim() not in (1, 2) or weight.dim() < 2 or x.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            f"linear_cross_entropy: input has shape {[*x.shape]}, and linear_weight "
            f"{[*weight.shape]}; give (N, in) or (in), and (C, ..., in)"
        )
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_bias shape {[*weight.shape[:-1]]}, "
            f"got {[*bias.shape]}; give linear_weight's without the last"
        )
    if weight.dim() > 2 and x.dim() == 1:
        raise RuntimeError(
            f"linear_cross_entropy: linear_weight has shape {[*weight.shape]}, which "
            f"is for a batch of inputs; give (N, {x.shape[-1]})"
        )
    logits = (*x.shape[:-1], *weight.shape[:-1])
    if ignored is not None and tuple(target.shape) == logits:
        raise RuntimeError(
            "linear_cross_entropy: ignore_index is for class indices, and target has "
            "probabilities; leave it out"
        )
