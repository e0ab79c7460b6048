"""Finding, taking and ordering elements, under the array API standard's names."""

from __future__ import annotations

from typing import Any, NamedTuple

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor.array_api._operands import dimension, promoted, tensors

__all__ = ["argmax", "argmin", "argsort", "count_nonzero", "isin", "nonzero"]
__all__ += ["searchsorted", "sort", "take", "take_along_axis", "unique_all"]
__all__ += ["unique_counts", "unique_inverse", "unique_values", "where"]


class UniqueAll(NamedTuple):
    """The result of unique_all()."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of unique_counts()."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of unique_inverse()."""

    values: Tensor
    inverse_indices: Tensor


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the first greatest element is, of all or along a dimension.

    >>> import pydevtensor.array_api as xp
    >>> xp.argmax(xp.asarray([1, 3, 2]))
    tensor(1)
    """
    return torch.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the first least element is, of all or along a dimension.

    >>> import pydevtensor.array_api as xp
    >>> xp.argmin(xp.asarray([2, 1, 3]))
    tensor(1)
    """
    return torch.argmin(x, axis, keepdims)


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The indices of the elements in sorted order along a dimension.

    >>> import pydevtensor.array_api as xp
    >>> xp.argsort(xp.asarray([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return torch.argsort(x, axis, descending, stable)


def count_nonzero(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Tensor:
    """How many elements are not 0, of all or along dimensions.

    >>> import pydevtensor.array_api as xp
    >>> xp.count_nonzero(xp.asarray([0, 1, 2]))
    tensor(2)
    """
    if axis == ():
        return (x != 0).to(torch.int64)
    return torch.sum(x != 0, axis, keepdims)


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of x1 is among x2's; with invert whether it is not.

    >>> import pydevtensor.array_api as xp
    >>> xp.isin(xp.asarray([1, 2, 3]), xp.asarray([1, 3]))
    tensor([ True, False,  True])
    """
    return torch.isin(*promoted(x1, x2), invert=invert)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Where the elements that are not 0 are: indices for each dimension.

    ValueError for an array without dimensions. Synchronizes with a GPU.

    >>> import pydevtensor.array_api as xp
    >>> xp.nonzero(xp.asarray([0, 1, 2]))
    (tensor([1, 2]),)
    """
    if x.ndim == 0:
        raise ValueError("the array has no dimensions; give one with 1 or more")
    return tuple(torch.nonzero(x, as_tuple=True))


def searchsorted(
    x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where each of x2 would stand in the sorted vector x1.

    side "left" is before equal elements, "right" after them. sorter has the indices of
    x1's elements in sorted order.

    >>> import pydevtensor.array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]))
    tensor([1, 2])
    """
    if sorter is not None:
        sorter = sorter.to(torch.int64)
    return torch.searchsorted(*promoted(x1, x2), side=side, sorter=sorter)


def sort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The elements in order along a dimension; NaN counts as the greatest.

    >>> import pydevtensor.array_api as xp
    >>> xp.sort(xp.asarray([3, 1, 2]), descending=True)
    tensor([3, 2, 1])
    """
    return torch.sort(x, axis, descending, stable=stable)[0]


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at indices along a dimension, which a vector needs not name.

    Negative indices count from the end. TypeError if indices are not integers.

    >>> import pydevtensor.array_api as xp
    >>> xp.take(xp.asarray([5, 6, 7]), xp.asarray([2, 0]))
    tensor([7, 5])
    """
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"the array has {x.ndim} dimensions; give axis")
        axis = 0
    before = (slice(None),) * dimension(x, axis)
    return x[(*before, _places(indices))]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements that indices select along a dimension, at each position of the rest.

    Negative indices count from the end. TypeError if indices are not integers.

    >>> import pydevtensor.array_api as xp
    >>> x = xp.asarray([[3, 1], [2, 4]])
    >>> xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    places = _places(indices)
    places = torch.where(places < 0, places + x.size(axis), places)
    return torch.take_along_dim(x, places, axis)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, sorted, with three more arrays.

    indices says where each occurs first in the flat array, inverse_indices which of
    them each element is, counts how often each occurs. Every NaN is distinct.
    Synchronizes with a GPU.

    >>> import pydevtensor.array_api as xp
    >>> xp.unique_all(xp.asarray([3, 1, 3])).indices
    tensor([1, 0])
    """
    values, inverse, counts = _unique(x, return_inverse=True, return_counts=True)
    places = torch.arange(x.numel(), device=x.device)
    first = torch.zeros(
        values.numel(), dtype=torch.int64, device=x.device
    ).scatter_reduce(0, inverse.reshape(-1), places, "amin", include_self=False)
    return UniqueAll(values, first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements, sorted, and how often each occurs.

    Every NaN is distinct. Synchronizes with a GPU.

    >>> import pydevtensor.array_api as xp
    >>> xp.unique_counts(xp.asarray([3, 1, 3])).counts
    tensor([1, 2])
    """
    return UniqueCounts(*_unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, sorted, and which of them each element is.

    Every NaN is distinct. Synchronizes with a GPU.

    >>> import pydevtensor.array_api as xp
    >>> xp.unique_inverse(xp.asarray([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    return UniqueInverse(*_unique(x, return_inverse=True))


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements, sorted. Every NaN is distinct. Synchronizes with a GPU.

    >>> import pydevtensor.array_api as xp
    >>> xp.unique_values(xp.asarray([3, 1, 3]))
    tensor([1, 3])
    """
    values: Tensor = _unique(x)
    return values


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of x1 where condition is true, and of x2 elsewhere.

    x1 and x2 are arrays; one of them may be a Python number.

    >>> import pydevtensor.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
    tensor([1, 0])
    """
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        return torch.where(condition, x1, x2)
    return torch.where(condition, *tensors(x1, x2))


def _unique(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """torch.unique(), of complex numbers too: ordered by their real parts first."""
    if not x.is_complex():
        return torch.unique(
            x, return_inverse=return_inverse, return_counts=return_counts
        )
    pairs = torch.view_as_real(x.reshape(-1))
    values, inverse, counts = torch.unique(
        pairs, return_inverse=True, return_counts=True, dim=0
    )
    found = [torch.view_as_complex(values)]
    found += [inverse.reshape(x.shape)] if return_inverse else []
    found += [counts] if return_counts else []
    return tuple(found) if len(found) > 1 else found[0]


def _places(indices: Tensor) -> Tensor:
    if (
        indices.dtype == torch.bool
        or indices.is_floating_point()
        or indices.is_complex()
    ):
        raise TypeError(f"indices are {indices.dtype}; give integers")
    return indices.to(torch.int64)
