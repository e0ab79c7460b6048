"""Distances as modules."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules._function_layer import FunctionLayer

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(FunctionLayer, calls=F.cosine_similarity):
    """The cosine of the angle between vectors along dim; the shapes broadcast.

    >>> x, y = torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]])
    >>> nn.CosineSimilarity()(x, y)
    tensor([0.6000])
    """

    _shown = ()  # as in PyTorch


class PairwiseDistance(FunctionLayer, calls=F.pairwise_distance):
    """The p-norm of x1 - x2 + eps along the last dimension; the shapes broadcast.

    >>> x, y = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> nn.PairwiseDistance()(x, y)
    tensor([5.0000])
    """

    _spent = ("p",)
    _shown = ()  # as in PyTorch

    def _set_options(self, **options: Any) -> None:
        self.norm: float = options.pop("p")
        super()._set_options(**options)

    def forward(self, x1: Any, x2: Any) -> Any:
        """The distances, of the inputs' broadcast shape without the last dimension.

        x1, x2  vectors along the last dimension, of shapes that broadcast
        """
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
