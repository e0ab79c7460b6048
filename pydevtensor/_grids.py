"""Tensors that enumerate: pairs and choices of elements, positions, powers.

Their signatures, docstrings and the checks of their arguments' types are in
csrc/python/functions/composed.def. Sizes are known beforehand, so nothing waits for a GPU.
"""

from math import comb

from pydevtensor import _C


def _vector(function, x):
    if x.dim() != 1:
        raise RuntimeError(
            f"{function}(): a Tensor has the shape {tuple(x.shape)}; give vectors, "
            "Tensors of one dimension"
        )


def _repeated(counts, first, total):
    """For i = 0, 1, ..., counts[i] times: i, and first[i], first[i] + 1, ...

    total is the sum of counts.
    """
    outer = counts.repeat_interleave(output_size=total)
    starts = counts.cumsum(0) - counts - first
    inner = _C.arange(total, device=counts.device) - starts.index_select(0, outer)
    return outer, inner


# --- shapes


def broadcast_shapes(shapes):
    whole: list[int] = []
    for given in shapes:
        shape = [given] if isinstance(given, int) else list(given)
        for size in shape:
            if not isinstance(size, int):
                raise TypeError(
                    f"broadcast_shapes(): {given!r} is no shape; give ints or tuples "
                    "of ints"
                )
            if size < 0:
                raise ValueError(
                    f"broadcast_shapes(): {given!r} has a negative size; give 0 or more"
                )
        whole = [1] * (len(shape) - len(whole)) + whole
        for place in range(-len(shape), 0):
            if whole[place] == 1:
                whole[place] = shape[place]
            elif shape[place] not in (1, whole[place]):
                raise RuntimeError(
                    f"broadcast_shapes(): {given!r} does not broadcast to {whole}, "
                    "what those before it make; give sizes that are the same or 1"
                )
    return _C.Size(whole)


# --- joins


def block_diag(tensors):
    if not tensors:
        return _C.zeros(1, 0)
    blocks, dtype = [], tensors[0].dtype
    for place, each in enumerate(tensors):
        if each.dim() > 2:
            raise RuntimeError(
                f"block_diag(): Tensor {place} has the shape {tuple(each.shape)}; give "
                "at most 2 dimensions"
            )
        if each.device != tensors[0].device:
            raise RuntimeError(
                f"block_diag(): Tensor {place} is on {each.device} and the first on "
                f"{tensors[0].device}; bring them to one device with .to()"
            )
        dtype = _C.promote_types(dtype, each.dtype)
        blocks.append(each if each.dim() == 2 else each.reshape(1, -1))
    rows, columns = (sum(block.shape[d] for block in blocks) for d in (0, 1))
    whole = tensors[0].new_zeros(rows, columns, dtype=dtype)
    row = column = 0
    for block in blocks:
        n, m = block.shape
        whole[row : row + n, column : column + m] = block
        row, column = row + n, column + m
    return whole


def cartesian_prod(tensors):
    if not tensors:
        raise RuntimeError("cartesian_prod(): no Tensors were given; give at least one")
    for each in tensors:
        _vector("cartesian_prod", each)
        if each.dtype != tensors[0].dtype:
            raise RuntimeError(
                f"cartesian_prod(): the Tensors are of {tensors[0].dtype} and "
                f"{each.dtype}; convert one of them with .to()"
            )
    if len(tensors) == 1:
        return tensors[0]
    shape = [each.numel() for each in tensors]
    columns = []
    for place, each in enumerate(tensors):
        lying = each.reshape([-1 if d == place else 1 for d in range(len(shape))])
        columns.append(lying.expand(shape).reshape(-1))
    return _C.stack(columns, 1)


