"""Losses as modules."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn._functional.loss import resolve_reduction
from pydevtensor.nn.modules.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
]


class _Loss(Module):
    reduction: str

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = resolve_reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """The squared differences of input and target.

    Different shapes broadcast, with a warning. reduction: 'mean', 'sum', or 'none' to
    keep the shape; ValueError for another value.

    >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The absolute differences; shapes and reduction as for MSELoss.

    >>> nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """HuberLoss with a delta of beta, divided by beta; L1Loss if beta is 0.

    Shapes and reduction as for MSELoss. RuntimeError for a negative beta.

    >>> nn.SmoothL1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.7500)
    """

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Any:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the squared difference up to delta, linear with slope delta above it.

    Shapes and reduction as for MSELoss. RuntimeError for a delta of 0 or less.

    >>> nn.HuberLoss(delta=0.5)(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.4375)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        return F.huber_loss(input, target, self.reduction, self.delta)


class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of softmax(input) and target.

    input: logits of shape (N, C, ...) or (C). target: class indices, int64 of shape
    (N, ...) or (), or class probabilities of input's shape.

    weight           a weight for each class, shape (C)
    ignore_index     targets with this index do not count
    reduction        'mean' (weighted), 'sum', or 'none' for shape (N, ...)
    label_smoothing  this part of each target is spread evenly over the classes

    IndexError for an index that is not a class; ValueError for shapes that do not fit.

    >>> loss = nn.CrossEntropyLoss()
    >>> loss(torch.tensor([[0.0, 0.0], [0.0, 9.0]]), torch.tensor([0, 1]))
    tensor(0.3466)
    """

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_WeightedLoss):
    """The negative log-probability of the target classes.

    input: log-probabilities, (N, C, ...) or (C); target: int64, (N, ...) or (). Options
    as for CrossEntropyLoss.

    >>> nn.NLLLoss()(torch.tensor([[-0.5, -1.0]]), torch.tensor([1]))
    tensor(1.)
    """

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        ignore_index: int = -100,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Any:
        return F.nll_loss(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class BCELoss(_WeightedLoss):
    """The binary cross entropy of probabilities.

    input and target must have one shape (else ValueError) and values from 0 to 1 (else
    RuntimeError, on the CPU only); weight: one for each element.

    >>> nn.BCELoss()(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy(
            input, target, self.weight, reduction=self.reduction
        )


class BCEWithLogitsLoss(_WeightedLoss):
    """The binary cross entropy of sigmoid(input) and target.

    input and target must have one shape, else ValueError; pos_weight: the weight of the
    positive targets of each class.

    >>> nn.BCEWithLogitsLoss()(torch.tensor([0.0, 0.0]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        pos_weight: Any = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy_with_logits(
            input,
            target,
            self.weight,
            reduction=self.reduction,
            pos_weight=self.pos_weight,
        )


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of target from input, log-probabilities.

    target: probabilities, or with log_target their logarithms. reduction='batchmean'
    divides the sum by the batch size, 'mean' by the number of elements.

    >>> even = torch.tensor([[0.5, 0.5]])
    >>> nn.KLDivLoss(reduction='batchmean')(even.log(), even)
    tensor(0.)
    """

    def __init__(
        self,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        return F.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )
