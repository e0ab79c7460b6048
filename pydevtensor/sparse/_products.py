"""Products with sparse matrices, and their derivatives.

The kernels are csrc/*/kernels/sparse.*: one for the product of a sparse and a dense
matrix, and one for the entries of a product that a pattern asks for, which is the
gradient of the values.
"""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.autograd import Function
from pydevtensor.sparse._pattern import Pattern


class _Product(Function):
    @staticmethod
    def forward(ctx: Any, values: Any, dense: Any, pattern: Pattern) -> Any:
        ctx.save_for_backward(values, dense)
        ctx.pattern = pattern
        starts, columns, order = pattern.by_rows()
        sorted_values = values if order is None else values[order]
        return _C._sparse_product(starts, columns, sorted_values, dense)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        values, dense = ctx.saved_tensors
        of_values = of_dense = None
        if ctx.needs_input_grad[0]:
            of_values = sampled(gradients[0], dense, ctx.pattern)
        if ctx.needs_input_grad[1]:
            of_dense = product(values, gradients[0], ctx.pattern.flipped())
        return of_values, of_dense, None


class _Sampled(Function):
    @staticmethod
    def forward(ctx: Any, left: Any, right: Any, pattern: Pattern) -> Any:
        ctx.save_for_backward(left, right)
        ctx.pattern = pattern
        rows, columns = pattern.indices
        return _C._sparse_sampled_product(rows, columns, left, right)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        left, right = ctx.saved_tensors
        of_left = product(gradients[0], right, ctx.pattern)
        return of_left, product(gradients[0], left, ctx.pattern.flipped()), None


def product(values: Any, dense: Any, pattern: Pattern) -> Any:
    """The product of a sparse matrix of values at a pattern and a dense matrix."""
    return _C._named(_Product.apply(values, dense, pattern), "SparseAddmmBackward0")


def sampled(left: Any, right: Any, pattern: Pattern) -> Any:
    """The entries of left @ right.mT at a pattern."""
    return _Sampled.apply(left, right, pattern)


def reduced(values: Any, dense: Any, pattern: Pattern, way: str) -> Any:
    """The mean, the greatest or the least of the products that product() adds."""
    rows, columns = pattern.indices
    parts = values.unsqueeze(1) * dense[columns]
    index = rows.unsqueeze(1).expand(parts.shape)
    empty = parts.new_zeros((pattern.shape[0], parts.shape[1]))
    return empty.scatter_reduce(0, index, parts, way, include_self=False)


def of_two(a: Any, b: Any) -> Any:
    """Values and indices of the product of two sparse matrices, of pattern and values.

    Each entry of a meets the entries of b's row that its column names.
    """
    (pa, va), (pb, vb) = a, b
    starts, columns, order = pb.by_rows()
    rows, inner = pa.indices
    counts = starts.diff()[inner]
    mine = _C.arange(pa.count, device=counts.device).repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    theirs = _C.arange(mine.shape[0], device=mine.device) - before[mine]
    theirs = theirs + starts[inner][mine]
    vb = vb if order is None else vb[order]
    return va[mine] * vb[theirs], _C.stack((rows[mine], columns[theirs]))
