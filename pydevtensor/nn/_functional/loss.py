"""Losses."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.autograd import no_grad
from pydevtensor.nn import functional as F
from pydevtensor.nn._functional.distance import pairwise_distance

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor, Text, Truth, Value


def resolve_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction that the two deprecated arguments ask for, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _known_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    reduction = resolve_reduction(size_average, reduce, reduction)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(
            f"{reduction} is not a valid value for reduction; give mean, sum or none"
        )
    return reduction


def _need_floats(input: Any, target: Any = None) -> None:
    """Raises for integers and bools what PyTorch does."""
    for what, x in (("input", input), ("target", target)):
        if x is not None and not x.is_floating_point():
            error = NotImplementedError if what == "input" else RuntimeError
            raise error(f"{what} is of {x.dtype}; convert it with .float()")


def _as_input(loss: Any, input: Any) -> Any:
    """The loss in the type of input, which has to hold floats where the loss does."""
    if loss.is_floating_point() and not input.is_floating_point():
        raise RuntimeError(
            f"input is of {input.dtype}, which holds no loss; convert it with .float()"
        )
    return loss.to(input.dtype)


def _need_classes(target: Any) -> None:
    if target.dtype != _C.int64:
        raise RuntimeError(f"the target is of {target.dtype}; convert it with .long()")


def _reduce(
    name: str, loss: Any, reduction: str, size_average: Any = None, reduce: Any = None
) -> Any:
    """The loss of a batch, named by its derivative if there is a name."""
    reduction = _known_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        loss = loss.mean()
    elif reduction == "sum":
        loss = loss.sum()
    return _C._named(loss, name + "Backward0") if name else loss


def _gap(name: str, input: Any, target: Any) -> Any:
    """input - target, with a warning if they broadcast. One of them may hold bools."""
    if input.shape != target.shape:
        warnings.warn(
            f"{name}: the target's size {[*target.shape]} differs from the input's "
            f"{[*input.shape]}, so they broadcast; reshape one of them",
            stacklevel=4,
        )
    input, target = _C._autocast_float(input, target)
    dtype = _C.promote_types(input.dtype, target.dtype)
    if name != "l1_loss":
        _need_floats(input if input.dtype == dtype else target)
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
    return _reduce("", loss, "mean" if reduction == "plain mean" else reduction)


def _need_same_size(input: Any, target: Any) -> None:
    if input.device != target.device:
        raise RuntimeError(
            f"the input, of shape {[*input.shape]}, is on {input.device} and "
            f"the target, of shape {[*target.shape]}, on {target.device}; bring them "
            f"together, e.g. with target.to('{input.device}')"
        )
    if input.shape != target.shape:
        raise ValueError(
            f"the target's size {[*target.shape]} must be the same as the "
            f"input's, {[*input.shape]}; reshape one of them"
        )


@function()
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared differences.

    Different shapes broadcast, with a warning.

    target                the wanted values
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each; ValueError for
                          another
    weight                what each element counts, of input's shape, else ValueError;
                          the mean is divided by their sum

    >>> nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    squares = _gap("mse_loss", input, target).square()
    if weight is not None:
        reduction = resolve_reduction(size_average, reduce, reduction)
        return _weighted(squares, input, weight, reduction)
    return _reduce("MseLoss", squares, reduction, size_average, reduce)


@function()
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute differences.

    Different shapes broadcast, with a warning.

    target                the wanted values
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each
    weight                what each element counts, of input's shape; the mean is
                          divided by their sum

    >>> nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """
    gap = _gap("l1_loss", input, target)
    if weight is not None:
        reduction = resolve_reduction(size_average, reduce, reduction)
        return _weighted(gap.abs(), input, weight, reduction)
    return _reduce("", gap.abs(), reduction, size_average, reduce)


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
    loss = _huber(_gap("huber_loss", input, target).abs(), delta)
    (input,) = _C._autocast_float(input)
    loss = _as_input(loss, input)
    if weight is not None:
        kind = "plain mean" if reduction == "mean" else reduction
        return _weighted(loss, input, weight, kind)
    return _reduce("HuberLoss", loss, reduction)


def _huber(gap: Any, delta: float) -> Any:
    near, far = 0.5 * gap.square(), delta * (gap - 0.5 * delta)
    return _C.where(gap <= delta, near, far)


