"""Functions that give a sparse tensor another shape, or parts of it."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from pydevtensor import _C
from pydevtensor.sparse._calls import function, is_sparse, matmul
from pydevtensor.sparse._pattern import Pattern
from pydevtensor.sparse._tensor import SparseTensor, absent


@function("t")
def t(input: Any) -> Any:
    if input.dim() != 2:
        raise RuntimeError(f"t(): {input.dim()} dimensions; give a matrix")
    return transpose(input, 0, 1)


@function("transpose", "swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    order = list(range(input.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return permute(input, order)


@function("permute")
def permute(input: Any, *dims: Any) -> Any:
    order = [d % input.dim() for d in (dims[0] if len(dims) == 1 else dims)]
    if sorted(order) != [*range(input.dim())]:
        raise RuntimeError(f"permute(): {dims} does not order {input.dim()} dimensions")
    if order == [1, 0] and not input.dense_dim():
        return input._like(
            _C._named(input._data, "TBackward0"), input._pattern.flipped()
        )
    k = input.sparse_dim()
    if not input.is_sparse or sorted(order[:k]) != [*range(k)]:
        raise absent("permute")
    shape = [input.shape[d] for d in order[:k]]
    pattern = Pattern(shape, input._pattern.indices[order[:k]])
    values = input._data.permute(0, *(d - k + 1 for d in order[k:]))
    return SparseTensor(pattern, values)


@function("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> Any:
    """Sparse tensors one after the other along a dimension."""
    if not all(map(is_sparse, tensors)):
        raise RuntimeError(
            "cat(): some tensors are sparse and others are not; convert them with "
            "to_sparse(), or to_dense()"
        )
    first = tensors[0]
    dim = dim % first.dim()
    across = dim - first.sparse_dim() + 1
    ends = [*accumulate((each.shape[dim] for each in tensors), initial=0)]
    where, parts = [], []
    for each, at in zip(tensors, ends, strict=False):
        indices, values = each.to_sparse()._pattern.indices, each._data
        if across > 0:
            before, after = list(values.shape), list(values.shape)
            before[across], after[across] = at, ends[-1] - at - each.shape[dim]
            parts_of = values.new_zeros(before), values, values.new_zeros(after)
            values = _C.cat(parts_of, across)
        else:
            indices = indices.clone()
            indices[dim] += at
        where.append(indices)
        parts.append(values)
    shape = list(first._pattern.shape)
    if across <= 0:
        shape[dim] = ends[-1]
    return SparseTensor(Pattern(shape, _C.cat(where, 1)), _C.cat(parts))


@function("stack")
def stack(tensors: Any, dim: int = 0) -> Any:
    """Sparse tensors of one shape along a new dimension."""
    if {(tuple(x.shape), x.is_sparse) for x in tensors} != {
        (tuple(tensors[0].shape), True)
    }:
        raise RuntimeError("stack(): give sparse COO tensors of one shape")
    dim = dim % (tensors[0].dim() + 1)
    return cat([unsqueeze(each, dim) for each in tensors], dim)


@function("hstack", "column_stack")
def hstack(tensors: Any) -> Any:
    return cat(tensors, 1 if tensors[0].dim() > 1 else 0)


@function("vstack", "row_stack")
def vstack(tensors: Any) -> Any:
    return cat([x if x.dim() > 1 else unsqueeze(x, 0) for x in tensors])


@function("unsqueeze")
def unsqueeze(input: Any, dim: int) -> Any:
    """A new dimension of size 1, which is sparse before and after sparse ones."""
    dim, k = dim % (input.dim() + 1), input.sparse_dim()
    if not input.is_sparse:
        raise absent("unsqueeze")
    if dim > k:
        return input._like(input._data.unsqueeze(dim - k + 1))
    indices, shape = input._pattern.indices, list(input._pattern.shape)
    shape.insert(dim, 1)
    parts = indices[:dim], indices.new_zeros((1, indices.shape[1])), indices[dim:]
    coalesced = input._pattern.coalesced
    return SparseTensor(Pattern(shape, _C.cat(parts), coalesced), input._data)


@function("narrow_copy")
def narrow_copy(input: Any, dim: int, start: int, length: int) -> Any:
    """The part from start on along a dimension."""
    dim, k = dim % input.dim(), input.sparse_dim()
    if not input.is_sparse or not 0 <= start <= start + length <= input.shape[dim]:
        raise RuntimeError(
            f"narrow_copy(): {length} from {start} on are not in dimension {dim} of "
            f"{tuple(input.shape)}, or this is not COO; give a part of a COO tensor"
        )
    if dim >= k:
        return input._like(input._data.narrow(dim - k + 1, start, length))
    indices, shape = input._pattern.indices, list(input._pattern.shape)
    inside = (indices[dim] >= start) & (indices[dim] < start + length)
    mine = inside.nonzero()[:, 0]
    indices, shape[dim] = indices[:, mine], length
    indices[dim] -= start
    found = Pattern(shape, indices, input._pattern.coalesced)
    return SparseTensor(found, input._data[mine])


@function("index_select")
def index_select(input: Any, dim: int, index: Any) -> Any:
    """Rows or columns of a sparse matrix, as the product with ones at an index."""
    if input.dim() != 2 or input.dense_dim():
        raise absent("index_select")
    if dim % 2:
        return t(index_select(t(input), 0, index)).coalesce()
    if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < len(input):
        raise IndexError(f"index_select(): give indices from 0 to {len(input) - 1}")
    numbers = _C.arange(index.shape[0], device=index.device)
    pattern = Pattern((index.shape[0], len(input)), _C.stack((numbers, index)))
    ones = _C.ones(index.shape[0], dtype=input.dtype, device=index.device)
    return matmul(SparseTensor(pattern, ones), input)


@function("select")
def select(input: Any, dim: int, index: int) -> Any:
    """The part that has this index along a sparse dimension."""
    dim, size = dim % input.dim(), input.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"index {index} is out of range for dimension {dim} of size {size}"
        )
    if dim >= input.sparse_dim():
        raise absent("select")
    rows = input.to_sparse()
    mine = (rows._pattern.indices[dim] == index % size).nonzero()[:, 0]
    left = [d for d in range(input.sparse_dim()) if d != dim]
    pattern = rows._pattern.chosen(mine)
    if not left:
        return rows._data[mine].sum(0)
    shape = [pattern.shape[d] for d in left]
    coalesced = rows._pattern.coalesced or pattern.count < 2
    found = Pattern(shape, pattern.indices[left], coalesced)
    return SparseTensor(found, rows._data[mine])


def subscript(self: Any, key: Any) -> Any:
    keys = key if isinstance(key, tuple) else (key,)
    whole = all(k == slice(None) for k in keys if isinstance(k, slice))
    if not whole or not all(isinstance(k, (int, slice)) for k in keys):
        raise NotImplementedError(
            f"a sparse tensor cannot be indexed by {key!r}; give ints and `:`, or use "
            "index_select() or to_dense()"
        )
    if len(keys) > self.dim():
        raise IndexError(f"{len(keys)} indices for a tensor of {self.dim()} dimensions")
    dim = 0
    for each in keys:
        if isinstance(each, slice):
            dim += 1
        else:
            self = self[each] if not is_sparse(self) else select(self, dim, each)
    return self


def of_diagonals(diagonals: Any, offsets: Any, shape: tuple[int, ...]) -> Any:
    """The matrix whose diagonals at these offsets are the rows of `diagonals`."""
    rows = diagonals if diagonals.dim() > 1 else diagonals.unsqueeze(0)
    given = offsets.reshape(-1).tolist()
    if len(given) != rows.shape[0] or len({*given}) != len(given) or len(shape) != 2:
        raise RuntimeError(
            f"spdiags(): {rows.shape[0]} diagonals, the offsets {given} and the shape "
            f"{shape}; give another offset for each diagonal, and two sizes"
        )
    where, values = [], []
    for row, offset in zip(rows, given, strict=True):
        first, end = max(offset, 0), min(shape[1], shape[0] + offset, row.shape[0])
        columns = _C.arange(first, max(end, first), device=row.device)
        where.append(_C.stack((columns - offset, columns)))
        values.append(row[first : max(end, first)])
    return SparseTensor(Pattern(shape, _C.cat(where, 1)), _C.cat(values))


for _name, _function in {"__getitem__": subscript}.items():
    setattr(SparseTensor, _name, _function)
