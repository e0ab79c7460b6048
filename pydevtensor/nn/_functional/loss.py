"""Losses."""

from __future__ import annotations

import warnings
from typing import Any

from pydevtensor import _C
from pydevtensor.nn._functional.activation import logsigmoid

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]


def resolve_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction that the two deprecated arguments ask for, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _reduce(
    name: str, loss: Any, reduction: str, size_average: Any = None, reduce: Any = None
) -> Any:
    """The loss of a batch, named by its derivative if there is a name."""
    reduction = resolve_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        loss = loss.mean()
    elif reduction == "sum":
        loss = loss.sum()
    elif reduction != "none":
        raise ValueError(
            f"{reduction} is not a valid value for reduction; give mean, sum or none"
        )
    return _C._named(loss, name + "Backward0") if name else loss


def _gap(name: str, input: Any, target: Any) -> Any:
    """input - target, with a warning if they broadcast."""
    if input.shape != target.shape:
        warnings.warn(
            f"{name}: the target's size {[*target.shape]} differs from the input's "
            f"{[*input.shape]}, so they broadcast; reshape one of them",
            stacklevel=4,
        )
    try:
        return input - target
    except RuntimeError as error:
        raise RuntimeError(f"{name}: {error}") from None


def _need_same_size(name: str, input: Any, target: Any) -> None:
    if input.device != target.device:
        raise RuntimeError(
            f"{name}: the input, of shape {[*input.shape]}, is on {input.device} and "
            f"the target, of shape {[*target.shape]}, on {target.device}; bring them "
            f"together, e.g. with target.to('{input.device}')"
        )
    if input.shape != target.shape:
        raise ValueError(
            f"{name}: the target's size {[*target.shape]} must be the same as the "
            f"input's, {[*input.shape]}; reshape one of them"
        )


def mse_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The squared differences: their mean, sum, or (reduction='none') each.

    >>> nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    squares = _gap("mse_loss", input, target).square()
    return _reduce("MseLoss", squares, reduction, size_average, reduce)


def l1_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The absolute differences.

    >>> nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """
    gap = _gap("l1_loss", input, target)
    return _reduce("", gap.abs(), reduction, size_average, reduce)


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0
) -> Any:
    """Half the squared difference up to delta, linear with slope delta above it.

    >>> nn.functional.huber_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.7500)
    """
    if delta <= 0:
        raise RuntimeError(f"huber_loss: delta is {delta}; give more than 0")
    loss = _huber(_gap("huber_loss", input, target).abs(), delta)
    return _reduce("HuberLoss", loss, reduction)


def _huber(gap: Any, delta: float) -> Any:
    near, far = 0.5 * gap.square(), delta * (gap - 0.5 * delta)
    return _C.where(gap <= delta, near, far)


def smooth_l1_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """huber_loss with a delta of beta, divided by beta; l1_loss if beta is 0.

    >>> nn.functional.smooth_l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.7500)
    """
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss: beta is {beta}; give 0 or more")
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    loss = _huber(_gap("smooth_l1_loss", input, target).abs(), beta)
    loss = _reduce("", loss, reduction, size_average, reduce)
    return _C._named(loss / beta, "SmoothL1LossBackward0")


def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """-(t log x + (1 - t) log(1 - x)); logarithms are at least -100.

    >>> p = torch.tensor([0.9, 0.2])
    >>> nn.functional.binary_cross_entropy(p, torch.tensor([1.0, 0.0]))
    tensor(0.1643)
    """
    _need_same_size("binary_cross_entropy", input, target)
    # Not on a GPU, which would have to be synchronized.
    if input.device.type == "cpu" and ((input < 0) | (input > 1)).any():
        raise RuntimeError(
            "binary_cross_entropy: all elements of input should be between 0 and 1; "
            "give probabilities, such as input.sigmoid()"
        )
    least = _C.full_like(input, -100.0)
    loss = -(
        target * _C.maximum(input.log(), least)
        + (1 - target) * _C.maximum((1 - input).log(), least)
    )
    loss = loss if weight is None else loss * weight
    return _reduce("BinaryCrossEntropy", loss, reduction, size_average, reduce)


def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """binary_cross_entropy of sigmoid(input), computed stably.

    >>> x = torch.tensor([2.0, -1.0])
    >>> nn.functional.binary_cross_entropy_with_logits(x, torch.tensor([1.0, 0.0]))
    tensor(0.2201)
    """
    _need_same_size("binary_cross_entropy_with_logits", input, target)
    loss = (1 - target) * input
    soft = -logsigmoid(input)
    loss += soft if pos_weight is None else soft * (1 + (pos_weight - 1) * target)
    loss = loss if weight is None else loss * weight
    name = "BinaryCrossEntropyWithLogits"
    return _reduce(name, loss, reduction, size_average, reduce)


def kl_div(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """target * (log target - input); input holds log-probabilities.

    >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])
    >>> nn.functional.kl_div(q.log(), p, reduction='sum')
    tensor(0.5108)
    """
    if log_target:
        loss = target.exp() * (target - input)
    else:
        positive = target > 0
        safe = _C.where(positive, target, 1.0)
        loss = _C.where(positive, target * (safe.log() - input), target * -input * 0)
    if reduction == "batchmean":
        return loss.sum() / (input.shape[0] if input.ndim else 1)
    return _reduce("", loss, reduction, size_average, reduce)


def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """-input at each target class; input: log-probabilities, (N, C, ...) or (C).

    target: class indices (int64 or uint8), of input's shape without C; weight: one for
    each class, shape (C,). reduction='mean' divides the sum by the weights of the
    targets. Targets equal to ignore_index do not count.

    Raises IndexError for an index that is not a class; on a GPU, AcceleratorError at
    the next synchronization.

    >>> x = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log()
    >>> nn.functional.nll_loss(x, torch.tensor([0, 1]))
    tensor(0.1643)
    """
    reduction = resolve_reduction(size_average, reduce, reduction)
    return _C._nll_loss(input, target, weight, ignore_index, reduction)


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """The cross entropy of softmax(input) and target.

    input: logits, (N, C, ...) or (C); target: class indices, of input's shape without
    C, or class probabilities, of input's shape. label_smoothing is the part of each
    target that is spread evenly over the classes. The others are as for nll_loss.

    >>> x = torch.tensor([[2.0, -1.0], [0.0, 3.0]])
    >>> nn.functional.cross_entropy(x, torch.tensor([0, 1]))
    tensor(0.0486)
    """
    if label_smoothing > 1:
        raise RuntimeError(
            f"cross_entropy: label_smoothing is {label_smoothing}; give 0 to 1"
        )
    reduction = resolve_reduction(size_average, reduce, reduction)
    return _C._cross_entropy(
        input, target, weight, ignore_index, reduction, label_smoothing
    )