@function()
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
    beta: float = 1.0,
) -> Tensor:
    """huber_loss with a delta of beta, divided by beta; l1_loss if beta is 0.

    target                the wanted values
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each
    beta                  where the square ends, 0 or more, else RuntimeError

    >>> nn.functional.smooth_l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.7500)
    """
    if beta < 0:
        raise RuntimeError(f"beta is {beta}; give 0 or more")
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    loss = _huber(_gap("smooth_l1_loss", input, target).abs(), beta)
    loss = _reduce("", loss, reduction, size_average, reduce)
    return _C._named(loss / beta, "SmoothL1LossBackward0")


@function()
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """-(t log x + (1 - t) log(1 - x)); logarithms are at least -100.

    weight                what each element counts
    reduction             'mean', 'sum', or 'none' for one loss each
    size_average, reduce  deprecated; use reduction
    target                the wanted values, of the same shape

    >>> p = torch.tensor([0.9, 0.2])
    >>> nn.functional.binary_cross_entropy(p, torch.tensor([1.0, 0.0]))
    tensor(0.1643)
    """
    _need_same_size(input, target)
    input, target = _C._autocast_float(input, target)
    _need_floats(input)
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
    return _reduce("BinaryCrossEntropy", loss, reduction, size_average, reduce)


@function()
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), computed stably.

    target                the wanted values, of the same shape, from 0 to 1; ValueError
                          for another shape
    weight                what each element counts
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each
    pos_weight            what the positive part of each target counts, a tensor that
                          broadcasts with target, such as (C); more than 1 for rare
                          classes

    >>> x = torch.tensor([2.0, -1.0])
    >>> nn.functional.binary_cross_entropy_with_logits(x, torch.tensor([1.0, 0.0]))
    tensor(0.2201)
    """
    _need_same_size(input, target)
    input, target = _C._autocast_float(input, target)
    _need_floats(input, target)
    loss = (1 - target) * input
    soft = -F.logsigmoid(input)
    loss += soft if pos_weight is None else soft * (1 + (pos_weight - 1) * target)
    loss = loss if weight is None else loss * weight
    name = "BinaryCrossEntropyWithLogits"
    return _reduce(name, loss, reduction, size_average, reduce)


@function()
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log target - input); input holds log-probabilities.

    target                the wanted probabilities, of a shape that broadcasts with
                          input's
    size_average, reduce  deprecated; use reduction
    reduction             'batchmean' (the sum divided by the batch size), 'mean' (by
                          the number of elements), 'sum', or 'none' for one each
    log_target            whether target holds logarithms of probabilities, as input
                          does

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
    return _reduce("", loss, reduction, size_average, reduce)


@function()
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Truth | None = None,
    ignore_index: int = -100,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """-input at each target class.

    input holds log-probabilities, (N, C, ...) or (C). Raises IndexError for an index
    that is not a class; on a GPU, AcceleratorError at the next synchronization. See
    also cross_entropy, which takes logits.

    target                class indices (int64 or uint8), of input's shape without C
    weight                what each class counts, (C)
    size_average, reduce  deprecated; use reduction
    ignore_index          a target that does not count
    reduction             'mean' (the sum divided by the weights of the targets), 'sum',
                          or 'none' for one loss each

    >>> x = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log()
    >>> nn.functional.nll_loss(x, torch.tensor([0, 1]))
    tensor(0.1643)
    """
    reduction = resolve_reduction(size_average, reduce, reduction)
    return _C._nll_loss(input, target, weight, ignore_index, reduction)


@function()
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Truth | None = None,
    ignore_index: int = -100,
    reduce: Truth | None = None,
    reduction: Text = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of softmax(input) and target.

    input holds logits, (N, C, ...) or (C). Raises IndexError for an index that is not a
    class (on a GPU, AcceleratorError at the next synchronization), ValueError for
    shapes that do not fit. See also nll_loss, for log-probabilities.

    target                class indices, int64 of input's shape without C, or class
                          probabilities, floating of input's shape
    weight                what each class counts, (C)
    size_average, reduce  deprecated; use reduction
    ignore_index          a target that does not count
    reduction             'mean' (weighted), 'sum', or 'none' for one loss each
    label_smoothing       the part of each target that is spread evenly over the
                          classes, 0 to 1

    >>> x = torch.tensor([[2.0, -1.0], [0.0, 3.0]])
    >>> nn.functional.cross_entropy(x, torch.tensor([0, 1]))
    tensor(0.0486)
    """
    if label_smoothing > 1:
        raise RuntimeError(f"label_smoothing is {label_smoothing}; give 0 to 1")
    reduction = resolve_reduction(size_average, reduce, reduction)
    return _C._cross_entropy(
        input, target, weight, ignore_index, reduction, label_smoothing
    )


