"""Functions of any number of tensors, over the others, and the names of types."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[_C.Tensor, ...]:
    """The coordinates of a grid, one Tensor for each of its axes.

    Takes Tensors of one dimension (or none), as arguments or as one sequence, all of
    one dtype and on one device. Gives a tuple of as many views, without a copy, each of
    the shape of the grid. With indexing="ij", also the default, the first Tensor goes
    along dimension 0, as rows of a matrix do; with "xy" the first two change places.

    Raises RuntimeError for Tensors of more dimensions, for none at all, and for another
    indexing.

    >>> import pydevtensor as torch
    >>> rows, columns = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    >>> rows
    tensor([[0, 0, 0],
            [1, 1, 1]])
    >>> columns
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid(): no Tensors were given; give at least one")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f"meshgrid(): indexing is {indexing!r}; give 'ij' (rows first) or 'xy'"
        )
    for place, each in enumerate(tensors):
        if not isinstance(each, _C.Tensor):
            raise TypeError(
                f"meshgrid(): argument {place} is a {type(each).__name__}; give Tensors"
            )
        if each.dim() > 1:
            raise RuntimeError(
                f"meshgrid(): argument {place} has the shape {tuple(each.shape)}; "
                "give Tensors of one dimension"
            )
        if each.dtype != tensors[0].dtype or each.device != tensors[0].device:
            raise RuntimeError(
                f"meshgrid(): argument 0 is {tensors[0].dtype} on {tensors[0].device}, "
                f"argument {place} {each.dtype} on {each.device}; convert by .to()"
            )
    swap = indexing == "xy" and len(tensors) > 1
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = [each.numel() for each in tensors]
    grid = []
    for place, each in enumerate(tensors):
        sizes = [1] * len(tensors)
        sizes[place] = shape[place]
        grid.append(each.view(sizes).expand(shape))
    if swap:
        grid[0], grid[1] = grid[1], grid[0]
    return tuple(grid)


def typename(obj: Any) -> str:
    """The name of the type of obj, with its module unless that is Python's own.

    Of a Tensor what its type() says, of a class its own name.

    >>> import pydevtensor as torch
    >>> torch.typename(torch.ones(2)), torch.typename(3)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, _C.Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    before = "" if module in (None, "builtins", "__builtin__") else f"{module}."
    return before + str(named.__qualname__)
