"""Rows of a table by index."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.autograd import no_grad

__all__ = ["embedding", "one_hot"]


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """int64 of shape (*tensor.shape, num_classes): 1 at each element's index, else 0.

    tensor: int64 of any shape. num_classes=-1: the maximum plus 1, which synchronizes
    with a GPU. Raises RuntimeError for an element that is not from 0 to
    num_classes - 1; on a GPU, AcceleratorError at the next synchronization.

    >>> nn.functional.one_hot(torch.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    return _C._one_hot(tensor, num_classes)


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The rows of weight at the indices in input.

    input: int64 or int32 of any shape; weight: (n, size); result: (*input.shape, size).
    Row padding_idx gets no gradient. max_norm first scales the selected rows of weight
    down to that norm_type-norm, in place. scale_grad_by_freq divides a row's gradient
    by how often its index occurs. sparse has no effect: gradients are dense. Raises
    IndexError for an index that is not from 0 to n - 1; on a GPU, AcceleratorError at
    the next synchronization.

    >>> weight = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    >>> nn.functional.embedding(torch.tensor([1, 0]), weight)
    tensor([[2., 3.],
            [0., 1.]])
    """
    row = -1 if padding_idx is None else padding_row(padding_idx, weight.shape[0])
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    return _C.embedding(weight, input, row, scale_grad_by_freq, sparse)


def padding_row(index: int, rows: int) -> int:
    if not -rows <= index < rows:
        raise AssertionError(
            f"Padding_idx must be within num_embeddings: {index} is not in "
            f"{-rows} to {rows - 1}"
        )
    return index % rows


@no_grad()
def _shorten(weight: Any, input: Any, max_norm: float, norm_type: float) -> None:
    # A row that is selected twice is written twice, with the same values.
    chosen = input.reshape(-1)
    rows = _C.embedding(weight, chosen)
    norms = rows.double().norm(norm_type, 1, keepdim=True)
    factors = _C.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
    weight.index_copy_(0, chosen, rows * factors.to(weight.dtype))
