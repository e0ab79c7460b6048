"""New arrays, under the array API standard's names and parameters."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor

__all__ = ["arange", "empty", "eye", "full", "linspace", "meshgrid", "ones", "tril"]
__all__ += ["triu", "zeros"]

_Shape = int | tuple[int, ...]


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Numbers from start up to stop, which is not among them; from 0 with one number.

    None where step leads away from stop.

    >>> import pydevtensor.array_api as xp
    >>> xp.arange(5, 0, -2)
    tensor([5, 3, 1])
    """
    if stop is None:
        start, stop = 0, start
    if step and (stop - start) / step < 0:
        start = stop = start + 0 * (stop + step)  # no number, of their common type
    return torch.arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: _Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array whose elements are not set.

    >>> import pydevtensor.array_api as xp
    >>> xp.empty((2, 3)).shape
    torch.Size([2, 3])
    """
    return torch.empty(shape, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """A matrix of zeros with ones on the diagonal k positions above the main one.

    >>> import pydevtensor.array_api as xp
    >>> xp.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return torch.eye(n_rows, columns, dtype=dtype, device=device)
    made = torch.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        made.diagonal(k).fill_(1)
    return made


def full(
    shape: _Shape, fill_value: float, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """An array of one value, whose type it has if no other is given.

    >>> import pydevtensor.array_api as xp
    >>> xp.full((2,), 7)
    tensor([7, 7])
    """
    size = (shape,) if isinstance(shape, int) else shape
    return torch.full(size, fill_value, dtype=dtype, device=device)


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """num numbers at equal distances from start to stop, with stop if endpoint is true.

    >>> import pydevtensor.array_api as xp
    >>> xp.linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if endpoint:
        return torch.linspace(start, stop, num, dtype=dtype, device=device)
    return torch.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid: one array for each vector, all of the grid's shape.

    indexing "xy" has the second vector along the first dimension, "ij" the first.

    >>> import pydevtensor.array_api as xp
    >>> xp.meshgrid(xp.arange(2), xp.arange(3))[0]
    tensor([[0, 1],
            [0, 1],
            [0, 1]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is {indexing!r}; give 'xy' or 'ij'")
    return tuple(torch.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def ones(shape: _Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones.

    >>> import pydevtensor.array_api as xp
    >>> xp.ones(2, dtype=xp.int8)
    tensor([1, 1], dtype=torch.int8)
    """
    return torch.ones(shape, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices in the last two dimensions, with zeros above diagonal k.

    >>> import pydevtensor.array_api as xp
    >>> xp.tril(xp.ones((2, 2)))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return torch.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices in the last two dimensions, with zeros below diagonal k.

    >>> import pydevtensor.array_api as xp
    >>> xp.triu(xp.ones((2, 2)), k=1)
    tensor([[0., 1.],
            [0., 0.]])
    """
    return torch.triu(x, k)


def zeros(shape: _Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros.

    >>> import pydevtensor.array_api as xp
    >>> xp.zeros((1, 2))
    tensor([[0., 0.]])
    """
    return torch.zeros(shape, dtype=dtype, device=device)