@function()
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Truth | None = None,
    eps: float = 1e-8,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """The negative log-likelihood of counts t: e^x - t x, x being a rate's logarithm.

    target                the counts, of a shape that broadcasts with input's
    log_input             whether x is a logarithm; if False, x is the rate, and the
                          loss x - t log(x + eps)
    full                  add Stirling's approximation of log(t!) where t is above 1
    size_average, reduce  deprecated; use reduction
    eps                   added to a rate before its logarithm, with log_input=False
    reduction             'mean', 'sum', or 'none' for one loss each

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
    return _reduce("", loss, reduction, size_average, reduce)


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
    full       add the constant log(2 pi) / 2
    eps        least variance: smaller ones count as this
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
    return _reduce("", loss, reduction)


@function()
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """input, a distance, where target is 1; max(0, margin - input) where it is -1.

    target                1 for inputs that are to be small, -1 for those that are to be
                          large
    margin                a distance of target -1 costs nothing from here on
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> x, t = torch.tensor([0.25, 0.25]), torch.tensor([1.0, -1.0])
    >>> nn.functional.hinge_embedding_loss(x, t)
    tensor(0.5000)
    """
    input, target = _C._autocast_float(input, target)
    zero = _C.zeros_like(input)
    far = _C.where(target != 1, (margin - input).clamp_min(0), zero)
    near = _C.where(target != -1, input, zero)
    return _reduce("", far + near, reduction, size_average, reduce)


@function()
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1.

    cos is the cosine of the angle between two vectors. Raises RuntimeError for other
    shapes.

    input1, input2        the vectors, (N, D) or (D)
    target                1 for vectors that are to be alike, -1 for others, (N) or ()
    margin                a pair of target -1 costs nothing up to this cosine
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])
    >>> nn.functional.cosine_embedding_loss(x, y, torch.tensor([1.0]))
    tensor(0.2929)
    """
    if target.ndim > 1 or {input1.ndim, input2.ndim} != {target.ndim + 1}:
        raise RuntimeError(
            f"the target has shape {[*target.shape]} and the "
            f"inputs {[*input1.shape]} and {[*input2.shape]}; give (N) and (N, D), or "
            "() and (D)"
        )
    input1, input2, target = _C._autocast_float(input1, input2, target)
    epsilon = 1e-12
    dot = (input1 * input2).sum(-1)
    cos = dot / ((_sum_square(input1, epsilon) * _sum_square(input2, epsilon)).sqrt())
    zero = _C.zeros_like(cos)
    near = _C.where(target == 1, 1 - cos, zero)
    far = _C.where(target == -1, (cos - margin).clamp_min(0), zero)
    return _reduce("", near + far, reduction, size_average, reduce)


def _sum_square(x: Any, epsilon: float) -> Any:
    return x.square().sum(-1) + epsilon


@function()
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """max(0, margin - target * (input1 - input2)).

    Raises RuntimeError where the numbers of dimensions differ.

    input1, input2        the numbers to compare
    target                1 where input1 is to be larger, -1 where input2 is
    margin                how much larger
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> x, y, t = torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])
    >>> nn.functional.margin_ranking_loss(x, y, t)
    tensor(2.)
    """
    _same_dims(input1=input1, input2=input2, target=target)
    input1, input2, target = _C._autocast_float(input1, input2, target)
    loss = (-target * (input1 - input2) + margin).clamp_min(0)
    return _reduce("", loss, reduction, size_average, reduce)


def _same_dims(**tensors: Any) -> None:
    if len({t.ndim for t in tensors.values()}) > 1:
        shapes = ", ".join(f"{k} {[*t.shape]}" for k, t in tensors.items())
        raise RuntimeError(
            f"the shapes are {shapes}; give tensors with the same number of dimensions"
        )


def _class_rows(input: Any) -> Any:
    """The input as a batch of rows of classes."""
    if input.ndim > 2 or (not input.numel() and input.ndim < 2):
        raise RuntimeError(f"the input has shape {[*input.shape]}; give (N, C) or (C)")
    return input.reshape(1, -1) if input.ndim < 2 else input


