"""Losses as modules."""

from __future__ import annotations

from math import prod
from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn._functional._reduction import resolve_reduction
from pydevtensor.nn.modules._function_layer import FunctionLayer
from pydevtensor.nn.modules.distance import PairwiseDistance
from pydevtensor.nn.modules.linear import Linear

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
    "LinearCrossEntropyLoss",
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


class _Loss(FunctionLayer):
    _spent = ("size_average", "reduce")
    _shown = ()  # as in PyTorch

    def _set_options(self, **options: Any) -> None:
        old = options.pop("size_average", None), options.pop("reduce", None)
        options["reduction"] = resolve_reduction(*old, options["reduction"])
        super()._set_options(**options)


class _WeightedLoss(_Loss):
    pass


class MSELoss(_Loss, calls=F.mse_loss, takes="size_average, reduce, reduction"):
    """The squared differences of input and target.

    Different shapes broadcast, with a warning.

    >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """


class L1Loss(_Loss, calls=F.l1_loss, takes="size_average, reduce, reduction"):
    """The absolute differences; shapes and reduction as for MSELoss.

    >>> nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """


class SmoothL1Loss(_Loss, calls=F.smooth_l1_loss):
    """HuberLoss with a delta of beta, divided by beta; L1Loss if beta is 0.

    Shapes and reduction as for MSELoss. RuntimeError for a negative beta.

    >>> nn.SmoothL1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.7500)
    """


class HuberLoss(_Loss, calls=F.huber_loss, takes="reduction, delta"):
    """Half the squared difference up to delta, linear with slope delta above it.

    Shapes and reduction as for MSELoss.

    >>> nn.HuberLoss(delta=0.5)(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.4375)
    """


