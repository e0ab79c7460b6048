"""Losses as modules."""

from __future__ import annotations

from typing import Any

from pydevtensor._constructor import constructor
from pydevtensor.nn import functional as F
from pydevtensor.nn.forward import calls
from pydevtensor.nn.module import Module


class _Loss(Module):
    """Base of losses: weights are buffers; reduction has two deprecated spellings."""

    def _construct(
        self,
        reduction: str,
        size_average: Any = None,
        reduce: Any = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.reduction = F._reduction(size_average, reduce, reduction)
        for name, value in options.items():
            if name.endswith("weight"):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, input: Any, target: Any) -> Any:
        raise NotImplementedError


@constructor
class _PlainLoss(_Loss):
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@constructor
class _WeightedLoss(_Loss):
    weight: Any = None
    size_average: Any = None
    reduce: Any = None
    reduction: str = "mean"


@calls(F.mse_loss)
class MSELoss(_PlainLoss):
    """The squared differences of input and target.

    Different shapes broadcast, with a warning. reduction: 'mean', 'sum', or 'none' to
    keep the shape; ValueError for another value.

    >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """


@calls(F.l1_loss)
class L1Loss(_PlainLoss):
    """The absolute differences; shapes and reduction as for MSELoss.

    >>> nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """


@calls(F.smooth_l1_loss)
class SmoothL1Loss(_PlainLoss):
    """HuberLoss with a delta of beta, divided by beta; L1Loss if beta is 0.

    Shapes and reduction as for MSELoss. RuntimeError for a negative beta.

    >>> nn.SmoothL1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.7500)
    """

    beta: float = 1.0


@calls(F.huber_loss)
class HuberLoss(_Loss):
    """Half the squared difference up to delta, linear with slope delta above it.

    Shapes and reduction as for MSELoss. RuntimeError for a delta of 0 or less.

    >>> nn.HuberLoss(delta=0.5)(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.4375)
    """

    reduction: str = "mean"
    delta: float = 1.0


@calls(F.cross_entropy)
class CrossEntropyLoss(_Loss):
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

    weight: Any = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"
    label_smoothing: float = 0.0


@calls(F.nll_loss)
class NLLLoss(_Loss):
    """The negative log-probability of the target classes.

    input: log-probabilities, (N, C, ...) or (C); target: int64, (N, ...) or (). Options
    as for CrossEntropyLoss.

    >>> nn.NLLLoss()(torch.tensor([[-0.5, -1.0]]), torch.tensor([1]))
    tensor(1.)
    """

    weight: Any = None
    size_average: Any = None
    ignore_index: int = -100
    reduce: Any = None
    reduction: str = "mean"


@calls(F.binary_cross_entropy)
class BCELoss(_WeightedLoss):
    """The binary cross entropy of probabilities.

    input and target must have one shape (else ValueError) and values from 0 to 1 (else
    RuntimeError, on the CPU only); weight: one for each element.

    >>> nn.BCELoss()(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """


@calls(F.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(_WeightedLoss):
    """The binary cross entropy of sigmoid(input) and target.

    input and target must have one shape, else ValueError; pos_weight: the weight of the
    positive targets of each class.

    >>> nn.BCEWithLogitsLoss()(torch.tensor([0.0, 0.0]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    pos_weight: Any = None


@calls(F.kl_div)
class KLDivLoss(_PlainLoss):
    """The Kullback-Leibler divergence of target from input, log-probabilities.

    target: probabilities, or with log_target their logarithms. reduction='batchmean'
    divides the sum by the batch size, 'mean' by the number of elements.

    >>> even = torch.tensor([[0.5, 0.5]])
    >>> nn.KLDivLoss(reduction='batchmean')(even.log(), even)
    tensor(0.)
    """

    log_target: bool = False
