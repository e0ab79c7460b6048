"""Histograms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

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
        one = _C.ones((), dtype=_C.int64, device=input.device)
        weights = one.expand(input.shape)
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
    place = _C.where(inside, (x - low) * bins / (high - low), 0)
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
    edges = _edges(x, bins, range)
    hist = _counts(x.unsqueeze(1), [edges], _weights(input, input.shape, weight))
    return _density(hist, [edges]) if density else hist, edges


@function(results=("hist", "bin_edges"))
def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Histogram of points, a dimension for each coordinate: (hist, bin_edges).

    input (..., N) has the N coordinates of each point in its last dimension. bins is a
    number of equal bins, one for each coordinate, or a sequence of N vectors of edges.
    range has a low and a high end for each coordinate, all in one sequence; it defaults
    to the smallest and largest of each. weight, of input's shape without the last
    dimension, gives each point's weight; density=True normalizes the integral to 1.
    bin_edges is a tuple of N vectors. Synchronizes with the GPU unless range is given.

    >>> points = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    >>> torch.histogramdd(points, 2).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    floating("input", input, NotImplementedError)
    if input.dim() < 2:
        raise RuntimeError(
            f"input has the shape {tuple(input.shape)}; give (..., N), a point of N "
            "coordinates in each row"
        )
    size = input.shape[-1]
    each = [bins] * size if isinstance(bins, int) else [*bins]
    ends: list[Any] = [None] * size
    if range is not None:
        ends = [range[i : i + 2] for i, _ in enumerate(range) if i % 2 == 0]
    if {len(each), len(ends)} != {size}:
        raise RuntimeError(
            f"there are {size} coordinates, {len(each)} numbers or edges of bins, and "
            f"range is {range!r}; give bins for each coordinate, and two ends or none"
        )
    points = input.detach().reshape(-1, size)
    edges = [*map(_edges, points.unbind(1), each, ends)]
    hist = _counts(points, edges, _weights(input, input.shape[:-1], weight))
    return _density(hist, edges) if density else hist, tuple(edges)


def _edges(x: Tensor, bins: Any, ends: Any) -> Tensor:
    """The edges of the bins for a vector."""
    if isinstance(bins, _C.Tensor):
        if bins.dim() != 1 or bins.dtype != x.dtype or bins.numel() < 2:
            raise RuntimeError(
                f"bins is of {bins.dtype} and has the shape {tuple(bins.shape)}; give "
                f"a vector of at least 2 edges of {x.dtype}"
            )
        if ends is not None:
            raise TypeError(
                "range is for a number of bins; leave it out, as the edges are given"
            )
        return bins.detach().clone()
    if not isinstance(bins, int):
        raise TypeError(f"bins is {bins!r}; give an int or edges")
    at_least(1, "bins", bins)
    if ends is None:
        low, high = (x.min().item(), x.max().item()) if x.numel() else (0.0, 1.0)
    elif isinstance(ends, (tuple, list)) and len(ends) == 2:
        low, high = (float(end) for end in ends)
    else:
        raise TypeError(f"range is {ends!r}; give two numbers, (low, high)")
    low, high = _widened(low, high, 0.5)
    return _C.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)


def _weights(input: Tensor, shape: Sequence[int], weight: Tensor | None) -> Tensor:
    """A vector of the weights."""
    if weight is None:
        return input.new_ones(math.prod(shape))
    if weight.shape != shape or weight.dtype != input.dtype:
        raise RuntimeError(
            f"weight is of {weight.dtype} and has the shape {tuple(weight.shape)}; "
            f"give one of {input.dtype} and {tuple(shape)}"
        )
    return weight.detach().reshape(-1)


def _counts(points: Tensor, edges: Sequence[Tensor], weights: Tensor) -> Tensor:
    """The sums of the weights of the points in each bin."""
    sizes = [each.numel() - 1 for each in edges]
    place: Any = 0
    for x, own, size in zip(points.unbind(1), edges, sizes, strict=True):
        x = x.contiguous()
        inside = (x >= own[0]) & (x <= own[-1])
        weights = _C.where(inside, weights, 0)
        index = (_C.searchsorted(own, x, right=True) - 1).clamp(0, size - 1)
        place = place * size + index
    hist = points.new_zeros(math.prod(sizes))
    return hist.index_add(0, place, weights).view(sizes)


def _density(hist: Tensor, edges: Sequence[Tensor]) -> Tensor:
    """Divided by the sum, and each bin by its volume."""
    hist = hist / hist.sum()
    for dim, own in enumerate(edges):
        sizes = [1] * hist.dim()
        sizes[dim] = -1
        hist = hist / own.diff().view(sizes)
    return hist
