"""Helpers of several distributions."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from numbers import Number
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor, finfo
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import enable_grad
from pydevtensor.nn import functional as F

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs"]
__all__ += ["probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix"]


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors and numbers as Tensors of one shape. ValueError for anything else.

    >>> from pydevtensor.distributions.utils import broadcast_all
    >>> broadcast_all(torch.zeros(2), 1.0)[1]
    tensor([1., 1.])
    """
    if not all(isinstance(v, (Tensor, Number)) for v in values):
        raise ValueError(
            f"the arguments are {values!r}; give Tensors and numbers alone"
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = torch.get_default_dtype() if like is None else like.dtype
    device = None if like is None else like.device
    tensors = [
        v if isinstance(v, Tensor) else torch.tensor(v, dtype=dtype, device=device)
        for v in values
    ]
    return tuple(torch.broadcast_tensors(*tensors))


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    return _standard_normal(shape, like.dtype, like.device)


def _standard_normal(shape: Any, dtype: torch.dtype, device: Any) -> Tensor:
    """As libraries with distributions of their own call it."""
    zeros, ones = (
        f(shape, dtype=dtype, device=device) for f in (torch.zeros, torch.ones)
    )
    return torch.normal(zeros, ones)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1, so that their logarithms are finite.

    >>> from pydevtensor.distributions.utils import clamp_probs
    >>> clamp_probs(torch.tensor([0.0, 0.5]))
    tensor([1.1921e-07, 5.0000e-01])
    """
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log-odds (is_binary) or from logarithms along the last
    dimension.

    >>> from pydevtensor.distributions.utils import logits_to_probs
    >>> logits_to_probs(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """
    return logits.sigmoid() if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The reverse of logits_to_probs().

    >>> from pydevtensor.distributions.utils import probs_to_logits
    >>> probs_to_logits(torch.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    clamped = clamp_probs(probs)
    if is_binary:
        return clamped.log() - (-clamped).log1p()
    return clamped.log()


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles of square matrices as vectors, row by row.

    mat   matrices, (..., n, n)
    diag  the last diagonal that belongs to a triangle, from -n to n - 1, else
          ValueError; 0 is the matrix's own, and -1 that below it

    >>> from pydevtensor.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 3, 4])
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag is {diag}; give a number from {-size} to {size - 1}")
    rows, columns = torch.tril_indices(size, size, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Square matrices, whose lower triangles the vectors give row by row, and 0 above.

    vec   vectors, (..., count); ValueError for a count that no matrix has
    diag  the last diagonal that belongs to a triangle: 0 the matrix's own, -1 below it

    >>> from pydevtensor.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(torch.tensor([1, 3, 4]))
    tensor([[1, 0],
            [3, 4]])
    """
    count = vec.shape[-1]
    root = (1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)
    size = round((root**0.5 - 1 - 2 * diag) / 2)
    rows, columns = torch.tril_indices(size, size, diag, device=vec.device)
    if len(rows) != count:
        raise ValueError(
            f"the vectors have {count} elements, and no triangle of diag {diag} has"
        )
    made = vec.new_zeros(*vec.shape[:-1], size, size)
    made[..., rows, columns] = vec
    return made


class lazy_property:
    """A property that is computed at the first use, and then an attribute.

    >>> from pydevtensor.distributions.utils import lazy_property
    >>> class Half:
    ...     @lazy_property
    ...     def value(self):
    ...         return 0.5
    >>> Half().value
    0.5
    """

    def __init__(self, wrapped: Callable[..., Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


_publish(__name__)