class CrossEntropyLoss(_WeightedLoss, calls=F.cross_entropy):
    """The cross entropy of softmax(input) and target.

    input: logits of shape (N, C, ...) or (C). target: class indices, int64 of shape
    (N, ...) or (), or class probabilities of input's shape.

    IndexError for an index that is not a class; ValueError for shapes that do not fit.

    >>> loss = nn.CrossEntropyLoss()
    >>> loss(torch.tensor([[0.0, 0.0], [0.0, 9.0]]), torch.tensor([0, 1]))
    tensor(0.3466)
    """


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of a linear layer's output, which it makes itself.

    in_features       the size of an input
    num_classes       the number of classes
    out_features      further dimensions of the logits, (N, num_classes, *out_features)
    bias              whether the layer, `linear`, has one
    device, dtype     of its parameters
    reduction         'mean', 'sum' or 'none'
    weight            a factor for each class
    ignore_index      a target that does not count; None: -100
    label_smoothing   from 0 to 1
    options           a LinearCrossEntropyOptions, by which few logits are in memory

    RuntimeError for a weight of another length, and label_smoothing outside of its
    limits. See also nn.functional.linear_cross_entropy().

    >>> loss = nn.LinearCrossEntropyLoss(2, 3)
    >>> _ = nn.init.zeros_(loss.linear.weight)
    >>> loss(torch.ones(4, 2), torch.tensor([0, 1, 2, 0]))
    tensor(1.0986, grad_fn=<NllLossBackward0>)
    """

    weight: Any

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__()
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got "
                f"{tuple(weight.shape)}; give a factor for each class"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                "expected label_smoothing to be in range [0, 1], got "
                f"{label_smoothing}; 0 is without it"
            )
        self.register_buffer("weight", weight)
        self.reduction, self.num_classes = reduction, num_classes
        self.out_features, self.ignore_index = out_features, ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        rows = prod(out_features, start=num_classes)
        self.linear = Linear(in_features, rows, bias, device, dtype)

    def forward(self, input: Any, target: Any) -> Any:
        """The loss of inputs, (N, in_features) or (in_features).

        target: classes (N, *out_features), or probabilities of the logits' shape.
        """
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """The options, for printing."""
        names = "num_classes", "out_features", "bias", "reduction", "ignore_index"
        values = {name: getattr(self, name, None) for name in names}
        values["bias"] = self.linear.bias is not None
        values |= {"label_smoothing": self.label_smoothing, "options": self.options}
        shown = [f"{name}={value}" for name, value in values.items()]
        return ", ".join([f"in_features={self.linear.in_features}", *shown])


class NLLLoss(_WeightedLoss, calls=F.nll_loss):
    """The negative log-probability of the target classes.

    input: log-probabilities, (N, C, ...) or (C); target: int64, (N, ...) or (). Options
    as for CrossEntropyLoss.

    >>> nn.NLLLoss()(torch.tensor([[-0.5, -1.0]]), torch.tensor([1]))
    tensor(1.)
    """


class BCELoss(_WeightedLoss, calls=F.binary_cross_entropy):
    """The binary cross entropy of probabilities.

    input and target must have one shape (else ValueError) and values from 0 to 1 (else
    RuntimeError, on the CPU only). See also BCEWithLogitsLoss, which takes scores.

    >>> nn.BCELoss()(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """


class BCEWithLogitsLoss(_WeightedLoss, calls=F.binary_cross_entropy_with_logits):
    """The binary cross entropy of sigmoid(input) and target.

    input and target must have one shape, else ValueError.

    >>> nn.BCEWithLogitsLoss()(torch.tensor([0.0, 0.0]), torch.tensor([0.0, 1.0]))
    tensor(0.6931)
    """


class KLDivLoss(_Loss, calls=F.kl_div):
    """The Kullback-Leibler divergence of target from input, log-probabilities.

    >>> even = torch.tensor([[0.5, 0.5]])
    >>> nn.KLDivLoss(reduction='batchmean')(even.log(), even)
    tensor(0.)
    """


class PoissonNLLLoss(_Loss, calls=F.poisson_nll_loss):
    """The negative log-likelihood of counts under Poisson distributions.

    Called with input, the rates or their logarithms, and target, the counts, of shapes
    that broadcast. See also nn.functional.poisson_nll_loss(), which has the formula.

    >>> nn.PoissonNLLLoss()(torch.tensor([0.0]), torch.tensor([2.0]))
    tensor(1.)
    """


class GaussianNLLLoss(
    _Loss, calls=F.gaussian_nll_loss, takes="*, full, eps, reduction"
):
    """The negative log-likelihood of target under normal distributions.

    Called with input, the means, target of its shape, and var, the variances.
    ValueError for another shape of var, and for negative variances. See also
    nn.functional.gaussian_nll_loss().

    >>> x, t, var = torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([4.0])
    >>> nn.GaussianNLLLoss()(x, t, var)
    tensor(1.1931)
    """


class HingeEmbeddingLoss(_Loss, calls=F.hinge_embedding_loss):
    """input, a distance, where target is 1; max(0, margin - input) where it is -1.

    >>> x, t = torch.tensor([0.25, 0.25]), torch.tensor([1.0, -1.0])
    >>> nn.HingeEmbeddingLoss()(x, t)
    tensor(0.5000)
    """


class CosineEmbeddingLoss(_Loss, calls=F.cosine_embedding_loss):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1.

    cos: the cosine of the angle between the vectors input1 and input2.

    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])
    >>> nn.CosineEmbeddingLoss()(x, y, torch.tensor([1.0]))
    tensor(0.2929)
    """


class MarginRankingLoss(_Loss, calls=F.margin_ranking_loss):
    """max(0, margin - target * (input1 - input2)), target being 1 or -1.

    >>> x, y, t = torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])
    >>> nn.MarginRankingLoss()(x, y, t)
    tensor(2.)
    """


class MultiLabelMarginLoss(_Loss, calls=F.multilabel_margin_loss):
    """The sum of max(0, 1 - (x[t] - x[i])) / C over target classes t and others i.

    See nn.functional.multilabel_margin_loss.

    >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> nn.MultiLabelMarginLoss()(x, torch.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """


class MultiLabelSoftMarginLoss(_WeightedLoss, calls=F.multilabel_soft_margin_loss):
    """The mean over classes of the binary cross entropy of sigmoid(input) and target.

    >>> x = torch.tensor([[2.0, -1.0]])
    >>> nn.MultiLabelSoftMarginLoss()(x, torch.tensor([[1.0, 0.0]]))
    tensor(0.2201)
    """


class SoftMarginLoss(_Loss, calls=F.soft_margin_loss):
    """log(1 + e^(-target * input)), target being 1 or -1.

    >>> nn.SoftMarginLoss()(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)
    """


class _TripletLoss(_Loss):
    """Base of losses of three points with a margin."""

    def _set_options(self, **options: Any) -> None:
        if options["margin"] <= 0:
            raise ValueError(
                f"{type(self).__name__}: margin is {options['margin']}; give more than "
                "0"
            )
        super()._set_options(**options)


class TripletMarginLoss(_TripletLoss, calls=F.triplet_margin_loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d PairwiseDistance.

    See also TripletMarginWithDistanceLoss, for another distance.

    >>> a, b = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> nn.TripletMarginLoss()(a, b, a)
    tensor(6.0000)
    """


class MultiMarginLoss(_WeightedLoss, calls=F.multi_margin_loss):
    """The mean over classes i of max(0, margin - x[target] + x[i])^p, i != target.

    See nn.functional.multi_margin_loss. Raises ValueError for a p that is not 1 or 2.

    >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> nn.MultiMarginLoss()(x, torch.tensor([3]))
    tensor(0.3250)
    """

    def _set_options(self, **options: Any) -> None:
        p, weight = options["p"], options["weight"]
        if p not in (1, 2):
            raise ValueError(f"MultiMarginLoss: p is {p}; give 1 or 2")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: weight has shape {[*weight.shape]}; give a vector, "
                "one for each class"
            )
        super()._set_options(**options)


class TripletMarginWithDistanceLoss(
    _TripletLoss,
    calls=F.triplet_margin_with_distance_loss,
    takes="*, distance_function, margin, swap, reduction",
):
    """TripletMarginLoss with another distance, a function of two tensors.

    distance_function  takes two tensors and gives their distances; None:
                       PairwiseDistance()

    >>> a, b = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> nn.TripletMarginWithDistanceLoss()(a, b, a)
    tensor(6.0000)
    """

    def _set_options(self, **options: Any) -> None:
        distance = options.pop("distance_function") or PairwiseDistance()
        super()._set_options(distance_function=distance, **options)


class CTCLoss(
    _Loss, calls=F.ctc_loss, inputs="log_probs, targets, input_lengths, target_lengths"
):
    """The negative log-likelihood of sequences over all alignments with the input.

    See also nn.functional.ctc_loss(), which has the shapes and errors.

    >>> x = torch.full((2, 1, 2), 0.5).log()
    >>> nn.CTCLoss()(x, torch.tensor([[1]]), (2,), (1,))
    tensor(0.2877)
    """
