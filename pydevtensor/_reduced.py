"""Many elements brought to places that an index says, and folded there.

Their signatures, docstrings and the checks of their arguments' types are in
csrc/python/functions/composed.def.
"""

from pydevtensor import _C
from pydevtensor._composed import _dimension
from pydevtensor.autograd import Function, no_grad

_WAYS = ("sum", "prod", "mean", "amax", "amin")
_NAMES = {"max": "amax", "min": "amin"}


def _scanned(values, starts, join, alone):
    """values, each joined with those before it down to its starts.

    In steps of 1, 2, 4, ... elements; alone, a number or a tensor, changes nothing.
    """
    n, step = values.numel(), 1
    places = _C.arange(n, device=values.device)
    while step < n:
        shifted = _C.cat([values[:step], values[:-step]])
        earlier = _C.where(places - step >= starts, shifted, alone)
        values = join(values, earlier)
        step *= 2
    return values


def _folded(x, dim, index, src, join, alone):
    """Of the elements of src that go to one place of x, all joined: in x's shape.

    What is where none goes is undefined.
    """
    places = index
    for d in range(x.dim() - 1, -1, -1):
        steps = 1
        for size in x.shape[d + 1 :]:
            steps *= size
        if d == dim:
            places = places + (steps - 1) * index
        else:
            lying = [-1 if e == d else 1 for e in range(x.dim())]
            offsets = _C.arange(index.shape[d], device=x.device) * steps
            places = places + offsets.reshape(lying)
    places, order = places.reshape(-1).sort(stable=True)
    values = src.reshape(-1).index_select(0, order)
    if not values.numel():
        return x
    edge = places[1:] != places[:-1]
    one = _C.ones(1, dtype=_C.bool, device=x.device)
    counts = _C.arange(places.numel(), device=x.device)
    starts = _C.where(_C.cat([one, edge]), counts, 0).cummax(0).values
    values = _scanned(values, starts, join, alone)
    # Of each place the last has all; the others go beyond the end.
    target = _C.where(_C.cat([edge, one]), places, x.numel())
    whole = values.new_zeros(x.numel() + 1).scatter(0, target, values)
    return whole[:-1].reshape(x.shape)


class _Extreme(Function):
    """The greatest or least; equal ones share the gradient."""

    @staticmethod
    def forward(ctx, x, src, dim, index, counts, greatest, include_self):
        worst = -float("inf") if greatest else float("inf")
        if not x.is_floating_point():
            lowest, highest = _limits(x.dtype)
            worst = lowest if greatest else highest
        join = _C.maximum if greatest else _C.minimum
        worst = x.new_full((), worst)
        folded = _folded(x, dim, index, src, join, worst)
        if include_self:
            folded = join(x, _C.where(counts > 0, folded, x))
        result = _C.where(counts > 0, folded, x)
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


def _limits(dtype):
    if dtype == _C.uint8:
        return 0, 255
    bits = 8 * dtype.itemsize - 1
    return -(1 << bits), (1 << bits) - 1


def _reduced(function, x, dim, index, src, reduce, include_self):
    """index and src have one shape, dim is 0 or more; all have as many dimensions."""
    if x.dtype == _C.bool:
        if reduce == "mean":
            raise NotImplementedError(
                f"{function}(): a mean is not for bools; convert them with .float()"
            )
        way = {"sum": "amax", "prod": "amin"}.get(reduce, reduce)
        bytes_of = (x.to(_C.uint8), src.to(_C.uint8))
        whole = _reduced(
            function, bytes_of[0], dim, index, bytes_of[1], way, include_self
        )
        return whole.bool()
    if reduce == "sum" and include_self:
        return x.scatter_add(dim, index, src)
    with no_grad():
        ones = _C.ones(index.shape, dtype=_C.int64, device=x.device)
        counts = _C.zeros(x.shape, dtype=_C.int64, device=x.device)
        counts = counts.scatter_add(dim, index, ones)
    if reduce in ("amax", "amin"):
        greatest = reduce == "amax"
        return _Extreme.apply(x, src, dim, index, counts, greatest, include_self)
    if reduce == "prod":
        folded = _folded(x, dim, index, src, _C.mul, x.new_ones(()))
        folded = _C.where(counts > 0, folded, 1)
        return x * folded if include_self else _C.where(counts > 0, folded, x)
    start = x if include_self else _C.where(counts > 0, 0, x)
    whole = start.scatter_add(dim, index, src)
    if reduce == "sum":
        return whole
    counts = counts + 1 if include_self else counts.clamp(min=1)
    if x.is_floating_point():
        return whole / counts
    return whole.div(counts, rounding_mode="floor").to(x.dtype)


