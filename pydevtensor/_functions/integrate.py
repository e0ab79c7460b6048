"""Integrals, derivatives and differences of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._functions.checks import dimension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydevtensor._functions.types import Number, Tensor


def _areas(function, y, x, dx, dim):
    """Trapezoid areas between neighbouring samples along dim, and dim from 0."""
    if x is not None and dx is not None:
        raise TypeError(f"{function}(): x and dx are given; give one of them")
    dim = dimension(function, dim, y.dim(), scalars=False)
    if y.dtype == _C.bool or (x is not None and x.dtype == _C.bool):
        raise RuntimeError(f"{function}(): not for bools; convert them with .float()")
    count = max(y.shape[dim] - 1, 0)
    pairs = y.narrow(dim, y.shape[dim] - count, count) + y.narrow(dim, 0, count)
    if x is None:
        return pairs * ((1 if dx is None else dx) / 2), dim
    if x.dim() == 1:
        if x.numel() != y.shape[dim]:
            raise RuntimeError(
                f"{function}(): y has {y.shape[dim]} samples along dimension {dim}, "
                f"and x {x.numel()} values; give one for each"
            )
        widths = x.diff().reshape([-1] + [1] * (y.dim() - 1 - dim))
    else:
        widths = x.diff(dim=dimension(function, dim - y.dim(), x.dim(), False))
    return pairs * widths / 2, dim


def _along(f, dim, steps, edge_order):
    """Derivatives along dim; steps is a distance, or a tensor of distances."""
    n = f.shape[dim]

    def part(first, count):
        return f.narrow(dim, first, count)

    if isinstance(steps, _C.Tensor):
        h = steps.reshape([-1 if d == dim else 1 for d in range(f.dim())])
        a, b = h.narrow(dim, 0, n - 2), h.narrow(dim, 1, n - 2)
        first, last = (h.narrow(dim, k, 1) for k in (0, n - 2))
    else:
        a = b = first = last = steps
    before, here, after = part(0, n - 2), part(1, n - 2), part(2, n - 2)
    if a is b:
        inner = (after - before) / (2 * a)
    else:
        inner = (
            before * (-b / (a * (a + b)))
            + here * ((b - a) / (a * b))
            + after * (a / (b * (a + b)))
        )
    left = (part(1, 1) - part(0, 1)) / first
    right = (part(n - 1, 1) - part(n - 2, 1)) / last
    if edge_order == 2:
        if a is b:
            left = (part(0, 1) * -1.5 + part(1, 1) * 2 - part(2, 1) * 0.5) / a
            right = (
                part(n - 1, 1) * 1.5 - part(n - 2, 1) * 2 + part(n - 3, 1) * 0.5
            ) / a
        else:
            second, before_last = (h.narrow(dim, k, 1) for k in (1, n - 3))
            left = left + (left - (part(2, 1) - part(1, 1)) / second) * (
                first / (first + second)
            )
            slope = (part(n - 2, 1) - part(n - 3, 1)) / before_last
            right = right + (right - slope) * (last / (last + before_last))
    return _C.cat([left, inner, right], dim)


@function(aliases=("trapz",))
def trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1
) -> Tensor:
    """Integrate y along dim by the trapezoidal rule.

    The samples are at x, or dx (1) apart.

    >>> torch.trapezoid(torch.tensor([1.0, 2.0, 4.0]))
    tensor(4.5000)
    """
    areas, dim = _areas("trapezoid", y, x, dx, dim)
    return areas.sum(dim)


@function()
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1
) -> Tensor:
    """Cumulative integral of y along dim by the trapezoidal rule.

    The samples are at x, or dx (1) apart.

    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 2.0, 4.0]))
    tensor([1.5000, 4.5000])
    """
    areas, dim = _areas("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(dim)


@function()
def gradient(
    input: Tensor,
    *,
    spacing: Number | Tensor | Sequence[Number | Tensor] = 1,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Derivatives of samples along dimensions by central differences, as a tuple.

    spacing is the distance between samples, or for each dimension a distance or a
    vector of coordinates. edge_order=2 uses three samples at the boundaries instead of
    two.

    >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0]))
    (tensor([3., 4., 5.]),)
    """
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient(): edge_order is {edge_order}; give 1 or 2")
    if input.dtype in (_C.uint8, _C.bool):
        raise RuntimeError(
            f"gradient(): not defined for {input.dtype}; convert it with .float()"
        )
    ndim = input.dim()
    dims = range(ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [dimension("gradient", d, ndim, scalars=False) for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"gradient(): {dim} names a dimension twice; name each once")
    if isinstance(spacing, (tuple, list)):
        if len(spacing) != len(dims):
            raise RuntimeError(
                f"gradient(): {len(spacing)} spacings are given for {len(dims)} "
                "dimensions; give one for each"
            )
        steps = list(spacing)
    else:
        one = spacing.item() if isinstance(spacing, _C.Tensor) else spacing
        steps = [one] * len(dims)
    found = []
    for d, step in zip(dims, steps, strict=True):
        if input.shape[d] <= edge_order:
            raise RuntimeError(
                f"gradient(): dimension {d} has size {input.shape[d]}; give at least "
                f"{edge_order + 1} samples"
            )
        if isinstance(step, _C.Tensor):
            if step.dim() != 1 or step.numel() != input.shape[d]:
                raise RuntimeError(
                    f"gradient(): the coordinates for dimension {d} have the shape "
                    f"{tuple(step.shape)}; give one for each of "
                    f"{input.shape[d]} samples"
                )
            step = step.diff()
        elif not isinstance(step, (int, float)):
            raise TypeError(
                f"gradient(): spacing is {step!r}; give numbers, or Tensors of "
                "coordinates"
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
        raise RuntimeError("diff(): the input has no dimension; give one of at least 1")
    if n < 0:
        raise RuntimeError(f"diff(): n is {n}; give 0 or more")
    parts = [part for part in (prepend, input, append) if part is not None]
    if len(parts) > 1:
        input = _C.cat(parts, dim)
    else:
        dimension("diff", dim, input.dim())
    for _ in range(min(n, input.size(dim))):  # more leave nothing
        size = max(input.size(dim) - 1, 0)
        after = input.narrow(dim, input.size(dim) - size, size)
        before = input.narrow(dim, 0, size)
        input = after != before if input.dtype is _C.bool else after - before
    return input if n else input.clone()
