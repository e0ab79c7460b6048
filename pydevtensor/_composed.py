"""Functions that are others put together, with the gradients of what they are made of.

Their signatures, docstrings and the checks of their arguments' types are in
csrc/python/functions/composed.c.
"""

from pydevtensor import _C


def _shape(x):
    return tuple(x.shape)


def _vector(function, name, x):
    if x.dim() != 1:
        raise RuntimeError(
            f"{function}(): {name} has the shape {_shape(x)}; give a Tensor of one "
            "dimension"
        )


def _same_dtype(function, a, b):
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{function}(): the Tensors are of {a.dtype} and {b.dtype}; convert one of "
            "them with .to()"
        )


# --- products


def outer(input, vec2):
    _vector("outer", "input", input)
    _vector("outer", "vec2", vec2)
    return input.unsqueeze(1) * vec2


def inner(input, other):
    _same_dtype("inner", input, other)
    if not input.dim() or not other.dim():
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner(): the last dimensions of {_shape(input)} and {_shape(other)} "
            "differ; give Tensors whose last sizes are the same"
        )
    return tensordot(input, other, ([-1], [-1]))


def vdot(input, other):
    return input.dot(other)


def kron(input, other):
    ndim = max(input.dim(), other.dim())
    a = input.reshape((1,) * (ndim - input.dim()) + _shape(input))
    b = other.reshape((1,) * (ndim - other.dim()) + _shape(other))
    pairs = [size for n in a.shape for size in (n, 1)]
    others = [size for m in b.shape for size in (1, m)]
    product = a.reshape(pairs) * b.reshape(others)
    return product.reshape([n * m for n, m in zip(a.shape, b.shape, strict=True)])


def cross(input, other, dim=None):
    if input.dim() != other.dim():
        raise RuntimeError(
            f"cross(): the shapes {_shape(input)} and {_shape(other)} have different "
            "numbers of dimensions; add some with unsqueeze()"
        )
    _same_dtype("cross", input, other)
    if dim is None:
        threes = [d for d, size in enumerate(input.shape) if size == 3]
        if not threes:
            raise RuntimeError(
                f"cross(): no dimension of {_shape(input)} has size 3; give vectors of "
                "3 elements"
            )
        dim = threes[0]
    if input.size(dim) != 3 or other.size(dim) != 3:
        raise RuntimeError(
            f"cross(): dimension {dim} of {_shape(input)} and {_shape(other)} has to "
            "have size 3 in both; give vectors of 3 elements"
        )
    a, b = input.unbind(dim), other.unbind(dim)
    parts = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return _C.stack(parts, dim if dim >= 0 else dim + parts[0].dim() + 1)


def matrix_power(input, n):
    if input.dim() < 2:
        raise RuntimeError(
            f"matrix_power(): input has the shape {_shape(input)}; give a matrix or a "
            "batch of them"
        )
    rows, columns = input.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"matrix_power(): the matrices are {rows} by {columns}; give square ones"
        )
    if n < 0:
        raise NotImplementedError(
            f"matrix_power(): n is {n}, and inverses are not there yet; give 0 or more"
        )
    if n == 0:
        one = _C.eye(rows, dtype=input.dtype, device=input.device)
        return one.expand(input.shape).clone()
    result, square = None, input
    while True:
        if n & 1:
            result = square if result is None else result @ square
        n >>= 1
        if not n:
            return result.clone() if result is input else result
        square = square @ square


def _numbers(dims):
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist()
    return [dims] if isinstance(dims, int) else list(dims)


def tensordot(a, b, dims=2):
    _same_dtype("tensordot", a, b)
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int) and not isinstance(dims, bool):
        if dims < 0 or dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot(): dims is {dims}; give 0 to {min(a.dim(), b.dim())}, the "
                "dimensions that both have"
            )
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    elif isinstance(dims, (tuple, list)) and len(dims) == 2:
        left, right = _numbers(dims[0]), _numbers(dims[1])
    else:
        raise RuntimeError(
            f"tensordot(): dims is {dims!r}; give an int or two lists of dimensions"
        )
    if len(left) != len(right):
        raise RuntimeError(
            f"tensordot(): dims names {len(left)} dimensions of a and {len(right)} of "
            "b; give as many of both"
        )
    left = [_wrap("tensordot", d, a.dim()) for d in left]
    right = [_wrap("tensordot", d, b.dim()) for d in right]
    for chosen in (left, right):
        if len(set(chosen)) != len(chosen):
            raise RuntimeError(
                f"tensordot(): dims names one twice, in {chosen}; name each once"
            )
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j]:
            if 1 not in (a.shape[i], b.shape[j]):
                raise RuntimeError(
                    f"tensordot(): dimension {i} of a has size {a.shape[i]} and {j} of "
                    f"b {b.shape[j]}; they are summed together and have to be the same"
                )
            a = a.sum(i, keepdim=True) if b.shape[j] == 1 else a
            b = b.sum(j, keepdim=True) if a.shape[i] == 1 else b
    rows = [d for d in range(a.dim()) if d not in left]
    columns = [d for d in range(b.dim()) if d not in right]
    summed = 1
    for d in left:
        summed *= a.shape[d]
    shape = [a.shape[d] for d in rows] + [b.shape[d] for d in columns]
    n = m = 1
    for d in rows:
        n *= a.shape[d]
    for d in columns:
        m *= b.shape[d]
    first = a.permute(rows + left).reshape(n, summed)
    second = b.permute(right + columns).reshape(summed, m)
    return (first @ second).reshape(shape)


def _wrap(function, dim, ndim):
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise TypeError(f"{function}(): {dim!r} is no dimension; give ints")
    return _dimension(function, dim, ndim)


