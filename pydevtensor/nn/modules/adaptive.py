"""A softmax over many classes, of which few are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pydevtensor import _C
from pydevtensor.nn import functional as F
from pydevtensor.nn.modules.container import ModuleList, Sequential
from pydevtensor.nn.modules.linear import Linear
from pydevtensor.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probability of a target among n_classes, rare ones by smaller layers.

    Grave and others, Efficient softmax approximation for GPUs (2017). Classes are
    numbered from the most frequent one. The first cutoffs[0] of them, the shortlist,
    and one place for each further cluster are the outputs of the layer `head`; the
    classes from cutoffs[i] to the next cutoff are those of `tail[i]`, through a layer
    of in_features // div_value ** (i + 1) features. ValueError for cutoffs that do not
    grow from 1 or more to n_classes - 1 or less.

    Called with input (N, in_features) or (in_features,) and target (N,) or (), it
    returns `output`, the log-probability of each target, and `loss`, their mean's
    negative. RuntimeError for other shapes and for a target outside 0 to n_classes - 1;
    finding these waits for a GPU.

    in_features    features of the input
    n_classes      how many classes there are
    cutoffs        the first class of each cluster, a list of one int or more that grow
    div_value      divisor of the number of features from one cluster to the next
    head_bias      whether the layer `head` has a bias; those of `tail` never have
    device, dtype  of the parameters

    >>> net = nn.AdaptiveLogSoftmaxWithLoss(8, 1000, cutoffs=[10, 100])
    >>> output, loss = net(torch.ones(3, 8), torch.tensor([5, 50, 500]))
    >>> output.shape
    torch.Size([3])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        edges = [0, *cutoffs, n_classes]
        grow = all(int(b) == b and a < b for a, b in pairwise(edges))
        if len(edges) == 2 or not grow:
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: cutoffs are {[*cutoffs]}; give ints that "
                f"grow, from 1 or more to n_classes - 1, {n_classes - 1}, or less"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs: list[int] = edges[1:]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size: int = self.cutoffs[0]
        self.n_clusters: int = len(self.cutoffs) - 1
        self.head_size: int = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head: Linear = Linear(
            in_features, self.head_size, bias=head_bias, **options
        )
        self.tail: ModuleList = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            width = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **options),
                    Linear(width, high - low, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Initialize all layers again."""
        self.head.reset_parameters()
        for layers in self.tail:
            for layer in layers:  # type: ignore[attr-defined]
                layer.reset_parameters()

    def _check(self, input: Any, target: Any) -> None:
        if target.dim() > 1 or input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: the input has shape {[*input.shape]} and "
                f"the target {[*target.shape]}; give [N, {self.in_features}] and [N], "
                f"or [{self.in_features}] and []"
            )
        if target.dim() and input.shape[0] != target.shape[0]:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: there are {input.shape[0]} inputs and "
                f"{target.shape[0]} targets; give a target for each"
            )
        outside = (target < 0) | (target >= self.n_classes)
        if outside.any():
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: a target is {target[outside][0].item()}; "
                f"give classes from 0 to {self.n_classes - 1}"
            )

    def forward(self, input: Any, target: Any) -> _ASMoutput:
        """The log-probability of each target, and the loss, their mean's negative.

        input   (N, in_features) or (in_features,)
        target  classes, int64 from 0 to n_classes - 1, (N,) or (); RuntimeError for
                others
        """
        self._check(input, target)
        inputs, targets = _C.atleast_2d(input), target.reshape(-1)
        place, output = targets, inputs.new_zeros(len(targets))
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            rows = ((targets >= low) & (targets < high)).nonzero().squeeze(1)
            if not rows.numel():
                continue
            logs = F.log_softmax(self.tail[i](inputs.index_select(0, rows)), 1)
            own = (targets.index_select(0, rows) - low).unsqueeze(1)
            output = output.index_copy(0, rows, logs.gather(1, own).squeeze(1))
            place = place.index_fill(0, rows, self.shortlist_size + i)
        head = F.log_softmax(self.head(inputs), 1)
        output = output + head.gather(1, place.unsqueeze(1)).squeeze(1)
        return _ASMoutput(output.reshape(target.shape), (-output).mean())

    def log_prob(self, input: Any) -> Any:
        """The log-probabilities of all classes: (N, n_classes) of (N, in_features).

        >>> net = nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[2, 5])
        >>> sums = net.log_prob(torch.ones(3, 4)).exp().sum(1)
        >>> torch.allclose(sums, torch.ones(3))
        True
        """
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, layers in enumerate(self.tail):
            cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(layers(input), 1) + cluster)
        return _C.cat(parts, 1)

    def predict(self, input: Any) -> Any:
        """The most probable class of each row: (N,) of (N, in_features).

        >>> net = nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[2, 5])
        >>> net.predict(torch.ones(3, 4)).shape
        torch.Size([3])
        """
        best = self.head(input).argmax(1)
        rare = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rare.numel():
            found = self.log_prob(input.index_select(0, rare)).argmax(1)
            best = best.index_copy(0, rare, found)
        return best
