"""Distances and angles between vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._autocast import casts
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


@function(package=True)
@casts(cuda="float32")
def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8
) -> Tensor:
    """The cosine of the angle between vectors along dim; the shapes broadcast.

    Raises RuntimeError for integers, IndexError for a dimension that does not exist.

    x1, x2  the vectors, floating
    dim     their dimension, which the result lacks
    eps     a norm counts as at least this, against division by 0

    >>> x, y = torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]])
    >>> nn.functional.cosine_similarity(x, y)
    tensor([0.6000])
    """
    dtype = _C.promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"the inputs are of {x1.dtype} and {x2.dtype}; convert "
            "one of them with .float()"
        )
    x1, x2 = _C.broadcast_tensors(x1.to(dtype), x2.to(dtype))
    first, second = (x / x.norm(2, dim, True).clamp_min(eps) for x in (x1, x2))
    return (first * second).sum(dim)


@function(package=True)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension; the shapes broadcast.

    See also torch.cdist(), for all pairs of rows.

    x1, x2   the vectors
    p        degree of the norm
    eps      added to each difference, against division by 0 in the gradient
    keepdim  keep the last dimension, with size 1

    >>> x, y = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> nn.functional.pairwise_distance(x, y)
    tensor([5.0000])
    """
    return _C._named((x1 - x2 + eps).norm(p, -1, keepdim), "NormBackward1")


@function(package=True)
@casts(cuda="float32")
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norm distances between each two rows of a matrix, a vector.

    Rows 0 and 1, 0 and 2, ..., 1 and 2, .... Raises RuntimeError for another number of
    dimensions and for a negative p.

    >>> nn.functional.pdist(torch.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    if input.ndim != 2:
        raise RuntimeError(f"the input has shape {[*input.shape]}; give a matrix")
    if not p >= 0:
        raise RuntimeError(f"p is {p}; give 0 or more")
    rows = input.shape[0]
    first, second = _C.triu_indices(rows, rows, 1, device=input.device)
    input = _C._flat(input) if p == 0 else input
    gaps = input[first] - input[second]
    if not gaps.numel():
        return gaps.sum(1)
    return _C._named(gaps.norm(p, 1), "PdistBackward0")
