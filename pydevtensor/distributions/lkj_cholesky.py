"""Factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor, finfo
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions.beta import Beta
from pydevtensor.distributions.distribution import Distribution
from pydevtensor.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices (Lewandowski and others, 2009).

    dim            of a matrix, 2 or more, else ValueError
    concentration  1: all matrices are equally likely; above 1: those near the identity
                   more; below 1: less. Positive, a number or a Tensor

    >>> torch.distributions.LKJCholesky(3, 1.0).event_shape
    torch.Size([3, 3])
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: dim is {dim}; give 2 or more")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of a row without its last element, for the rows in turn.
        before = torch.arange(dim - 1).to(self.concentration)
        before = torch.cat([before.new_zeros(1), before])
        most = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(before + 0.5, most.unsqueeze(-1) - 0.5 * before)
        shape = self.concentration.shape
        super().__init__(shape, (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LKJCholesky:
        return type(self)(self.dim, self.concentration.expand(batch_shape), False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Random factors, by the onion method: rows of directions and lengths.

        They are PyTorch's for a seed, which draws rows from the third on with longer
        first parts than the density says.

        sample_shape  how many, sizes
        """
        with no_grad():
            squared = self._beta.sample(sample_shape).unsqueeze(-1)
            shape, like = self._extended_shape(sample_shape), self.concentration
            drawn = torch.randn(shape, dtype=like.dtype, device=like.device).tril(-1)
            rows = drawn / drawn.norm(dim=-1, keepdim=True)
            rows[..., 0, :].fill_(0)
            found = squared.sqrt() * rows
            rest = 1 - found.square().sum(-1)
            return found + rest.clamp(min=finfo(found.dtype).tiny).sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        diagonal = self._checked(value).diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, self.dim + 1, device=value.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        norm = 0.5 * n * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, n)
        return (powers * diagonal.log()).sum(-1) - norm + alpha.lgamma() * n


_publish(__name__, described=True)
