"""Histograms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._functions.checks import at_least, floating, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydevtensor._functions.types import Number, Tensor


@function(method=True)
def bincount(
    input: Tensor, weights: Tensor | None = None, minlength: int = 0
) -> Tensor:
    """Frequency of each number in a vector of non-negative integers.

    The result has at least minlength elements. With weights, their sums instead of
    counts. Raises RuntimeError for negative numbers. Synchronizes with the GPU.

    >>> torch.tensor([0, 2, 2, 3]).bincount()
    tensor([1, 0, 2, 1])
    """
    kind = input.dtype
    if kind.is_floating_point or kind.is_complex or kind is _C.bool:
        raise NotImplementedError(f"the input is of type {input.dtype}; give integers")
    vector("the input", input)
    at_least(0, "minlength", minlength)
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError(
            f"the weights have shape {tuple(weights.shape)}, the input "
            f"{tuple(input.shape)}; give one weight for each element"
        )
    size = minlength
    if input.numel():
        at_least(0, "the least element", int(input.min()))
        size = max(size, int(input.max()) + 1)
    if weights is None:
        weights = _C.ones(input.shape, dtype=_C.int64, device=input.device)
    elif weights.dtype is not _C.float32:
        weights = weights.to(_C.float64)
    counts = _C.zeros(size, dtype=weights.dtype, device=input.device)
    return counts.scatter_add_(0, input.to(_C.int64), weights)


def _widened(low, high, margin):
    """The range from low to high, with a margin if it is a point."""
    if not -math.inf < low <= high < math.inf:
        raise RuntimeError(
            f"the range is from {low} to {high}; give finite numbers in ascending order"
        )
    return (low - margin, high + margin) if low == high else (low, high)


@function(method=True, out=True)
def histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """Histogram with equal bins from min to max.

    If both are 0, from the smallest to the largest element. Elements outside are
    ignored. The result has shape [bins] and input's dtype.

    >>> torch.tensor([1.0, 2.0, 2.5, 4.0]).histc(bins=3, min=1, max=4)
    tensor([1., 2., 1.])
    """
    floating("input", input, NotImplementedError)
    at_least(1, "bins", bins)
    low, high = float(min), float(max)
    if low == high and input.numel():
        low, high = input.min().item(), input.max().item()
    low, high = _widened(low, high, 1)
    x = input.detach().flatten()
    inside = (x >= low) & (x <= high)
    place = _C.where(inside, (x - low) / (high - low) * bins, 0)
    place = place.to(_C.int64).clamp(0, bins - 1)
    counts = _C.zeros(bins, dtype=input.dtype, device=input.device)
    return counts.scatter_add_(0, place, inside.to(input.dtype))


@function(method=True, out=True, results=("hist", "bin_edges"))
def histogram(
    input: Tensor,
    bins: int | Tensor,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """Histogram of all elements: (hist, bin_edges).

    bins is the number of equal bins in range, which defaults to the smallest and
    largest element, or a vector of edges. weight gives each element's weight;
    density=True normalizes the integral to 1. Synchronizes with the GPU unless range is
    given.

    >>> torch.tensor([1.0, 2.0, 1.0]).histogram(2)
    torch.return_types.histogram(
    hist=tensor([2., 1.]),
    bin_edges=tensor([1.0000, 1.5000, 2.0000]))
    """
    floating("input", input, NotImplementedError)
    x = input.detach().reshape(-1)
    if weight is not None and (
        weight.shape != input.shape or weight.dtype != input.dtype
    ):
        raise RuntimeError(
            f"weight is of {weight.dtype} and has the shape {tuple(weight.shape)}; "
            f"give one of input's, {input.dtype} and {tuple(input.shape)}"
        )
    if isinstance(bins, _C.Tensor):
        if bins.dim() != 1 or bins.dtype != input.dtype or bins.numel() < 2:
            raise RuntimeError(
                f"bins is of {bins.dtype} and has the shape {tuple(bins.shape)}; give "
                f"a vector of at least 2 edges of {input.dtype}"
            )
        if range is not None:
            raise TypeError(
                "range is for a number of bins; leave it out, as the edges are given"
            )
        edges = bins.detach().clone()
    elif isinstance(bins, int):
        at_least(1, "bins", bins)
        if range is None:
            low, high = (x.min().item(), x.max().item()) if x.numel() else (0.0, 1.0)
        elif isinstance(range, (tuple, list)) and len(range) == 2:
            low, high = (float(end) for end in range)
        else:
            raise TypeError(f"range is {range!r}; give two numbers, (low, high)")
        low, high = _widened(low, high, 0.5)
        edges = _C.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
    else:
        raise TypeError(f"bins is {bins!r}; give an int or edges")
    count = edges.numel() - 1
    places = _C.searchsorted(edges, x, right=True) - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    weights = _C.ones_like(x) if weight is None else weight.detach().reshape(-1)
    weights = _C.where(inside, weights, 0)
    hist = x.new_zeros(count).index_add(0, places.clamp(0, count - 1), weights)
    if density:
        hist = hist / hist.sum() / edges.diff()
    return hist, edges
