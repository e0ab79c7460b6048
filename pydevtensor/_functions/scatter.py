"""Copies of a tensor with elements replaced or reduced at given positions."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._autocast import casts
from pydevtensor._functions import function, method
from pydevtensor._functions.checks import at_least, bool_mask, dimension, same_dtype
from pydevtensor._functions.dtypes import iinfo
from pydevtensor.autograd import Function

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydevtensor._functions.types import Sizes, Tensor


_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
_NAMES = {"max": "amax", "min": "amin"}


def _scan(values, starts, join, identity):
    """Segmented scan: each value joined with those before it from its start on.

    identity leaves a value unchanged when joined with it.
    """
    n, step = values.numel(), 1
    places = _C.arange(n, device=values.device)
    while step < n:
        shifted = _C.cat([values[:step], values[:-step]])
        earlier = _C.where(places - step >= starts, shifted, identity)
        values = join(values, earlier)
        step *= 2
    return values


def _places(x, dim, index):
    """The flat positions in x that index means, in row-major order."""
    places = _C.arange(x.numel(), device=x.device).reshape(x.shape).gather(dim, index)
    return places.reshape(-1)


def _last_greatest(x, dim, index, src):
    """_joined() by maximum on the CPU, where the last value written stays."""
    values, order = src.reshape(-1).sort(stable=True)
    places = _places(x, dim, index).index_select(0, order)
    return x.reshape(-1).scatter(0, places, values).reshape(x.shape)


def _reversed(x):
    """Numbers in reverse order: -x without an overflow. NaN remains the greatest."""
    return -x if x.is_floating_point() else ~x


def _joined(x, dim, index, src, join, identity):
    """Join all elements of src with the same position in x, in a tensor of x's shape.

    Positions without elements are undefined.
    """
    places, order = _places(x, dim, index).sort(stable=True)
    values = src.reshape(-1).index_select(0, order)
    if not values.numel():
        return x
    edge = places[1:] != places[:-1]
    one = _C.ones(1, dtype=_C.bool, device=x.device)
    counts = _C.arange(places.numel(), device=x.device)
    starts = _C.where(_C.cat([one, edge]), counts, 0).cummax(0).values
    values = _scan(values, starts, join, identity)
    # The last value of each position is complete; the others are dropped at the end.
    target = _C.where(_C.cat([edge, one]), places, x.numel())
    whole = values.new_zeros(x.numel() + 1).scatter(0, target, values)
    return whole[:-1].reshape(x.shape)


class _Extreme(Function):
    """Maximum or minimum; equal elements share the gradient."""

    @staticmethod
    def forward(ctx, x, src, dim, index, counts, maximum, include_self):
        join = _C.maximum if maximum else _C.minimum
        if x.device.type == "cpu":
            joined = _last_greatest(x, dim, index, src if maximum else _reversed(src))
            joined = joined if maximum else _reversed(joined)
        else:
            limits = (-inf, inf)
            if not x.is_floating_point():
                limits = (iinfo(x.dtype).min, iinfo(x.dtype).max)
            identity = x.new_full((), limits[not maximum])
            joined = _joined(x, dim, index, src, join, identity)
        if include_self:
            joined = join(x, _C.where(counts > 0, joined, x))
        result = _C.where(counts > 0, joined, x)
        ctx.save_for_backward(x, src, index, counts, result)
        ctx.dim, ctx.include_self = dim, include_self
        return result

    @staticmethod
    def backward(ctx, gradient):
        x, src, index, counts, result = ctx.saved_tensors
        of_self = x == result
        if not ctx.include_self:
            of_self = of_self & (counts == 0)
        of_src = src == result.gather(ctx.dim, index)
        sharing = of_self.long().scatter_add(ctx.dim, index, of_src.long())
        share = gradient / sharing.clamp(min=1)
        for_self = of_self * share
        if not ctx.include_self:
            for_self = _C.where(counts > 0, 0, for_self)
        for_src = of_src * share.gather(ctx.dim, index)
        return for_self, for_src, None, None, None, None, None


def _reduced(x, dim, index, src, reduce, include_self):
    """Requires index and src of one shape."""
    if x.dtype == _C.bool:
        if reduce == "mean":
            raise NotImplementedError(
                "mean is not defined for bools; convert with .float()"
            )
        reduce = {"sum": "amax", "prod": "amin"}.get(reduce, reduce)
        x, src = x.to(_C.uint8), src.to(_C.uint8)
        return _reduced(x, dim, index, src, reduce, include_self).bool()
    if reduce == "sum" and include_self:
        return x.scatter_add(dim, index, src)
    counts = _C.zeros(x.shape, dtype=_C.int64, device=x.device)
    counts = counts.scatter_add(dim, index, _C.ones_like(index, dtype=_C.int64))
    if reduce in ("amax", "amin"):
        maximum = reduce == "amax"
        return _Extreme.apply(x, src, dim, index, counts, maximum, include_self)
    if reduce == "prod":
        records = _C.is_grad_enabled() and (x.requires_grad or src.requires_grad)
        if x.device.type == "cpu" and not records and not x.is_complex():
            start = x if include_self else _C.where(counts > 0, 1, x)
            return start.scatter(dim, index, src, reduce="multiply")
        joined = _joined(x, dim, index, src, _C.mul, x.new_ones(()))
        joined = _C.where(counts > 0, joined, 1)
        return x * joined if include_self else _C.where(counts > 0, joined, x)
    start = x if include_self else _C.where(counts > 0, 0, x)
    whole = start.scatter_add(dim, index, src)
    if reduce == "sum":
        return whole
    counts = counts + 1 if include_self else counts.clamp(min=1)
    if x.is_floating_point() or x.is_complex():
        return whole / counts
    return whole.div(counts, rounding_mode="floor").to(x.dtype)


def _one_of(reductions, reduce):
    if reduce not in reductions:
        raise RuntimeError(f"reduce is {reduce!r}; give one of {', '.join(reductions)}")


def _replaced(copy, part, src):
    """copy with src in place of part, a view of it."""
    if part.shape != src.shape:
        raise RuntimeError(
            f"src has the shape {tuple(src.shape)} and replaces elements of shape "
            f"{tuple(part.shape)}; give a src of that shape"
        )
    part.copy_(src)
    return copy


@function(method=True)
@casts(cuda="widest")
def index_put(
    input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Copy of input with values at the positions given by a tuple of index tensors.

    accumulate=True adds them to the elements there.

    indices  for each of input's first dimensions an index Tensor, or bools; they
             broadcast
    values   a Tensor that broadcasts to the shape of the positions, of input's type

    See also put(), by flat indices, and index_copy().

    >>> torch.zeros(3).index_put((torch.tensor([0, 2]),), torch.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    return input.clone().index_put_(indices, values, accumulate)


@function(method=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Copy of input with elements of source, in order, where mask is True.

    >>> torch.zeros(3).masked_scatter(torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """  # noqa: E501
    bool_mask(mask)
    input, mask = _C.broadcast_tensors(input, mask)
    return masked_scatter_(input.clone(), mask, source)