def _check_classes(target: Any, least: int, classes: int) -> None:
    """On the CPU; a GPU would have to be synchronized, and reports it later."""
    if target.device.type != "cpu" or not target.numel():
        return
    low, high = int(target.min()), int(target.max())
    if low < least or high >= classes:
        raise RuntimeError(
            f"the target has the class {low if low < least else high}; give "
            f"{least} to {classes - 1}"
        )


@function()
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: float = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """The mean over classes i of max(0, margin - x[target] + x[i])^p, i != target.

    input holds scores, (N, C) or (C). Raises RuntimeError for other shapes and, on the
    CPU, for an index that is not a class.

    target                classes, int64 of shape (N) or ()
    p                     power of a difference, 1 or 2, else ValueError
    margin                how much larger the target's score has to be to cost nothing
    weight                what each class counts, (C)
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> nn.functional.multi_margin_loss(x, torch.tensor([3]))
    tensor(0.3250)
    """
    if p not in (1, 2):
        raise ValueError(f"p is {p}; give 1 or 2")
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"weight has shape {[*weight.shape]}; give one dimension")
    reduction = _known_reduction(size_average, reduce, reduction)
    input, weight = _C._autocast_float(input, weight)
    _need_floats(input)
    _need_classes(target)
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
    _check_classes(index, 0, classes)
    gaps = (margin - rows.gather(1, index) + rows).clamp_min(0)
    if p == 2:
        gaps = gaps * gaps
    if weight is not None:
        gaps = gaps * weight[index]
    loss = gaps.scatter(1, index, 0.0).sum(1) / classes
    if input.ndim < 2 and not target.ndim:
        loss = loss.squeeze(0)
    return _reduce("MultiMarginLoss", loss, reduction, size_average, reduce)


@function()
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """The sum of max(0, 1 - (x[t] - x[i])) / C over target classes t and others i.

    input holds scores, (N, C) or (C). Raises RuntimeError for other shapes and, on the
    CPU, for an index that is not a class.

    target                the target classes of each row, ended by -1, int64 of input's
                          shape
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> nn.functional.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """
    reduction = _known_reduction(size_average, reduce, reduction)
    (input,) = _C._autocast_float(input)
    _need_floats(input)
    _need_classes(target)
    rows = _class_rows(input)
    if target.shape != input.shape:
        raise RuntimeError(
            f"the target has shape {[*target.shape]}; give the input's, "
            f"{[*input.shape]}"
        )
    classes = rows.shape[1]
    index = target.reshape(rows.shape)
    _check_classes(index, -1, classes)
    counts = (index < 0).cumsum(1) == 0  # those before the first -1
    index = _C.where(counts, index, 0)
    is_target = _C.zeros_like(rows, dtype=_C.int64).scatter_add(1, index, counts.long())
    scores = rows.gather(1, index)
    gaps = (1 - scores.unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0)
    pairs = counts.unsqueeze(2) & (is_target == 0).unsqueeze(1)
    loss = _C.where(pairs, gaps, 0.0).sum((1, 2)) / classes
    loss = loss if input.ndim == 2 else loss.squeeze(0)
    return _reduce("MultilabelMarginLoss", loss, reduction, size_average, reduce)


@function()
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """The mean over classes of the binary cross entropy of sigmoid(input) and target.

    target                1 for the classes of a row, 0 for others, of input's shape,
                          (..., C)
    weight                what each class counts, (C)
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> x = torch.tensor([[2.0, -1.0]])
    >>> nn.functional.multilabel_soft_margin_loss(x, torch.tensor([[1.0, 0.0]]))
    tensor(0.2201)
    """
    loss = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(-1) / input.shape[-1]
    return _reduce("", loss, reduction, size_average, reduce)


@function()
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """log(1 + e^(-target * input)).

    target                1 or -1, of a shape that broadcasts with input's
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> nn.functional.soft_margin_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)
    """
    input, target = _C._autocast_float(input, target)
    loss = _as_input(-F.logsigmoid(target * input), input)
    return _reduce("SoftMarginLoss", loss, reduction, size_average, reduce)