def _dimension(function, dim, ndim):
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(
            f"{function}(): there is no dimension {dim}; give {-bound} to {bound - 1}"
        )
    return dim % bound


def _added(function, input, product, beta, alpha):
    try:
        input.expand(product.shape)
    except RuntimeError:
        raise RuntimeError(
            f"{function}(): input of shape {_shape(input)} does not expand to the "
            f"product's {_shape(product)}; give one that broadcasts to it"
        ) from None
    if alpha != 1:
        product = product * alpha
    if beta == 0:  # what input holds, NaN included, does not count
        return product
    return (input if beta == 1 else input * beta) + product


def addmv(input, mat, vec, *, beta=1, alpha=1):
    return _added("addmv", input, mat.mv(vec), beta, alpha)


def addr(input, vec1, vec2, *, beta=1, alpha=1):
    _vector("addr", "vec1", vec1)
    _vector("addr", "vec2", vec2)
    return _added("addr", input, vec1.unsqueeze(1) * vec2, beta, alpha)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    return _added("addbmm", input, batch1.bmm(batch2).sum(0), beta, alpha)


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    return _added("baddbmm", input, batch1.bmm(batch2), beta, alpha)


def chain_matmul(*matrices, out=None):
    """The product of several matrices, in the order that costs the least.

    >>> import pydevtensor as torch
    >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
    from pydevtensor.linalg import multi_dot

    if not matrices:
        raise RuntimeError("chain_matmul(): no matrices were given; give at least one")
    if len(matrices) == 1:
        return matrices[0]
    for place, each in enumerate(matrices):
        if each.dim() != 2:
            raise RuntimeError(
                f"chain_matmul(): argument {place} has the shape {_shape(each)}; give "
                "matrices"
            )
    return multi_dot(matrices, out=out)


# --- distances


def dist(input, other, p=2):
    difference = input - other
    if not difference.is_floating_point():
        raise RuntimeError(
            f"dist(): the difference is of {difference.dtype}; convert the Tensors "
            "with .float()"
        )
    return difference.norm(p)


def cdist(x1, x2, p=2.0, compute_mode=None):
    for name, x in (("x1", x1), ("x2", x2)):
        if not x.is_floating_point():
            raise RuntimeError(
                f"cdist(): {name} is of {x.dtype}; convert it with .float()"
            )
        if x.dim() < 2:
            raise RuntimeError(
                f"cdist(): {name} has the shape {_shape(x)}; give [..., rows, columns]"
            )
    _same_dtype("cdist", x1, x2)
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"cdist(): x1 has {x1.shape[-1]} columns and x2 {x2.shape[-1]}; give as "
            "many in both"
        )
    if not p >= 0:
        raise RuntimeError(f"cdist(): p is {p}; give 0 or more")
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, dim=-1)


# --- choosing


def take_along_dim(input, indices, dim=None):
    if indices.dtype != _C.int64:
        raise RuntimeError(
            f"take_along_dim(): indices are of {indices.dtype}; convert by .long()"
        )
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    if input.dim() != indices.dim():
        raise RuntimeError(
            f"take_along_dim(): the shapes {_shape(input)} and {_shape(indices)} have "
            "different numbers of dimensions; give as many in both"
        )
    dim = _wrap("take_along_dim", dim, input.dim())
    wide, chosen = list(input.shape), list(indices.shape)
    for d, (n, m) in enumerate(zip(input.shape, indices.shape, strict=True)):
        if d != dim and n != m:
            if 1 not in (n, m):
                raise RuntimeError(
                    f"take_along_dim(): dimension {d} has size {n} in input and {m} in "
                    "indices; they have to broadcast"
                )
            wide[d] = chosen[d] = m if n == 1 else n
    return input.expand(wide).gather(dim, indices.expand(chosen))


def _mask(function, mask):
    if mask.dtype != _C.bool:
        raise RuntimeError(
            f"{function}(): mask is of {mask.dtype}; give bools, such as x > 0"
        )


def masked_select(input, mask):
    _mask("masked_select", mask)
    shape = _broadcast(input, mask)
    return input.expand(shape)[mask.expand(shape)].reshape(-1)


def _broadcast(a, b):
    shape = []
    ndim = max(a.dim(), b.dim())
    first = (1,) * (ndim - a.dim()) + _shape(a)
    second = (1,) * (ndim - b.dim()) + _shape(b)
    for n, m in zip(first, second, strict=True):
        if n != m and 1 not in (n, m):
            raise RuntimeError(
                f"the shapes {_shape(a)} and {_shape(b)} do not broadcast; give sizes "
                "that are the same or 1"
            )
        shape.append(m if n == 1 else n)
    return shape


def argwhere(input):
    return input.nonzero()


def masked_scatter_(input, mask, source):
    _mask("masked_scatter", mask)
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"masked_scatter(): input is of {input.dtype} and source of "
            f"{source.dtype}; convert one of them with .to()"
        )
    places = mask.expand(input.shape).nonzero(as_tuple=True)
    count = places[0].numel()
    if source.numel() < count:
        raise RuntimeError(
            f"masked_scatter(): mask holds {count} times, and source has "
            f"{source.numel()} elements; give at least as many"
        )
    values = source.reshape(-1)[:count]
    if input.dim():
        return input.index_put_(places, values)
    return input.copy_(values[0]) if count else input


def masked_scatter(input, mask, source):
    _mask("masked_scatter", mask)
    shape = _broadcast(input, mask)
    return masked_scatter_(input.expand(shape).clone(), mask, source)


def index_put(input, indices, values, accumulate=False):
    return input.clone().index_put_(indices, values, accumulate)
