"""Shapes and order of elements, under the array API standard's names."""

from __future__ import annotations

from collections.abc import Sequence

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor.array_api.dtypes import result_type

__all__ = ["broadcast_to", "concat", "expand_dims", "flip", "permute_dims", "repeat"]
__all__ += ["reshape", "roll", "squeeze", "stack", "unstack"]

_Axes = int | tuple[int, ...]


def _of_one_type(arrays: Sequence[Tensor]) -> list[Tensor]:
    if not arrays:
        raise ValueError("no arrays are given; give at least one")
    common = result_type(*arrays)
    return [x.to(common) for x in arrays]


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of x with a shape to which it broadcasts; ValueError for another shape.

    >>> import pydevtensor.array_api as xp
    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    ours = tuple(x.shape)
    fits = len(ours) <= len(shape) and all(
        a in (1, b) for a, b in zip(ours[::-1], shape[::-1], strict=False)
    )
    if not fits:
        raise ValueError(f"the shape {ours} does not broadcast to {tuple(shape)}")
    return x.expand(shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after the other along a dimension; with axis=None flattened before.

    >>> import pydevtensor.array_api as xp
    >>> xp.concat([xp.ones(1), xp.zeros((1, 2))], axis=None)
    tensor([1., 0., 0.])
    """
    parts = _of_one_type(arrays)
    if axis is None:
        parts, axis = [x.reshape(-1) for x in parts], 0
    return torch.cat(parts, axis)


def expand_dims(x: Tensor, /, axis: _Axes) -> Tensor:
    """x with new dimensions of size 1 at the positions in the result that axis names.

    IndexError for a position that the result does not have, ValueError for one named
    twice.

    >>> import pydevtensor.array_api as xp
    >>> xp.expand_dims(xp.zeros(3), (0, -1)).shape
    torch.Size([1, 3, 1])
    """
    given = axis if isinstance(axis, tuple) else (axis,)
    ndim = x.ndim + len(given)
    for place in given:
        if not -ndim <= place < ndim:
            raise IndexError(f"axis is {axis}; give {-ndim} to {ndim - 1}")
    places = sorted(place % ndim for place in given)
    if len({*places}) < len(places):
        raise ValueError(f"axis is {axis}, which names a dimension twice")
    for place in places:
        x = x.unsqueeze(place)
    return x


def flip(x: Tensor, /, *, axis: _Axes | None = None) -> Tensor:
    """The elements in reverse order along dimensions, or along all.

    >>> import pydevtensor.array_api as xp
    >>> xp.flip(xp.asarray([1, 2, 3]))
    tensor([3, 2, 1])
    """
    if axis is None:
        axis = tuple(range(x.ndim))
    return torch.flip(x, axis if isinstance(axis, tuple) else (axis,))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view with the dimensions in another order.

    >>> import pydevtensor.array_api as xp
    >>> xp.permute_dims(xp.zeros((2, 3, 4)), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    return torch.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element, or each slice along a dimension, as many times as repeats says.

    >>> import pydevtensor.array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), xp.asarray([2, 1]))
    tensor([1, 1, 2])
    """
    if isinstance(repeats, Tensor):
        repeats = repeats.to(torch.int64)
    return torch.repeat_interleave(x, repeats, axis)


def reshape(
    x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None
) -> Tensor:
    """The elements in another shape, in which one size may be -1.

    copy=None gives a view where one is possible; copy=False raises ValueError where
    none is, copy=True always copies.

    >>> import pydevtensor.array_api as xp
    >>> xp.reshape(xp.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"copy is False, and {error}") from None
    return (x.clone() if copy else x).reshape(shape)


def roll(x: Tensor, /, shift: _Axes, *, axis: _Axes | None = None) -> Tensor:
    """The elements moved by shift along dimensions, from the end round to the start.

    Without axis the array is rolled as if it were flat.

    >>> import pydevtensor.array_api as xp
    >>> xp.roll(xp.asarray([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    if axis is None:
        return torch.roll(x, shift)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) == 1:
        shifts *= len(axes)
    return torch.roll(x, shifts, axes)


def squeeze(x: Tensor, /, axis: _Axes) -> Tensor:
    """A view without the dimensions that axis names; ValueError where one is not of size 1.

    >>> import pydevtensor.array_api as xp
    >>> xp.squeeze(xp.zeros((1, 3, 1)), (0, -1)).shape
    torch.Size([3])
    """  # noqa: E501
    for place in axis if isinstance(axis, tuple) else (axis,):
        if x.size(place) != 1:
            raise ValueError(
                f"dimension {place} has size {x.size(place)}; only dimensions of size "
                "1 can be removed"
            )
    return torch.squeeze(x, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape side by side, along a new dimension.

    >>> import pydevtensor.array_api as xp
    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """
    return torch.stack(_of_one_type(arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along a dimension, as views.

    >>> import pydevtensor.array_api as xp
    >>> xp.unstack(xp.asarray([1, 2]))
    (tensor(1), tensor(2))
    """
    return tuple(torch.unbind(x, axis))