def _check(function, x, index, src, reduce, ways):
    if reduce not in ways:
        raise RuntimeError(
            f"{function}(): reduce is {reduce!r}; give one of {', '.join(ways)}"
        )
    if index.dtype not in (_C.int64, _C.int32):
        raise RuntimeError(
            f"{function}(): index is of {index.dtype}; convert it with .long()"
        )
    if x.dtype != src.dtype:
        raise RuntimeError(
            f"{function}(): input is of {x.dtype} and what goes to it of {src.dtype}; "
            "convert one of them with .to()"
        )
    for other in (index, src):
        if other.device != x.device:
            raise RuntimeError(
                f"{function}(): input is on {x.device}, and another Tensor on "
                f"{other.device}; bring them to one device with .to()"
            )


def scatter_reduce(input, dim, index, src, reduce, include_self=True):
    reduce = _NAMES.get(reduce, reduce)  # which it takes too
    _check("scatter_reduce", input, index, src, reduce, _WAYS)
    if not index.numel():
        return input.clone()
    if input.dim() != index.dim() or input.dim() != src.dim():
        raise RuntimeError(
            f"scatter_reduce(): the shapes {tuple(input.shape)}, {tuple(index.shape)} "
            f"and {tuple(src.shape)} have different numbers of dimensions; give as many"
        )
    dim = _dimension("scatter_reduce", dim, input.dim())
    for d, n in enumerate(index.shape):
        if n > src.shape[d] or (d != dim and n > input.shape[d]):
            raise RuntimeError(
                f"scatter_reduce(): dimension {d} of index has size {n}, of input "
                f"{input.shape[d]} and of src {src.shape[d]}; index may not have more"
            )
    index = index.long()
    if not input.dim():
        whole = scatter_reduce(
            input.reshape(1), 0, index.reshape(1), src.reshape(1), reduce, include_self
        )
        return whole.reshape(())
    src = src[tuple(slice(n) for n in index.shape)]
    return _reduced("scatter_reduce", input, dim, index, src, reduce, include_self)


def index_reduce(input, dim, index, source, reduce, include_self=True):
    _check("index_reduce", input, index, source, reduce, _WAYS[1:])
    dim = _dimension("index_reduce", dim, input.dim())
    if index.dim() > 1:
        raise IndexError(
            f"index_reduce(): index has the shape {tuple(index.shape)}; give a vector"
        )
    wanted = list(input.shape)
    if wanted:
        wanted[dim] = index.numel()
    if list(source.shape) != wanted:
        raise RuntimeError(
            f"index_reduce(): source has the shape {tuple(source.shape)} and is to "
            f"have {tuple(wanted)}, input's with one place for each index"
        )
    lying = [-1 if d == dim else 1 for d in range(max(input.dim(), 1))]
    places = index.long().reshape(lying if wanted else ())
    return scatter_reduce(
        input, dim, places.expand(source.shape), source, reduce, include_self
    )


def put_(input, index, source, accumulate=False):
    if index.dtype != _C.int64:
        raise RuntimeError(
            f"put_(): index is of {index.dtype}; convert it with .long()"
        )
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"put_(): the Tensor is of {input.dtype} and source of {source.dtype}; "
            "convert one of them with .to()"
        )
    if index.numel() != source.numel():
        raise IndexError(
            f"put_(): index has {index.numel()} elements and source {source.numel()}; "
            "give as many"
        )
    if not index.numel():
        return input
    if not input.numel():
        raise IndexError(
            "put_(): the Tensor has no elements; give one that has some, or no indices"
        )
    flat = index.reshape(-1)
    if input.dim() < 2:
        where = [flat]
        target = input if input.dim() else input.unsqueeze(0)
    else:
        # Too great a position stays one in the first coordinate.
        flat = _C.where(flat < 0, flat + input.numel(), flat)
        where, target = [], input
        for size in reversed(input.shape[1:]):
            where.append(flat.remainder(size))
            flat = flat.div(size, rounding_mode="floor")
        low = -input.shape[0] - 1  # and too small a one, which is no place from the end
        where.append(_C.where(flat < 0, low, flat))
        where.reverse()
    target.index_put_(tuple(where), source.reshape(-1), accumulate)
    return input


def put(input, index, source, accumulate=False):
    return put_(input.clone(), index, source, accumulate)
