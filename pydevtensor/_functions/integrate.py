"""Integrals, derivatives and differences of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._functions.checks import at_least, dimension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydevtensor._functions.types import Number, Tensor


def _neighbours(x, dim):
    """All elements along dim but the last, and all but the first."""
    count = max(x.size(dim) - 1, 0)
    return x.narrow(dim, 0, count), x.narrow(dim, x.size(dim) - count, count)


def _areas(y, x, dx, dim):
    """Trapezoid areas between neighbouring samples along dim."""
    if x is not None and dx is not None:
        raise TypeError("x and dx are given; give one of them")
    if y.dtype == _C.bool or (x is not None and x.dtype == _C.bool):
        raise RuntimeError("not for bools; convert them with .float()")
    dim = dimension(y, dim)
    before, after = _neighbours(y, dim)
    pairs = after + before
    if x is None:
        return pairs * ((1 if dx is None else dx) / 2)
    if x.dim() != 1:
        return pairs * x.diff(dim=dim - y.dim()) / 2
    if x.numel() != y.shape[dim]:
        raise RuntimeError(
            f"y has {y.shape[dim]} samples along dimension {dim}, and x {x.numel()} "
            "values; give one for each"
        )
    return pairs * x.diff().reshape([-1] + [1] * (y.dim() - 1 - dim)) / 2


def _along(f, dim, steps, edge_order):
    """Derivatives along dim; steps is a distance, or a tensor of distances."""
    n = f.shape[dim]
    spaced = isinstance(steps, _C.Tensor)
    if spaced:
        steps = steps.reshape([-1 if d == dim else 1 for d in range(f.dim())])

    def part(first, count):
        return f.narrow(dim, first, count)

    def step(first, count=1):
        return steps.narrow(dim, first, count) if spaced else steps

    def slope(k):
        return (part(k + 1, 1) - part(k, 1)) / step(k)

    def edge(k, inner):
        """The derivative beside the step k at an edge; inner is the step after."""
        first = slope(k)
        if edge_order == 1:
            return first
        weight = step(k) / (step(k) + step(inner)) if spaced else 0.5
        return first + (first - slope(inner)) * weight

    before, after = part(0, n - 2), part(2, n - 2)
    if spaced:
        a, b = step(0, n - 2), step(1, n - 2)
        middle = (
            before * (-b / (a * (a + b)))
            + part(1, n - 2) * ((b - a) / (a * b))
            + after * (a / (b * (a + b)))
        )
    else:
        middle = (after - before) / (2 * steps)
    return _C.cat([edge(0, 1), middle, edge(n - 2, n - 3)], dim)


@function(aliases=("trapz",))
def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1
) -> Tensor:
    """Integrate y along dim by the trapezoidal rule.

    The samples are at x, or dx (1) apart.

    >>> torch.trapezoid(torch.tensor([1.0, 2.0, 4.0]))
    tensor(4.5000)
    """
    if y.shape[dim] == 0:
        return y.sum(dim, dtype=y.dtype)
    return _areas(y, x, dx, dim).sum(dim)


@function()
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1
) -> Tensor:
    """Cumulative integral of y along dim by the trapezoidal rule.

    The samples are at x, or dx (1) apart.

    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 2.0, 4.0]))
    tensor([1.5000, 4.5000])
    """
    return _areas(y, x, dx, dim).cumsum(dim)


@function()
def gradient(
    input: Tensor,
    *,
    spacing: Number | Tensor | Sequence[Number | Tensor] | None = 1,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Derivatives of samples along dimensions by central differences, as a tuple.

    spacing is the distance between samples, or for each dimension a distance or a
    vector of coordinates; None is 1. edge_order=2 uses three samples at the boundaries
    instead of two.

    dim: the dimension or dimensions, None for all.

    >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)
    """
    if edge_order not in (1, 2):
        raise RuntimeError(f"edge_order is {edge_order}; give 1 or 2")
    if input.dtype in (_C.uint8, _C.bool):
        raise RuntimeError(f"not defined for {input.dtype}; convert it with .float()")
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [dimension(input, d) for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"{dim} names a dimension twice; name each once")
    if isinstance(spacing, (tuple, list)):
        steps = list(spacing)
    else:
        one = 1 if spacing is None else spacing
        one = one.item() if isinstance(one, _C.Tensor) else one
        steps = [one] * len(dims)
    if len(steps) != len(dims):
        raise RuntimeError(
            f"{len(steps)} spacings are given for {len(dims)} dimensions; give one "
            "for each"
        )
    found = []
    for d, step in zip(dims, steps, strict=True):
        n = input.shape[d]
        if n <= edge_order:
            raise RuntimeError(
                f"dimension {d} has size {n}; give at least {edge_order + 1} samples"
            )
        if isinstance(step, _C.Tensor):
            if step.shape != (n,):
                raise RuntimeError(
                    f"the coordinates for dimension {d} have the shape "
                    f"{tuple(step.shape)}; give one for each of {n} samples"
                )
            step = step.diff()
        elif not isinstance(step, (int, float)):
            raise TypeError(
                f"spacing is {step!r}; give numbers, or Tensors of coordinates"
            )
        found.append(_along(input, d, step, edge_order))
    return tuple(found)


@function(method=True, out=True)
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """n-th difference of neighbouring elements along dim.

    prepend and append are concatenated to input first. Raises RuntimeError for negative
    n.

    >>> x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    >>> x.diff(dim=1)
    tensor([[ 4., -2.],
            [-2.,  4.]])
    """
    if input.dim() == 0:
        raise RuntimeError("the input has no dimension; give one of at least 1")
    at_least(0, "n", n)
    if not n:
        return input.clone()  # without prepend and append, as NumPy
    parts = [part for part in (prepend, input, append) if part is not None]
    if len(parts) > 1:
        input = _C.cat(parts, dim)
    for _ in range(min(n, input.size(dim))):  # more leave nothing
        before, after = _neighbours(input, dim)
        input = after != before if input.dtype is _C.bool else after - before
    return input
