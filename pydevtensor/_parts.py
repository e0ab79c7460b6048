"""Copies of a tensor with one part of it replaced, and parts copied.

Their signatures, docstrings and the checks of their arguments' types are in
csrc/python/functions/composed.def.
"""


def _replaced(function, copy, part, src):
    """copy, with src where part, a view of it, is."""
    if part.shape != src.shape:
        raise RuntimeError(
            f"{function}(): src has the shape {tuple(src.shape)}, and the part that it "
            f"is to replace {tuple(part.shape)}; give a src of that shape"
        )
    part.copy_(src)
    return copy


def narrow_copy(input, dim, start, length):
    part = input.narrow(dim, start, length)
    return part.clone() if part.is_contiguous() else part.contiguous()


def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    copy = input.clone()
    if not input.dim():
        raise IndexError(
            "slice_scatter(): input has no dimensions; give one that has some"
        )
    if step < 1:
        raise RuntimeError(f"slice_scatter(): step is {step}; give 1 or more")
    if not -input.dim() <= dim < input.dim():
        raise IndexError(
            f"slice_scatter(): there is no dimension {dim} in the shape "
            f"{tuple(input.shape)}; give {-input.dim()} to {input.dim() - 1}"
        )
    key = [slice(None)] * input.dim()
    key[dim] = slice(start, end, step)
    return _replaced("slice_scatter", copy, copy[tuple(key)], src)


def select_scatter(input, src, dim, index):
    copy = input.clone()
    return _replaced("select_scatter", copy, copy.select(dim, index), src)


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    copy = input.clone()
    part = copy.diagonal(offset, dim1, dim2)
    return _replaced("diagonal_scatter", copy, part, src)


def as_strided_scatter(input, src, size, stride, storage_offset=None):
    # Strides and offset count in the memory, so that is copied, gaps included.
    place, steps = input.storage_offset(), input.stride()
    reach = (
        place
        + 1
        + sum((n - 1) * step for n, step in zip(input.shape, steps, strict=True))
    )
    memory = input.as_strided((reach if input.numel() else 0,), (1,), 0).clone()
    copy = memory.as_strided(input.shape, steps, place)
    offset = place if storage_offset is None else storage_offset
    part = memory.as_strided(size, stride, offset)
    return _replaced("as_strided_scatter", copy, part, src)


def fill_diagonal_(input, fill_value, wrap=False):
    shape, steps = input.shape, input.stride()
    if input.dim() < 2:
        raise RuntimeError(
            f"fill_diagonal_(): the Tensor has the shape {tuple(shape)}; give at least "
            "2 dimensions"
        )
    if input.dim() > 2 and len(set(shape)) > 1:
        raise RuntimeError(
            f"fill_diagonal_(): the sizes in {tuple(shape)} differ; with more than 2 "
            "dimensions, give one whose sizes are all the same"
        )
    offset = input.storage_offset()
    rows, columns = shape[0], shape[-1]
    if wrap and input.dim() == 2 and rows > columns + 1 and columns:
        # After each columns + 1 rows the diagonal begins again.
        count = (rows - columns) // (columns + 1) + 1
        blocks = ((columns + 1) * steps[0], sum(steps))
        input.as_strided((count, columns), blocks, offset).fill_(fill_value)
        rest = input[count * (columns + 1) :]
        rest.diagonal().fill_(fill_value)
    else:
        input.as_strided((min(shape),), (sum(steps),), offset).fill_(fill_value)
    return input


def sum_to_size(input, size):
    leading = input.dim() - len(size)
    fits = leading >= 0 and all(
        n in (1, m) for n, m in zip(size, input.shape[leading:], strict=True)
    )
    if not fits:
        raise RuntimeError(
            f"sum_to_size(): {tuple(size)} does not broadcast to the shape "
            f"{tuple(input.shape)}; give sizes that are 1 or the Tensor's"
        )
    dims = list(range(leading))
    dims += [
        leading + d
        for d, n in enumerate(size)
        if n == 1 and input.shape[leading + d] != 1
    ]
    if not dims:
        return input
    return input.sum(dims, keepdim=True).reshape(tuple(size))


def conj_physical(input):
    return input
