"""The functions of torch.masked under their public names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C, linalg
from pydevtensor._functions import function
from pydevtensor._functions.dtypes import iinfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydevtensor._functions.types import Dtype, Number, Tensor

# --- elements and masks --------------------------------------------------------------


def _filled(x: Tensor, mask: Tensor | None, fill: float) -> Tensor:
    """The elements that count, and `fill` in the place of the others."""
    if mask is None:
        return x
    if mask.dtype != _C.bool:
        raise TypeError(f"mask is of {mask.dtype}; give a Tensor of bool")
    other = _C.tensor(fill, dtype=x.dtype, device=x.device)
    return _C.where(mask, x, other).expand_as(x)


def _cast(x: Tensor, dtype: Dtype | None, wide: bool = False) -> Tensor:
    """x as dtype; wide: integers as int64 without one."""
    if dtype is None and wide and not (x.is_floating_point() or x.is_complex()):
        dtype = _C.int64
    return x if dtype is None else x.to(dtype)


def _least(x: Tensor, sign: int) -> float:
    """The least number of x's type; with sign -1 the greatest."""
    if x.is_floating_point() or x.is_complex():
        return -sign * math.inf
    if x.dtype == _C.bool:
        return sign < 0
    return iinfo(x.dtype).min if sign > 0 else iinfo(x.dtype).max


def _dims(x: Tensor, dim: Any) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(x.dim()))
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _floating(x: Tensor) -> None:
    if not (x.is_floating_point() or x.is_complex()):
        raise ValueError(f"input is of {x.dtype}; give dtype, such as torch.float32")


def _count(x: Tensor, mask: Tensor | None, dims: tuple[int, ...]) -> Tensor:
    """How many elements count, in dimensions of size 1."""
    return _filled(_C.ones_like(x, dtype=_C.int64), mask, 0).sum(dims, keepdim=True)