@method()
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """In-place masked_scatter().

    >>> x = torch.zeros(3)
    >>> x.masked_scatter_(torch.tensor([True, False, True]), torch.tensor([1.0, 2.0])) is x
    True
    """  # noqa: E501
    bool_mask(mask)
    same_dtype(input, source)
    mask = mask.expand(input.shape)
    count = int(mask.sum())
    if source.numel() < count:
        raise RuntimeError(
            f"mask has {count} True elements, and source {source.numel()} elements; "
            "give at least as many"
        )
    values = source.reshape(-1)[:count]
    if input.dim():
        return input.index_put_((mask,), values)
    return input.copy_(values[0]) if count else input


@function(method=True)
def put(
    input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False
) -> Tensor:
    """Copy of input with the elements of source at flat indices.

    accumulate=True adds them to the elements there. index is int64 and source has
    input's dtype (RuntimeError).

    >>> torch.zeros(2, 2).put(torch.tensor([1, 2]), torch.tensor([5.0, 6.0]))
    tensor([[0., 5.],
            [6., 0.]])
    """
    return put_(input.clone(), index, source, accumulate)


@method()
def put_(
    input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False
) -> Tensor:
    """In-place put().

    >>> x = torch.zeros(2, 2)
    >>> x.put_(torch.tensor([1, 2]), torch.tensor([5.0, 6.0])) is x
    True
    """
    if index.dtype != _C.int64:
        raise RuntimeError(f"index is of {index.dtype}; convert it with .long()")
    if index.numel() != source.numel():
        raise IndexError(
            f"index has {index.numel()} elements and source {source.numel()}; give as "
            "many"
        )
    if index.numel() and not input.numel():
        raise IndexError("the Tensor has no elements; give one that has some")
    places: tuple[Tensor, ...] = ()
    first = index.reshape(-1)
    for size in input.shape[:0:-1]:
        places = (first.remainder(size), *places)
        first = first.div(size, rounding_mode="floor")
    target = input if input.dim() else input.unsqueeze(0)
    target.index_put_((first, *places), source.reshape(-1), accumulate)
    return input