def combinations(input, r=2, with_replacement=False):
    _vector("combinations", input)
    if r < 0:
        raise RuntimeError(f"combinations(): r is {r}; give 0 or more")
    if r == 0:
        return input.new_empty(0)
    n, again = input.numel(), bool(with_replacement)
    if r > n and not (again and n):
        return input.new_empty(0, r)
    if (comb(n + r - 1, r) if again else comb(n, r)) * r >= 1 << 40:
        raise RuntimeError(
            f"combinations(): of {n} elements there are too many of {r}; choose fewer"
        )
    last = _C.arange(n, device=input.device)
    chosen = [last]
    for count in range(2, r + 1):
        total = comb(n + count - 1, count) if again else comb(n, count)
        first = last if again else last + 1
        outer, last = _repeated(n - first, first, total)
        chosen = [*(column.index_select(0, outer) for column in chosen), last]
    picked = input.index_select(0, _C.stack(chosen, 1).reshape(-1))
    return picked.reshape(last.numel(), r)


def vander(x, N=None, increasing=False):
    _vector("vander", x)
    columns = x.numel() if N is None else N
    if columns < 0:
        raise RuntimeError(f"vander(): N is {columns}; give 0 or more")
    kind = x if x.is_floating_point() else x.long()
    powers = kind.new_ones(x.numel(), min(columns, 1))
    if columns > 1:
        rest = kind.unsqueeze(1).expand(x.numel(), columns - 1).cumprod(1)
        powers = _C.cat([powers, rest], 1)
    return powers if increasing else powers.flip(1)


# --- positions


def _below(row, col, offset):
    """The positions of a matrix under the diagonal that offset names."""
    first = max(0, -offset)  # of the rows that the diagonal crosses
    end = max(first, min(row, col - offset))
    crossed = (first + end - 1 + 2 * offset) * (end - first) // 2
    return crossed + col * max(0, row - max(0, col - offset))


def _triangle(function, row, col, offset, upper, words):
    device, dtype = words["device"], words["dtype"] or _C.int64
    if row < 0 or col < 0:
        raise RuntimeError(f"{function}(): {row} by {col} is no shape; give 0 or more")
    if dtype.is_floating_point or dtype == _C.bool:
        raise NotImplementedError(
            f"{function}(): positions are not for {dtype}; give an integer type"
        )
    offset = max(-row, min(offset, col))
    edge = (_C.arange(row, device=device) + (offset + (0 if upper else 1))).clamp(
        0, col
    )
    counts = col - edge if upper else edge
    total = _below(row, col, offset + (not upper))
    if upper:
        total = row * col - total
    rows, columns = _repeated(counts, edge if upper else 0, total)
    made = _C.stack([rows, columns]).to(dtype)
    if words["pin_memory"]:
        made = made.pin_memory()
    return made.requires_grad_() if words["requires_grad"] else made


def _factory(
    dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    return {
        "dtype": dtype,
        "device": device,
        "requires_grad": requires_grad,
        "pin_memory": pin_memory,
    }


def tril_indices(row, col, offset=0, **words):
    return _triangle("tril_indices", row, col, offset, False, _factory(**words))


def triu_indices(row, col, offset=0, **words):
    return _triangle("triu_indices", row, col, offset, True, _factory(**words))


def unravel_index(indices, shape):
    if indices.is_floating_point() or indices.dtype == _C.bool:
        raise TypeError(
            f"unravel_index(): indices are of {indices.dtype}; give integers, see "
            ".long()"
        )
    sizes = [shape] if isinstance(shape, int) else shape
    if not isinstance(sizes, (tuple, list)) or not all(
        isinstance(size, int) for size in sizes
    ):
        raise TypeError(
            f"unravel_index(): shape is {shape!r}; give an int or a tuple of ints"
        )
    if any(size < 0 for size in sizes):
        raise ValueError(
            f"unravel_index(): {shape!r} has a negative size; give 0 or more"
        )
    indices = indices.long()
    coordinates = []
    step = 1
    for size in reversed(sizes):
        coordinates.append(indices.div(step, rounding_mode="floor") % size)
        step *= size
    return tuple(reversed(coordinates))
