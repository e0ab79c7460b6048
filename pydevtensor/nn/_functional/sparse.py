"""Rows of a table by index."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._autocast import casts
from pydevtensor._functions import function
from pydevtensor.autograd import Function, no_grad

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor, Text


@function()
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of weight at the indices in input, of shape (*input.shape, size).

    input is int64 or int32 of any shape. Raises IndexError for an index that is not
    from 0 to n - 1; on a GPU, AcceleratorError at the next synchronization. See also
    embedding_bag.

    weight               the table of rows, (n, size)
    padding_idx          this row gets no gradient; AssertionError if it is not a row
    max_norm, norm_type  first scale the selected rows of weight down to that norm, in
                         place
    scale_grad_by_freq   a row's gradient is divided by how often its index occurs
    sparse               weight's gradient is a sparse tensor of the selected rows; not
                         with scale_grad_by_freq

    >>> weight = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    >>> nn.functional.embedding(torch.tensor([1, 0]), weight)
    tensor([[2., 3.],
            [0., 1.]])
    """
    row = -1 if padding_idx is None else padding_row(padding_idx, weight.shape[0])
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    if sparse and weight.requires_grad and _C.is_grad_enabled():
        options = row, scale_grad_by_freq
        return _C._named(_Rows.apply(weight, input, *options), "EmbeddingBackward0")
    return _C.embedding(weight, input, row, scale_grad_by_freq)


class _Rows(Function):
    """The rows of a table whose gradient is sparse."""

    @staticmethod
    def forward(ctx: Any, weight: Any, input: Any, row: int, scaled: bool) -> Any:
        ctx.kept = input, row, scaled, weight.shape
        return _C.embedding(weight, input)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        input, row, scaled, shape = ctx.kept
        if scaled:
            raise RuntimeError(
                "embedding: scale_grad_by_freq does not go with sparse=True; leave one "
                "out"
            )
        chosen = input.reshape(-1).long()
        values = gradients[0].reshape(-1, shape[1])
        if row >= 0:
            kept = (chosen != row).nonzero().squeeze(1)
            chosen, values = chosen[kept], values[kept]
        where = chosen.unsqueeze(0)
        made = _C.sparse_coo_tensor(where, values, shape, check_invariants=False)
        return made, None, None, None


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


