"""Histograms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._functions.checks import floating

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
    if input.dtype.is_floating_point or input.dtype is _C.bool:
        raise NotImplementedError(
            f"bincount(): the input is of type {input.dtype}; give integers"
        )
    if input.dim() != 1:
        raise RuntimeError(
            f"bincount(): the input has {input.dim()} dimensions; give a vector, for "
            "example by flatten()"
        )
    if minlength < 0:
        raise RuntimeError(f"bincount(): minlength is {minlength}; give 0 or more")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError(
            f"bincount(): the weights have shape {tuple(weights.shape)}, the input "
            f"{tuple(input.shape)}; give one weight for each element"
        )
    size = minlength
    if input.numel():
        if input.min() < 0:
            raise RuntimeError(
                f"bincount(): the input has {int(input.min())}; give 0 or more"
            )
        size = max(size, int(input.max()) + 1)
    if weights is None:
        weights = _C.ones(input.shape, dtype=_C.int64, device=input.device)
    elif weights.dtype is not _C.float32:
        weights = weights.to(_C.float64)
    counts = _C.zeros(size, dtype=weights.dtype, device=input.device)
    return counts.scatter_add_(0, input.to(_C.int64), weights)


@function(method=True, out=True)
def histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor:
    """Histogram with equal bins from min to max.

    If both are 0, from the smallest to the largest element. Elements outside are
    ignored. The result has shape [bins] and input's dtype.

    >>> torch.tensor([1.0, 2.0, 2.5, 4.0]).histc(bins=3, min=1, max=4)
    tensor([1., 2., 1.])
    """
    floating("histc", "input", input, NotImplementedError)
    if bins < 1:
        raise RuntimeError(f"histc(): bins is {bins}; give 1 or more")
    low, high = float(min), float(max)
    if low == high and input.numel():
        low, high = input.min().item(), input.max().item()
    if low == high:
        low, high = low - 1, high + 1
    if not (abs(low) < math.inf and abs(high) < math.inf):
        raise RuntimeError(
            f"histc(): the range from {low} to {high} is not finite; give min and max"
        )
    if low > high:
        raise RuntimeError(
            f"histc(): min is {low} and max {high}; give a max greater than min"
        )
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
    floating("histogram", "input", input, NotImplementedError)
    x = input.detach().reshape(-1)
    if weight is not None and (
        weight.shape != input.shape or weight.dtype != input.dtype
    ):
        raise RuntimeError(
            f"histogram(): weight is of {weight.dtype} and has the shape "
            f"{tuple(weight.shape)}; give one of input's, {input.dtype} and "
            f"{tuple(input.shape)}"
        )
    if isinstance(bins, _C.Tensor):
        if bins.dim() != 1 or bins.dtype != input.dtype or bins.numel() < 2:
            raise RuntimeError(
                f"histogram(): bins is of {bins.dtype} and has the shape "
                f"{tuple(bins.shape)}; give a vector of at least 2 edges of "
                f"{input.dtype}"
            )
        if range is not None:
            raise TypeError(
                "histogram(): range is for a number of bins; leave it out, as the "
                "edges are given"
            )
        edges = bins.detach()
    elif isinstance(bins, int):
        if bins < 1:
            raise RuntimeError(f"histogram(): bins is {bins}; give 1 or more")
        if range is None:
            low, high = (x.min().item(), x.max().item()) if x.numel() else (0.0, 1.0)
        elif isinstance(range, (tuple, list)) and len(range) == 2:
            low, high = (float(end) for end in range)
        else:
            raise TypeError(
                f"histogram(): range is {range!r}; give two numbers, (low, high)"
            )
        if not (math.isfinite(low) and math.isfinite(high)) or low > high:
            raise RuntimeError(
                f"histogram(): range must be finite and ordered, got [{low}, {high}]"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = _C.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
    else:
        raise TypeError(f"histogram(): bins is {bins!r}; give an int or edges")
    count = edges.numel() - 1
    places = _C.searchsorted(edges, x, right=True) - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    weights = _C.ones_like(x) if weight is None else weight.detach().reshape(-1)
    weights = _C.where(inside, weights, 0)
    hist = x.new_zeros(count).index_add(0, places.clamp(0, count - 1), weights)
    if density:
        hist = hist / hist.sum() / edges.diff()
    return hist, edges.clone() if isinstance(bins, _C.Tensor) else edges