@function()
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Truth | None = None,
    reduce: Truth | None = None,
    reduction: Text = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d pairwise_distance.

    See also triplet_margin_with_distance_loss(), for another distance.

    anchor                vectors, (N, D) or (D)
    positive              vectors that are to be near anchor's
    negative              vectors that are to be far from anchor's; RuntimeError where
                          the numbers of dimensions differ
    margin                how much nearer positive is to be than negative; ValueError
                          for 0 or less
    p                     degree of the norm of differences
    eps                   added to each difference, against division by 0 in the
                          gradient
    swap                  take d(positive, negative) where that is less than d(anchor,
                          negative)
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> a, b = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> nn.functional.triplet_margin_loss(a, b, a)
    tensor(6.0000)
    """

    def distance(x: Any, y: Any) -> Any:
        return pairwise_distance(x, y, p, eps)

    reduction = resolve_reduction(size_average, reduce, reduction)
    return _triplet(
        _C._autocast_float(anchor, positive, negative),
        distance,
        margin,
        swap,
        reduction,
    )


@function()
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: Text = "mean",
) -> Tensor:
    """triplet_margin_loss with another distance, a function of two tensors.

    anchor             tensors that the others are compared with
    positive           what is to be near anchor
    negative           what is to be far from anchor; RuntimeError where the numbers of
                       dimensions differ
    distance_function  takes two tensors and gives their distances; None:
                       pairwise_distance
    margin             how much nearer positive is to be than negative; ValueError for 0
                       or less
    swap               take the distance of positive and negative where that is less
                       than anchor's and negative's
    reduction          'mean', 'sum', or 'none' for one loss each

    >>> a, b = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> def largest(x, y):
    ...     return (x - y).abs().amax(1)
    >>> nn.functional.triplet_margin_with_distance_loss(
    ...     a, b, a, distance_function=largest)
    tensor(5.)
    """
    return _triplet(
        (anchor, positive, negative),
        distance_function or pairwise_distance,
        margin,
        swap,
        reduction,
    )


def _triplet(
    three: Any, distance: Any, margin: float, swap: bool, reduction: str
) -> Any:
    anchor, positive, negative = three
    if margin <= 0:
        raise ValueError(f"margin is {margin}; give more than 0")
    _same_dims(anchor=anchor, positive=positive, negative=negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    return _reduce("", (near - far + margin).clamp_min(0), reduction)


@function()
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: Text = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log-likelihood of sequences over all alignments with the input.

    Connectionist temporal classification: Graves et al., 2006. Raises RuntimeError for
    lengths and classes out of range.

    log_probs       logarithms of probabilities, such as log_softmax gives, (T, N, C) or
                    (T, C)
    targets         integers, classes other than blank, (N, S), or all sequences one
                    after the other in one dimension
    input_lengths   how many of the T steps of each input count, a tensor or tuple of N
                    integers
    target_lengths  how many of the labels of each target count, a tensor or tuple of N
                    integers
    blank           the class that stands for no label, 0 to C - 1
    reduction       'mean' (of losses divided by their target's length), 'sum', or
                    'none' for one loss each
    zero_infinity   make an infinite loss, of a target too long for its input, 0, and
                    its gradient, which is NaN otherwise, too

    >>> x = torch.full((2, 1, 2), 0.5).log()
    >>> nn.functional.ctc_loss(x, torch.tensor([[1]]), (2,), (1,))
    tensor(0.2877)
    """
    (log_probs,) = _C._autocast_float(log_probs)
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    if log_probs.ndim != 3 or not log_probs.numel():
        raise RuntimeError(
            f"log_probs has shape {[*log_probs.shape]}; give (T, N, C) or (T, C), and "
            "elements"
        )
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank is {blank}; give 0 to {classes - 1}")
    lengths = _lengths("input_lengths", input_lengths, batch, steps)
    sizes = _lengths("target_lengths", target_lengths, batch, None)
    device = log_probs.device
    labels = _padded(targets.long(), sizes, blank).to(device)
    _check_classes(labels, 0, classes)
    # The states of an alignment: the labels with blanks between, before and after.
    states = 2 * labels.shape[1] + 1
    sequence = _C.full((batch, states), blank, dtype=_C.int64, device=device)
    sequence[:, 1::2] = labels
    emitted = log_probs.gather(2, sequence.expand(steps, batch, states))
    # A step goes on by two states from label to label, if these differ.
    least = -math.inf
    skips = _C.zeros((batch, states), dtype=_C.bool, device=device)
    skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    alpha = _C.cat(
        [emitted[0, :, :2], emitted.new_full((batch, max(states - 2, 0)), least)], 1
    )
    ends = _C.tensor(lengths, device=device).unsqueeze(1)
    outside = emitted.new_full((batch, 2), least)
    final = alpha.masked_fill(ends == 0, least)
    if steps and any(length == 0 for length in lengths):
        first = _C.arange(states, device=device) == 0
        final = _C.where((ends == 0) & first, 0.0, final)
    for t in range(1, max(lengths, default=0)):
        shifted = _C.cat([outside, alpha], 1)
        jumped = shifted[:, :-2].masked_fill(~skips, least)
        sums = _C.stack([alpha, shifted[:, 1:-1], jumped])
        alpha = _log_sum(sums) + emitted[t]
        final = _C.where(ends == t + 1, alpha, final)
    last = 2 * _C.tensor(sizes, device=device).unsqueeze(1)
    before = final.gather(1, (last - 1).clamp_min(0)).masked_fill(last == 0, least)
    loss = -_log_sum(_C.stack([final.gather(1, last), before])).squeeze(1)
    impossible = loss == math.inf
    if zero_infinity:
        loss = _C.where(impossible, 0.0, loss)
    else:
        # An infinite loss whose gradient is NaN for all classes, as in PyTorch.
        counts = _C.arange(steps, device=device).unsqueeze(1) < ends.T
        all_classes = _C.where(counts, log_probs.exp().sum(2), 0.0).sum(0)
        never = -_C.where(impossible, 0 * all_classes, 1.0).log()
        loss = _C.where(impossible, never, loss)
    if reduction == "mean":
        divisors = _C.tensor(sizes, device=device).clamp_min(1).to(loss.dtype)
        return (loss / divisors).mean()
    loss = loss.squeeze(0) if single and reduction == "none" else loss
    return _reduce("CtcLoss" if reduction == "none" else "", loss, reduction)


