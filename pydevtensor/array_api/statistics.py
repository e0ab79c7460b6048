"""Reductions and running sums, under the array API standard's names.

axis=() reduces nothing. Sums of bools and integers are of int64, of uint8 too: the
library has no uint64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor.array_api._operands import dimension, spread

__all__ = ["all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean"]
__all__ += ["min", "prod", "std", "sum", "var"]

_Axes = int | tuple[int, ...]


def all(x: Tensor, /, *, axis: _Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are not 0, of the array or along dimensions.

    >>> import pydevtensor.array_api as xp
    >>> xp.all(xp.asarray([[1, 2], [0, 3]]), axis=1)
    tensor([ True, False])
    """
    return torch.all(*spread(x.to(torch.bool), axis, keepdims))


def any(x: Tensor, /, *, axis: _Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether any element is not 0, of the array or along dimensions.

    >>> import pydevtensor.array_api as xp
    >>> xp.any(xp.asarray([[0, 2], [0, 0]]), axis=1)
    tensor([ True, False])
    """
    return torch.any(*spread(x.to(torch.bool), axis, keepdims))


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Tensor:
    """The products of the elements so far along a dimension, which a vector needs not name.

    include_initial puts a 1 before them.

    >>> import pydevtensor.array_api as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]), include_initial=True)
    tensor([1, 1, 2, 6])
    """  # noqa: E501
    return _running(torch.cumprod, 1, x, axis, dtype, include_initial)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Tensor:
    """The sums of the elements so far along a dimension, which a vector needs not name.

    include_initial puts a 0 before them.

    >>> import pydevtensor.array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]))
    tensor([1, 3, 6])
    """
    return _running(torch.cumsum, 0, x, axis, dtype, include_initial)


def _running(
    function: Callable[..., Tensor],
    initial: int,
    x: Tensor,
    axis: int | None,
    dtype: Any,
    include_initial: bool,
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"the array has {x.ndim} dimensions; give axis")
        axis = 0
    found = function(x, axis, dtype=dtype)
    if not include_initial:
        return found
    shape = [*found.shape]
    shape[axis] = 1
    return torch.cat([found.new_full(shape, initial), found], axis)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along a dimension, taken n times.

    prepend and append are put before and after x first.

    >>> import pydevtensor.array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9]))
    tensor([3, 5])
    """
    return torch.diff(x, n, axis, prepend, append)


def max(x: Tensor, /, *, axis: _Axes | None = None, keepdims: bool = False) -> Tensor:
    """The greatest element, of all or along dimensions; NaN where there is one.

    >>> import pydevtensor.array_api as xp
    >>> xp.max(xp.asarray([[1, 2], [4, 3]]), axis=1)
    tensor([2, 4])
    """
    x, axis, keepdims = spread(x, axis, keepdims)
    return torch.amax(x, () if axis is None else axis, keepdims)


def mean(x: Tensor, /, *, axis: _Axes | None = None, keepdims: bool = False) -> Tensor:
    """The mean of floats, of all or along dimensions.

    >>> import pydevtensor.array_api as xp
    >>> xp.mean(xp.asarray([1.0, 2.0]))
    tensor(1.5000)
    """
    return torch.mean(*spread(x, axis, keepdims))


def min(x: Tensor, /, *, axis: _Axes | None = None, keepdims: bool = False) -> Tensor:
    """The least element, of all or along dimensions; NaN where there is one.

    >>> import pydevtensor.array_api as xp
    >>> xp.min(xp.asarray([[1, 2], [4, 3]]), axis=1)
    tensor([1, 3])
    """
    x, axis, keepdims = spread(x, axis, keepdims)
    return torch.amin(x, () if axis is None else axis, keepdims)


def prod(
    x: Tensor,
    /,
    *,
    axis: _Axes | None = None,
    dtype: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """The product of the elements, of all or along dimensions.

    >>> import pydevtensor.array_api as xp
    >>> xp.prod(xp.asarray([[1, 2], [4, 3]]), axis=(0, 1))
    tensor(24)
    """
    x, axis, keepdims = spread(x, axis, keepdims)
    if axis is None:
        axis = tuple(range(x.ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not axes:  # no dimensions
        return torch.prod(x, dtype=dtype)
    places = sorted({dimension(x, place) for place in axes}, reverse=True)
    if len(places) < len(axes):
        raise ValueError(f"axis is {axis}, which names a dimension twice")
    for place in places:
        x = torch.prod(x, place, keepdims, dtype=dtype)
    return x


def std(
    x: Tensor,
    /,
    *,
    axis: _Axes | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> Tensor:
    """The standard deviation of floats: the root of var().

    >>> import pydevtensor.array_api as xp
    >>> xp.std(xp.asarray([1.0, 3.0]))
    tensor(1.)
    """
    x, axis, keepdims = spread(x, axis, keepdims)
    return torch.std(x, axis, correction=correction, keepdim=keepdims)


def sum(
    x: Tensor,
    /,
    *,
    axis: _Axes | None = None,
    dtype: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """The sum of the elements, of all or along dimensions.

    >>> import pydevtensor.array_api as xp
    >>> xp.sum(xp.asarray([[1, 2], [4, 3]], dtype=xp.int8), axis=1)
    tensor([3, 7])
    """
    return torch.sum(*spread(x, axis, keepdims), dtype=dtype)


def var(
    x: Tensor,
    /,
    *,
    axis: _Axes | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> Tensor:
    """The variance of floats: squared distances from the mean, over n - correction.

    >>> import pydevtensor.array_api as xp
    >>> xp.var(xp.asarray([1.0, 3.0]), correction=1)
    tensor(2.)
    """
    x, axis, keepdims = spread(x, axis, keepdims)
    return torch.var(x, axis, correction=correction, keepdim=keepdims)