def _reduced(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Without dimensions of size 1, unless they stay."""
    return x if keepdim else x.sum(dims)


# --- reductions over some dimensions -------------------------------------------------


def _over(
    reduce: Callable[[Tensor, Tensor | None, Any, bool], Tensor],
    wide: bool,
    /,
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    x = _cast(input, dtype, wide)
    return reduce(x, mask, _dims(x, dim), keepdim)


@function(
    like="_over", given=(lambda x, mask, *how: _filled(x, mask, 0).sum(*how), True)
)
def sum() -> Tensor:
    """Sum of the elements that count.

    dim: a dimension or several; None or (): all of them.
    keepdim: they stay, with size 1.
    dtype: the type to compute in; None: input's, or int64 for integers.
    mask: True where an element counts.

    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.masked.sum(x, 1, mask=torch.tensor([True, False]))
    tensor([1., 3.])
    """


def _product(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool) -> Tensor:
    x = _filled(x, mask, 1)
    for dim in sorted((d % max(x.dim(), 1) for d in dims), reverse=True):
        x = x.prod(dim, keepdim)
    return x


@function(like="_over", given=(_product, True))
def prod() -> Tensor:
    """Product of the elements that count.

    dim, keepdim, dtype, mask: as in sum().

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.prod(torch.tensor([2, 3, 4]), mask=mask)
    tensor(8)
    """


@function(
    like="_over",
    given=(lambda x, mask, *how: _filled(x, mask, _least(x, 1)).amax(*how), False),
)
def amax() -> Tensor:
    """Greatest of the elements that count.

    dim, keepdim, mask: as in sum().
    dtype: None for input's.

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.amax(torch.tensor([5, 7, 6]), mask=mask)
    tensor(6)
    """


@function(
    like="_over",
    given=(lambda x, mask, *how: _filled(x, mask, _least(x, -1)).amin(*how), False),
)
def amin() -> Tensor:
    """Least of the elements that count.

    dim, keepdim, mask: as in sum().
    dtype: None for input's.

    >>> mask = torch.tensor([False, True, True])
    >>> torch.masked.amin(torch.tensor([5, 7, 6]), mask=mask)
    tensor(6)
    """


def _mean(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool) -> Tensor:
    _floating(x)
    if mask is None:
        return x.mean(dims, keepdim)
    total = _filled(x, mask, 0).sum(dims, keepdim=True)
    return _reduced(total / _count(x, mask, dims), dims, keepdim)


@function(like="_over", given=(_mean, False))
def mean() -> Tensor:
    """Mean of the elements that count.

    dim, keepdim, mask: as in sum().
    dtype: None for input's, which may not be an integer type (ValueError).

    >>> mask = torch.tensor([True, True, False])
    >>> torch.masked.mean(torch.tensor([1.0, 2.0, 9.0]), mask=mask)
    tensor(1.5000)
    """


def _logsumexp(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool) -> Tensor:
    return _filled(x, mask, _least(x, 1)).logsumexp(dims, keepdim).to(x.dtype)


@function(like="_over", given=(_logsumexp, False))
def logsumexp() -> Tensor:
    """Logarithm of the sum of the exponentials of the elements that count.

    dim, keepdim, mask: as in sum().
    dtype: that of the result, too; None for input's.

    >>> mask = torch.tensor([True, True, False])
    >>> torch.masked.logsumexp(torch.zeros(3), mask=mask)
    tensor(0.6931)
    """


@function()
def norm(
    input: Tensor,
    ord: Number = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Norm of the elements that count, as linalg.vector_norm() computes it.

    ord: the order.
    dim, keepdim, mask: as in sum().
    dtype: None for input's.

    >>> mask = torch.tensor([True, True, False])
    >>> torch.masked.norm(torch.tensor([3.0, 4.0, 9.0]), mask=mask)
    tensor(5.)
    """
    x = _filled(_cast(input, dtype), mask, math.inf if ord == -math.inf else 0)
    return linalg.vector_norm(x, ord, _dims(x, dim), keepdim)


def _spread(
    finish: Callable[[Tensor], Tensor],
    /,
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: Number | None = None,
    keepdim: bool = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    if correction is not None and unbiased is not None:
        raise AssertionError(
            "unbiased and correction were given; give correction alone"
        )
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    x = _cast(input, dtype)
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.float32)
    dims = _dims(x, dim)
    count = _count(x, mask, dims)
    apart = x - _filled(x, mask, 0).sum(dims, keepdim=True) / count
    squares = _filled((apart * apart.conj()).real, mask, 0)
    divisor = (count.to(squares.dtype) - correction).clamp(min=0)
    whole = squares.sum(dims, keepdim=True) / divisor
    return finish(_reduced(whole, dims, keepdim)).to(x.dtype)


@function(like="_spread", given=(lambda x: x,))
def var() -> Tensor:
    """Variance of the elements that count: the sum of the squares of differences to
    their mean, divided by their number less `correction`.

    unbiased: instead of correction, True for 1 and False for 0.
    correction: 1 without both; AssertionError for both.
    dim, keepdim, mask: as in sum().
    dtype: None for input's, or float32 for integers.

    >>> mask = torch.tensor([True, True, False])
    >>> torch.masked.var(torch.tensor([1.0, 3.0, 9.0]), mask=mask)
    tensor(2.)
    """


@function(like="_spread", given=(lambda x: x.sqrt(),))
def std() -> Tensor:
    """Root of the variance of the elements that count.

    unbiased, correction, dim, keepdim, dtype, mask: as in var().

    >>> mask = torch.tensor([True, True, False])
    >>> torch.masked.std(torch.tensor([1.0, 3.0, 9.0]), mask=mask)
    tensor(1.4142)
    """


# --- reductions along one dimension --------------------------------------------------


def _index(
    find: Callable[[Tensor, int | None, bool], Tensor],
    sign: int,
    /,
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    x = _cast(input, dtype)
    return find(_filled(x, mask, _least(x, sign)), dim, keepdim).to(x.dtype)


@function(like="_index", given=(_C.argmax, 1))
def argmax() -> Tensor:
    """Index of the greatest of the elements that count, in input's type.

    dim: one dimension; None: the index in the flattened input.
    keepdim, mask: as in sum().
    dtype: the type to compare in, and of the result; None: input's.

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.argmax(torch.tensor([5, 7, 6]), mask=mask)
    tensor(2)
    """


@function(like="_index", given=(_C.argmin, -1))
def argmin() -> Tensor:
    """Index of the least of the elements that count, in input's type.

    dim, keepdim, dtype, mask: as in argmax().

    >>> mask = torch.tensor([False, True, True])
    >>> torch.masked.argmin(torch.tensor([5, 7, 6]), mask=mask)
    tensor(2)
    """


@function()
def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Median of the elements that count and are not NaN: of two in the middle the
    lesser one.

    dim: one dimension.
    keepdim, mask: as in sum().
    dtype: None for input's.

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.median(torch.tensor([1.0, 9.0, 3.0]), mask=mask)
    tensor(1.)
    """
    x = _cast(input, dtype)
    floats = x if x.is_floating_point() else x.to(_C.float64)
    middle = _filled(floats, mask, math.nan).nanmedian(dim, keepdim).values
    return middle.to(x.dtype)


# --- results of input's shape --------------------------------------------------------


@function()
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Logarithm of exp(input) + exp(other), each where its own mask lets it count.

    other: a Tensor of a shape that broadcasts.
    dtype: as in amax().
    input_mask, other_mask: as mask in sum().

    >>> zero, mask = torch.zeros(2), torch.tensor([True, False])
    >>> torch.masked.logaddexp(zero, zero, other_mask=mask)
    tensor([0.6931, 0.0000])
    """
    return _C.logaddexp(
        _filled(_cast(input, dtype), input_mask, -math.inf),
        _filled(_cast(other, dtype), other_mask, -math.inf),
    )


def _along(
    compute: Callable[[Tensor, int], Tensor],
    fill: float,
    wide: bool,
    /,
    input: Tensor,
    dim: int,
    *,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    return compute(_filled(_cast(input, dtype, wide), mask, fill), dim)


@function(like="_along", given=(lambda x, dim: x.cumsum(dim), 0, True))
def cumsum() -> Tensor:
    """Sums along a dimension of the elements so far that count.

    dim: the dimension.
    dtype, mask: as in sum().

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.cumsum(torch.tensor([1, 2, 3]), 0, mask=mask)
    tensor([1, 1, 4])
    """


@function(like="_along", given=(lambda x, dim: x.cumprod(dim), 1, True))
def cumprod() -> Tensor:
    """Products along a dimension of the elements so far that count.

    dim: the dimension.
    dtype, mask: as in sum().

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.cumprod(torch.tensor([2, 3, 4]), 0, mask=mask)
    tensor([2, 2, 8])
    """


@function(like="_along", given=(lambda x, dim: x.softmax(dim), -math.inf, False))
def softmax() -> Tensor:
    """Softmax of the elements that count; 0 for the others.

    dim: the dimension.
    dtype: None for input's.
    mask: as in sum().

    >>> mask = torch.tensor([True, True, False])
    >>> torch.masked.softmax(torch.zeros(3), 0, mask=mask)
    tensor([0.5000, 0.5000, 0.0000])
    """


@function(like="_along", given=(lambda x, dim: x.log_softmax(dim), -math.inf, False))
def log_softmax() -> Tensor:
    """Logarithm of softmax(); -inf for elements that do not count.

    dim, dtype, mask: as in softmax().

    >>> mask = torch.tensor([True, True, False])
    >>> torch.masked.log_softmax(torch.zeros(3), 0, mask=mask)
    tensor([-0.6931, -0.6931,    -inf])
    """


@function(like="_along", given=(lambda x, dim: (-x).softmax(dim), math.inf, False))
def softmin() -> Tensor:
    """Softmax of the negative input.

    dim, dtype, mask: as in softmax().

    >>> mask = torch.tensor([True, True, False])
    >>> torch.masked.softmin(torch.zeros(3), 0, mask=mask)
    tensor([0.5000, 0.5000, 0.0000])
    """


@function()
def normalize(
    input: Tensor,
    ord: Number,
    dim: int,
    *,
    eps: Number = 1e-12,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements that count, divided by their norm along a dimension, or by eps if
    that is greater; 0 for the others.

    ord: the order of the norm.
    dim, dtype, mask: as in softmax().
    eps: the least divisor.

    >>> mask = torch.tensor([True, True, False])
    >>> torch.masked.normalize(torch.tensor([3.0, 4.0, 9.0]), 2, 0, mask=mask)
    tensor([0.6000, 0.8000, 0.0000])
    """
    x = _cast(input, dtype)
    length = norm(x, ord, dim, keepdim=True, mask=mask)
    return _filled(x, mask, 0) / length.clamp(min=eps)