def _log_sum(parts: Any) -> Any:
    """log(sum(e^x)) over the first dimension, whose gradient is 0 where all are "
    "-inf."""
    known = parts > -math.inf
    some = known.any(0)
    total = _C.where(some, parts, 0.0).logsumexp(0)
    return _C.where(some, total, -math.inf)


def _lengths(what: str, given: Any, batch: int, most: int | None) -> list[int]:
    """Lengths as ints."""
    if isinstance(given, _C.Tensor):
        if given.is_floating_point():
            raise RuntimeError(f"{what} is of {given.dtype}; give integers")
        given = given.reshape(-1).tolist()
    if not isinstance(given, (int, tuple, list)):
        raise TypeError(f"{what} is {given!r}; give a Tensor or tuple of integers")
    given = [given] if isinstance(given, int) else [*given]
    for each in given:
        if not isinstance(each, int):
            raise TypeError(f"{what} has a {type(each).__name__}; give integers")
        if each < 0 or (most is not None and each > most):
            bound = "or more" if most is None else f"to {most}, the input's steps"
            raise RuntimeError(f"{what} has {each}; give 0 {bound}")
    if len(given) != batch:
        raise RuntimeError(
            f"{what} has {len(given)} elements; give {batch}, one for each sequence"
        )
    return given


def _padded(targets: Any, sizes: list[int], blank: int) -> Any:
    """The targets as (N, S), filled up with some class."""
    longest = max(sizes, default=0)
    if targets.ndim == 1:
        if targets.numel() != sum(sizes):
            raise RuntimeError(
                f"targets has {targets.numel()} elements, and target_lengths "
                f"sum to {sum(sizes)}; give as many"
            )
        rows = targets.split(sizes)
        made = targets.new_full((len(sizes), longest), 1 if blank == 0 else 0)
        for row, given in zip(made, rows, strict=True):
            row[: given.numel()] = given
        return made
    if (
        targets.ndim != 2
        or targets.shape[0] != len(sizes)
        or targets.shape[1] < longest
    ):
        raise RuntimeError(
            f"targets has shape {[*targets.shape]}; give ({len(sizes)}, S) "
            f"with S at least {longest}, or all in one dimension"
        )
    inside = _C.arange(longest, device=targets.device) < _C.tensor(
        sizes, device=targets.device
    ).unsqueeze(1)
    return _C.where(inside, targets[:, :longest], 0)
