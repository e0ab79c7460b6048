"""Losses as modules."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn._functional.loss import resolve_reduction
from pydevtensor.nn.modules.distance import PairwiseDistance
from pydevtensor.nn.modules.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    reduction: str

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = resolve_reduction(size_average, reduce, reduction)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The loss of input against target: a number, or with reduction='none' many.

        input   the computed values
        target  what it should have been, of the shape and values that the class names
        """
        return super().forward(*args, **kwargs)


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

    Different shapes broadcast, with a warning.

    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' to keep the shape; ValueError for
                          another

    >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The absolute differences; shapes and reduction as for MSELoss.

    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """HuberLoss with a delta of beta, divided by beta; L1Loss if beta is 0.

    Shapes and reduction as for MSELoss. RuntimeError for a negative beta.

    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each
    beta                  where the square ends, 0 or more, else RuntimeError

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

    Shapes and reduction as for MSELoss.

    reduction  'mean', 'sum', or 'none' for one loss each
    delta      where the square ends, more than 0, else RuntimeError

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

    size_average, reduce  deprecated; use reduction

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

    weight                what each class counts
    reduction             'mean', 'sum', or 'none' for one loss each
    size_average, reduce  deprecated; use reduction
    ignore_index          a target that does not count

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
    RuntimeError, on the CPU only). See also BCEWithLogitsLoss, which takes scores.

    weight                what each element counts, of a shape that broadcasts
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> nn.BCELoss()(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy(
            input, target, self.weight, reduction=self.reduction
        )


class BCEWithLogitsLoss(_WeightedLoss):
    """The binary cross entropy of sigmoid(input) and target.

    input and target must have one shape, else ValueError.

    weight                what each element counts, of a shape that broadcasts
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each
    pos_weight            weight of the positive part of each target, of a shape that
                          broadcasts, such as (C); more than 1 for rare classes

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

    size_average, reduce  deprecated; use reduction
    reduction             'batchmean' (the sum divided by the batch size), 'mean' (by
                          the number of elements), 'sum', or 'none' for one each
    log_target            whether target holds logarithms of probabilities, as input
                          does

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


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts under Poisson distributions.

    Called with input, the rates or their logarithms, and target, the counts, of shapes
    that broadcast. See also nn.functional.poisson_nll_loss(), which has the formula.

    log_input             whether input holds logarithms of rates; if False, the rates
                          themselves
    full                  add an approximation of log(target!), which changes no
                          gradient of input
    size_average, reduce  deprecated; use reduction
    eps                   added to a rate before its logarithm, with log_input=False
    reduction             'mean', 'sum', or 'none' for one loss each; ValueError for
                          another

    >>> nn.PoissonNLLLoss()(torch.tensor([0.0]), torch.tensor([2.0]))
    tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Any = None,
        eps: float = 1e-8,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any) -> Any:
        return F.poisson_nll_loss(
            input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of target under normal distributions.

    Called with input, the means, target of its shape, and var, the variances.
    ValueError for another shape of var, and for negative variances. See also
    nn.functional.gaussian_nll_loss().

    full       add the constant log(2 pi) / 2, which changes no gradient
    eps        least variance: smaller ones count as this, so that no loss is infinite
    reduction  'mean', 'sum', or 'none' for one loss each

    >>> x, t, var = torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([4.0])
    >>> nn.GaussianNLLLoss()(x, t, var)
    tensor(1.1931)
    """

    def __init__(
        self,
        *,
        full: bool = False,
        eps: float = 1e-6,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        """The loss of target under means input and variances var.

        target  the values seen, of input's shape
        var     variances, 0 or more: a number, or a tensor of input's shape, without
                its last dimension or with size 1 there
        """
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """input, a distance, where target is 1; max(0, margin - input) where it is -1.

    margin                a distance of target -1 costs nothing from here on
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> x, t = torch.tensor([0.25, 0.25]), torch.tensor([1.0, -1.0])
    >>> nn.HingeEmbeddingLoss()(x, t)
    tensor(0.5000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        return F.hinge_embedding_loss(
            input, target, margin=self.margin, reduction=self.reduction
        )


class CosineEmbeddingLoss(_Loss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1.

    cos: the cosine of the angle between the vectors input1 and input2.

    margin                a pair of target -1 costs nothing up to this cosine, -1 to 1
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])
    >>> nn.CosineEmbeddingLoss()(x, y, torch.tensor([1.0]))
    tensor(0.2929)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        """The loss of pairs of vectors, which are to be alike or not.

        input1, input2  vectors, (N, D) or (D)
        target          1 for a pair that is to be alike, -1 for one that is not, (N) or
                        (); RuntimeError for other numbers of dimensions
        """
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MarginRankingLoss(_Loss):
    """max(0, margin - target * (input1 - input2)), target being 1 or -1.

    margin                how much larger the number has to be to cost nothing
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> x, y, t = torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])
    >>> nn.MarginRankingLoss()(x, y, t)
    tensor(2.)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        """The loss of pairs of numbers, of which one is to be larger.

        input1, input2  the numbers, of one shape
        target          1 where input1 is to be larger, -1 where input2 is; RuntimeError
                        for another number of dimensions
        """
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """The sum of max(0, 1 - (x[t] - x[i])) / C over target classes t and others i.

    See nn.functional.multilabel_margin_loss.

    reduction             'mean', 'sum', or 'none' for one loss each
    size_average, reduce  deprecated; use reduction

    >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> nn.MultiLabelMarginLoss()(x, torch.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of the binary cross entropy of sigmoid(input) and target.

    weight                what each class counts
    reduction             'mean', 'sum', or 'none' for one loss each
    size_average, reduce  deprecated; use reduction

    >>> x = torch.tensor([[2.0, -1.0]])
    >>> nn.MultiLabelSoftMarginLoss()(x, torch.tensor([[1.0, 0.0]]))
    tensor(0.2201)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class SoftMarginLoss(_Loss):
    """log(1 + e^(-target * input)), target being 1 or -1.

    reduction             'mean', 'sum', or 'none' for one loss each
    size_average, reduce  deprecated; use reduction

    >>> nn.SoftMarginLoss()(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d PairwiseDistance.

    See also TripletMarginWithDistanceLoss, for another distance.

    margin                how much nearer positive is to be than negative; ValueError
                          for 0 or less
    p                     degree of the distance's norm; 2 is the Euclidean one
    eps                   added to each difference, against division by 0 in the
                          gradient
    swap                  take d(positive, negative) where that is less than d(anchor,
                          negative)
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> a, b = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> nn.TripletMarginLoss()(a, b, a)
    tensor(6.0000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: margin is {margin}; give more than 0")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """The loss of triplets of vectors.

        anchor    vectors, (N, D) or (D)
        positive  vectors that are to be near anchor's
        negative  vectors that are to be far from anchor's; RuntimeError where the
                  numbers of dimensions differ
        """
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class MultiMarginLoss(_WeightedLoss):
    """The mean over classes i of max(0, margin - x[target] + x[i])^p, i != target.

    See nn.functional.multi_margin_loss. Raises ValueError for a p that is not 1 or 2.

    p                     power of a difference, 1 or 2, else ValueError
    margin                how much larger the target's score has to be to cost nothing
    weight                what each class counts
    size_average, reduce  deprecated; use reduction
    reduction             'mean', 'sum', or 'none' for one loss each

    >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> nn.MultiMarginLoss()(x, torch.tensor([3]))
    tensor(0.3250)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: p is {p}; give 1 or 2")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: weight has shape {[*weight.shape]}; give a vector, "
                "one for each class"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Any:
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with another distance, a function of two tensors.

    distance_function  takes two tensors and gives their distances; None:
                       PairwiseDistance()
    margin             how much nearer positive is to be than negative; ValueError for 0
                       or less
    swap               take the distance of positive and negative where that is less
                       than anchor's and negative's
    reduction          'mean', 'sum', or 'none' for one loss each

    >>> a, b = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> nn.TripletMarginWithDistanceLoss()(a, b, a)
    tensor(6.0000)
    """

    def __init__(
        self,
        *,
        distance_function: Any = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: margin is {margin}; give more than 0"
            )
        self.distance_function: Any | PairwiseDistance = (
            distance_function or PairwiseDistance()
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        """The loss of triplets of whatever distance_function compares.

        anchor    the Tensor that the others are compared with
        positive  a Tensor that should be near anchor
        negative  a Tensor that should be far from anchor
        """
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """The negative log-likelihood of sequences over all alignments with the input.

    See also nn.functional.ctc_loss(), which has the shapes and errors.

    blank          the class that stands for no label, 0 to C - 1
    reduction      'mean' (of losses divided by their target's length), 'sum', or 'none'
                   for one loss each
    zero_infinity  make an infinite loss, of a target too long for its input, 0, and its
                   gradient too

    >>> x = torch.full((2, 1, 2), 0.5).log()
    >>> nn.CTCLoss()(x, torch.tensor([[1]]), (2,), (1,))
    tensor(0.2877)
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any
    ) -> Any:
        """The loss of targets, of which none is longer than its input.

        log_probs       logarithms of probabilities, such as log_softmax gives, (T, N,
                        C) or (T, C)
        targets         integers, classes other than blank, (N, S), or all sequences one
                        after the other in one dimension
        input_lengths   how many of the T steps of each input count, a tensor or tuple
                        of N integers
        target_lengths  how many of the labels of each target count, a tensor or tuple
                        of N integers; RuntimeError for lengths and classes out of range
        """
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
