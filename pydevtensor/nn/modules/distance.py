"""Distances as modules."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along dim; the shapes broadcast.

    dim  the dimension along which the vectors lie
    eps  least length of a vector, against division by 0

    >>> x, y = torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]])
    >>> nn.CosineSimilarity()(x, y)
    tensor([0.6000])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Any, x2: Any) -> Any:
        """The cosines, of the inputs' broadcast shape without dim.

        x1, x2  vectors of shapes that broadcast; RuntimeError for integers
        """
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last dimension; the shapes broadcast.

    p        degree of the norm
    eps      added to each difference, against division by 0 in the gradient
    keepdim  keep the last dimension, with size 1

    >>> x, y = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> nn.PairwiseDistance()(x, y)
    tensor([5.0000])
    """

    def __init__(
        self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
    ) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        """The distances, of the inputs' broadcast shape without the last dimension.

        x1, x2  vectors along the last dimension, of shapes that broadcast
        """
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