@function()
@casts(cuda="given")
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: Text = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The mean, sum or maximum of the rows of weight in each bag of indices.

    Raises ValueError for shapes that do not fit, RuntimeError for offsets that do not,
    and IndexError for an index that is not from 0 to n - 1; on a GPU, AcceleratorError
    at the next synchronization. Result: (B, size), 0 for an empty bag.

    input                a bag in each row, int64 or int32 of shape (B, L); or bags one
                         after the other, (N), with offsets
    weight               the table of rows, (n, size)
    offsets              where each bag of an input (N) begins, integers (B) that start
                         with 0 and do not decrease
    max_norm, norm_type  first scale the selected rows of weight down to that norm, in
                         place
    scale_grad_by_freq   a row's gradient is divided by how often its index occurs; not
                         with mode='max'
    mode                 'mean', 'sum' or 'max' of each column
    sparse               weight's gradient is a sparse tensor of the selected rows; not
                         with scale_grad_by_freq, or mode='max'
    per_sample_weights   factors of the rows, of input's shape, for mode='sum' only
    include_last_offset  offsets ends with one more, the end of the last bag
    padding_idx          indices of this row do not count

    >>> weight = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> index, offsets = torch.tensor([0, 1, 2]), torch.tensor([0, 2])
    >>> nn.functional.embedding_bag(index, weight, offsets)
    tensor([[1., 2.],
            [4., 5.]])
    """
    if weight.dtype in (_C.int64, _C.int32) and input.is_floating_point():
        input, weight = weight, input  # the order of old programs
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode is {mode!r}; give 'sum', 'mean' or 'max'")
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(
                f"per_sample_weights goes with mode='sum' only, not {mode!r}"
            )
        if per_sample_weights.shape != input.shape:
            raise ValueError(
                f"per_sample_weights has shape {[*per_sample_weights.shape]}; "
                f"give the input's, {[*input.shape]}"
            )
    for name, given in (("scale_grad_by_freq", scale_grad_by_freq), ("sparse", sparse)):
        if given and mode == "max":
            raise ValueError(f"{name} does not go with mode='max'; leave one out")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "an input of 2 dimensions has a bag in each row; leave offsets out"
            )
        bags = None
        count = input.shape[0]
    elif input.ndim == 1:
        bags, count = _bags(input, offsets, include_last_offset)
    else:
        raise ValueError(
            f"the input has {input.ndim} dimensions; give (B, L), or (N) with offsets"
        )
    row = None
    if padding_idx is not None:
        try:
            row = padding_row(padding_idx, weight.shape[0])
        except AssertionError as error:
            raise RuntimeError(*error.args) from None
    options = max_norm, norm_type, scale_grad_by_freq, sparse
    if mode == "max" and bags is not None:
        input, counts = _aligned(input, bags, count)
        bags = None
    else:
        counts = None
    if row is not None:
        counts = input != row if counts is None else counts & (input != row)
    if mode == "max":
        result = _maxima(input, weight, counts, options)
        return _C._named(result, "EmbeddingBagBackward0")
    rows = embedding(input, weight, row, *options)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    if counts is not None:
        rows = rows.masked_fill(~counts.unsqueeze(-1), 0)
    return _C._named(_bagged(rows, mode, counts, bags, count), "EmbeddingBagBackward0")


def _bags(input: Any, offsets: Any, ended: bool) -> tuple[Any, int]:
    """The number of each index's bag, and how many there are."""
    if offsets is None or offsets.ndim != 1:
        given = "None" if offsets is None else f"of {offsets.ndim} dimensions"
        raise ValueError(f"offsets is {given}; give a vector, one for each bag")
    if offsets.dtype not in (_C.int64, _C.int32):
        raise RuntimeError(f"offsets is of {offsets.dtype}; give integers")
    count, indices = offsets.numel() - ended, input.numel()
    if count < 0:
        raise RuntimeError("offsets is empty; give at least the end, 0")
    if offsets.device.type == "cpu" and offsets.numel():
        first, last = int(offsets[0]), int(offsets[-1])
        if first != 0 or last > indices or (offsets[1:] < offsets[:-1]).any():
            raise RuntimeError(
                f"offsets go from {first} to {last}; give numbers from 0 to "
                f"the {indices} of the input that do not decrease"
            )
    places = _C.arange(indices, dtype=offsets.dtype, device=input.device)
    return _C.searchsorted(offsets[:count].contiguous(), places, right=True) - 1, count


def _aligned(input: Any, bags: Any, count: int) -> tuple[Any, Any]:
    """The bags as rows of a matrix, and where it has an index."""
    sizes = _C.zeros(count, dtype=_C.int64, device=input.device)
    sizes = sizes.index_add(0, bags, _C.ones_like(bags))
    longest = int(sizes.max()) if count else 0
    inside = _C.arange(longest, device=input.device) < sizes.unsqueeze(1)
    matrix = _C.zeros((count, longest), dtype=input.dtype, device=input.device)
    return matrix.masked_scatter(inside, input), inside


def _maxima(input: Any, weight: Any, counts: Any, options: Any) -> Any:
    """The maxima over the rows of each bag, of those that count; else 0."""
    with no_grad():
        rows = embedding(input, weight, None, *options)
        if counts is not None:
            rows = rows.masked_fill(~counts.unsqueeze(-1), -math.inf)
    if not rows.shape[1]:
        return embedding(input, weight).sum(1)
    # An element of weight for each of the result, so that its gradient needs no more.
    best = weight.gather(0, input.long().gather(1, rows.max(1)[1]))
    if counts is not None:
        best = best.masked_fill(~counts.any(1, keepdim=True), 0)
    return best


def _bagged(rows: Any, mode: str, counts: Any, bags: Any, count: int) -> Any:
    """The rows of each bag as one; those without `counts` change nothing."""
    size = rows.shape[-1]
    if bags is None:
        result = rows.sum(1)
    else:
        result = rows.new_zeros((count, size)).index_add(0, bags, rows)
    if mode == "sum":
        return result
    ones = _C.ones(rows.shape[:-1], dtype=result.dtype, device=result.device)
    if counts is not None:
        ones = counts.to(result.dtype)
    if bags is None:
        sizes = ones.sum(1)
    else:
        sizes = result.new_zeros(count).index_add(0, bags, ones)
    return result / sizes.clamp_min(1).unsqueeze(1)
