"""Losses as modules."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.module import Module


class _Loss(Module):
    reduction: str

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            # The two old words, as PyTorch reads them.
            each = reduce is False
            reduction = "none" if each else "sum" if size_average is False else "mean"
        self.reduction = reduction


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
    """Squared differences.

    input and target of one shape (others broadcast, with a warning). reduction: 'mean',
    'sum', or 'none' for the shape of input; ValueError for another word.

    >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of input against target, of one shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Absolute differences; shapes and reduction as MSELoss.

    >>> nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of input against target, of one shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared differences below beta, absolute ones beyond: HuberLoss divided by beta.

    Shapes and reduction as MSELoss. RuntimeError for a beta below 0.

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
        """The loss of input against target, of one shape."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the squared difference up to delta, then growing by delta.

    Shapes and reduction as MSELoss. RuntimeError for a delta of 0 or less.

    >>> nn.HuberLoss(delta=0.5)(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.4375)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of input against target, of one shape."""
        return F.huber_loss(input, target, self.reduction, self.delta)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy of the softmax of input.

    input (N, C, ...) or (C), without a softmax; target the numbers of classes, int64 of
    shape (N, ...) or (), or shares of classes, floating, of input's shape.

    weight           of each class, (C)
    ignore_index     targets of this number do not count
    reduction        'mean' (by weight), 'sum', or 'none' for the shape of the numbers
    label_smoothing  this part of each target is spread evenly over the classes

    IndexError for a class that is not there; ValueError where shapes do not fit.

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
        """(N, C, ...) against class indices (N, ...) or probabilities (N, C, ...)."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_WeightedLoss):
    """Minus the log-probability of each target class; options as CrossEntropyLoss.

    input (N, C, ...) or (C), what a LogSoftmax gives; target int64, (N, ...) or ().

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
        """Log-probabilities (N, C, ...) against class indices (N, ...)."""
        return F.nll_loss(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities.

    input and target of one shape (else ValueError), from 0 to 1 (else RuntimeError, on
    the CPU); weight: of each element.

    >>> nn.BCELoss()(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of probabilities against targets, of one shape."""
        return F.binary_cross_entropy(
            input, target, self.weight, reduction=self.reduction
        )


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross entropy of the sigmoid of input.

    input and target of one shape (else ValueError); pos_weight: what a target of 1
    counts, for each class.

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
        """The loss of input against targets, of one shape."""
        return F.binary_cross_entropy_with_logits(
            input,
            target,
            self.weight,
            reduction=self.reduction,
            pos_weight=self.pos_weight,
        )


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of input, log-probabilities, from target.

    target: probabilities, or with log_target their logarithms. reduction 'batchmean'
    divides the sum by the size of the batch, as the definition has it; 'mean' does by
    the number of elements.

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
        """The divergence of input from target, of one shape."""
        return F.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )
