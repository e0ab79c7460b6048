"""Convolutions, and the windows that they slide over."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dims, PerDim, Tensor


def padded(input: Any, padding: Any, mode: str) -> Any:
    """The input with its last dimensions continued by elements of its own.

    padding: (before, after) of each of these dimensions. mode: 'reflect', 'replicate'
    or 'circular'.
    """
    for dim, (before, after) in enumerate(padding, input.ndim - len(padding)):
        size = input.shape[dim]
        least = {"reflect": max(before, after) + 1, "circular": max(before, after)}
        if size < least.get(mode, 1):
            raise RuntimeError(
                f"padding ({before}, {after}) in dimension {dim} is too large for an "
                f"input of shape {[*input.shape]} with padding mode {mode!r}; give less"
            )
        places: Any = range(-before, size + after)
        if mode == "circular":
            places = [place % size for place in places]
        elif mode == "replicate":
            places = [min(max(place, 0), size - 1) for place in places]
        else:
            places = [size - 1 - abs(size - 1 - abs(place)) for place in places]
        index = _C.tensor(places, dtype=_C.int64, device=input.device)
        input = input.index_select(dim, index)
    return input


def _pair(name: str, value: Any, least: int) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) == 1:
        pair *= 2
    if len(pair) != 2 or min(pair) < least:
        raise RuntimeError(
            f"{name} is {value}; it has to be one int or two, of {least} or more"
        )
    return pair


def _blocks(
    sizes: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Any:
    """The numbers of windows in a plane, and of elements with the padding around it."""
    kernel = _pair("kernel_size", kernel_size, 1)
    dilation = _pair("dilation", dilation, 1)
    padding = _pair("padding", padding, 0)
    stride = _pair("stride", stride, 1)
    covered = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    planes = [size + 2 * p for size, p in zip(sizes, padding, strict=True)]
    if any(p < c for p, c in zip(planes, covered, strict=True)):
        raise RuntimeError(
            f"windows of {covered} elements do not fit into a plane of "
            f"{planes} with its padding; give a smaller kernel_size or dilation"
        )
    counts = [(p - c) // s + 1 for p, c, s in zip(planes, covered, stride, strict=True)]

    def windows(plane: Any) -> Any:
        """(..., H, W) as (..., kH, kW, windows down, windows across), a view."""
        plane = plane.unfold(-2, covered[0], stride[0])
        plane = plane.unfold(-2, covered[1], stride[1])
        plane = plane[..., :: dilation[0], :: dilation[1]]
        return plane.movedim((-4, -3), (-2, -1))

    return kernel, padding, planes, counts, windows


def _inner(padding: tuple[int, int], sizes: Any) -> Any:
    """The subscript of a plane without the padding around it."""
    return ..., *(slice(p, p + size) for p, size in zip(padding, sizes, strict=True))


@function()
def unfold(
    input: Tensor,
    kernel_size: Dims,
    dilation: PerDim = 1,
    padding: PerDim = 0,
    stride: PerDim = 1,
) -> Tensor:
    """The elements of each window as a column: (N, C * kH * kW, windows).

    input is (N, C, H, W) or (C, H, W). Raises RuntimeError where no window fits. See
    also fold, which goes back.

    kernel_size  size of the window, a number or two
    dilation     distance between a window's elements, a number or two
    padding      zeros added at both ends of each dimension, a number or two
    stride       step of the window, a number or two

    >>> nn.functional.unfold(torch.arange(6.0).reshape(1, 2, 3), (2, 2))
    tensor([[0., 1.],
            [1., 2.],
            [3., 4.],
            [4., 5.]])
    """
    if input.ndim not in (3, 4):
        raise RuntimeError(
            f"the input has shape {[*input.shape]}; it has to have 3 "
            "dimensions, or 4 with a batch"
        )
    *outer, height, width = input.shape
    kernel, pads, planes, counts, windows = _blocks(
        (height, width), kernel_size, dilation, padding, stride
    )
    if any(pads):
        inner, input = input, input.new_zeros(*outer, *planes)
        input[_inner(pads, (height, width))] = inner
    rows = outer[-1] * math.prod(kernel)
    result = windows(input).reshape(*outer[:-1], rows, math.prod(counts))
    return _C._named(result, "Im2ColBackward0")


@function()
def fold(
    input: Tensor,
    output_size: Dims,
    kernel_size: Dims,
    dilation: PerDim = 1,
    padding: PerDim = 0,
    stride: PerDim = 1,
) -> Tensor:
    """The reverse of unfold: a plane of sums over the windows that have an element.

    input is (N, C * kH * kW, windows) or lacks N; the result (N, C, *output_size).
    Raises RuntimeError where the numbers do not fit each other.

    output_size  height and width of the result, a number or two
    kernel_size  size of the window, a number or two
    dilation     distance between a window's elements, a number or two
    padding      zeros that unfold added at both ends of each dimension
    stride       step of the window, a number or two

    >>> nn.functional.fold(torch.ones(4, 2), (2, 3), (2, 2))
    tensor([[[1., 2., 1.],
             [1., 2., 1.]]])
    """
    sizes = _pair("output_size", output_size, 1)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"the input has shape {[*input.shape]}; it has to have 2 dimensions, "
            "or 3 with a batch"
        )
    kernel, pads, planes, counts, windows = _blocks(
        sizes, kernel_size, dilation, padding, stride
    )
    *outer, rows, columns = input.shape
    if rows % math.prod(kernel) or columns != math.prod(counts):
        raise RuntimeError(
            f"the input has shape {[*input.shape]}; for output_size {sizes} and "
            f"kernel_size {kernel} its last sizes have to be a multiple of "
            f"{math.prod(kernel)}, and {math.prod(counts)}, the windows"
        )
    channels = rows // math.prod(kernel)
    places = _C.arange(math.prod(planes), device=input.device).reshape(planes)
    flat = input.reshape(math.prod(outer) * channels, math.prod(kernel) * columns)
    zeros = input.new_zeros(flat.shape[0], math.prod(planes))
    sums = zeros.index_add(1, windows(places).reshape(-1), flat)
    result = sums.reshape(*outer, channels, *planes)[_inner(pads, sizes)]
    return _C._named(result.contiguous(), "Col2ImBackward0")