@function(method=True, out=True)
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Copy of input with src in place of input[start:end:step] along dim.

    src has the shape of the slice (RuntimeError).

    >>> torch.zeros(4).slice_scatter(torch.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    copy = input.clone()
    dim = dimension(input, dim)
    at_least(1, "step", step)
    part = copy[(slice(None),) * dim + (slice(start, end, step),)]
    return _replaced(copy, part, src)


@function(method=True, out=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Copy of input with src in place of input.select(dim, index).

    src has the shape of the slice (RuntimeError).

    >>> torch.zeros(2, 2).select_scatter(torch.tensor([1.0, 2.0]), 0, 1)
    tensor([[0., 0.],
            [1., 2.]])
    """
    copy = input.clone()
    return _replaced(copy, copy.select(dim, index), src)


@function(method=True, out=True)
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Copy of input with src in place of input.diagonal(offset, dim1, dim2).

    src has the shape of the diagonal (RuntimeError).

    >>> torch.zeros(2, 2).diagonal_scatter(torch.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    copy = input.clone()
    return _replaced(copy, copy.diagonal(offset, dim1, dim2), src)


@function(method=True, out=True)
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sizes,
    stride: Sizes,
    storage_offset: int | None = None,
) -> Tensor:
    """Copy of input with src in place of an as_strided() view.

    src has the shape of the view (RuntimeError).

    size, stride    of the view: one int for each dimension, in elements
    storage_offset  where it begins in memory, by default where input does

    >>> torch.zeros(4).as_strided_scatter(torch.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    # size and stride describe the memory, so all of it is copied, gaps included.
    place, steps = input.storage_offset(), input.stride()
    last = sum((n - 1) * step for n, step in zip(input.shape, steps, strict=True))
    reach = place + last + 1 if input.numel() else 0
    memory = input.as_strided((reach,), (1,), 0).clone()
    copy = memory.as_strided(input.shape, steps, place)
    offset = place if storage_offset is None else storage_offset
    return _replaced(copy, memory.as_strided(size, stride, offset), src)


@function(method=True, out=True, in_place=True)
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Copy of input with elements of src reduced into the positions given by index.

    reduce is 'sum', 'prod', 'mean', 'amax' or 'amin'. With include_self=False the
    reduction leaves out the elements of input. index has as many dimensions as input
    and src, and no more elements than src along each.

    dim  the dimension along which index counts

    See also scatter_add() and index_reduce().

    >>> x = torch.zeros(2)
    >>> x.scatter_reduce(0, torch.tensor([0, 0, 1]), torch.tensor([1.0, 5.0, 2.0]), "amax")
    tensor([5., 2.])
    """  # noqa: E501
    reduce = _NAMES.get(reduce, reduce)
    _one_of(_REDUCTIONS, reduce)
    same_dtype(input, src)
    if not index.numel():
        return input.clone()
    part = src
    if src.dim() == index.dim():
        part = src[tuple(slice(n) for n in index.shape)]
    if part.shape != index.shape:
        raise RuntimeError(
            f"src has the shape {tuple(src.shape)} and index {tuple(index.shape)}; "
            "give an index of no greater size along each dimension"
        )
    return _reduced(input, dim, index, part, reduce, include_self)


@function(method=True, out=True, in_place=True)
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Copy of input with slices of source reduced into the slices given by index.

    reduce is 'prod', 'mean', 'amax' or 'amin'. With include_self=False the reduction
    leaves out the elements of input. index is a vector.

    dim  the dimension along which index counts

    >>> x = torch.ones(2, 2)
    >>> x.index_reduce(0, torch.tensor([0, 0]), torch.full((2, 2), 3.0), "prod")
    tensor([[9., 9.],
            [1., 1.]])
    """
    _one_of(_REDUCTIONS[1:], reduce)
    if index.dim() > 1:
        raise IndexError(f"index has the shape {tuple(index.shape)}; give a vector")
    shape, along = list(input.shape), [1] * input.dim()
    if shape:
        dim = dimension(input, dim)
        shape[dim], along[dim] = index.numel(), -1
    if list(source.shape) != shape:
        raise RuntimeError(
            f"source has the shape {tuple(source.shape)}; give {tuple(shape)}, "
            "input's with one slice for each index"
        )
    places = index.reshape(along).expand(shape)
    return scatter_reduce(input, dim, places, source, reduce, include_self=include_self)
