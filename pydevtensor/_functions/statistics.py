"""Statistics: counts, sums without NaN, quantiles, covariances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._functions.checks import floating, same_device

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dims, Dtype, Tensor, Value


def _last(input: Tensor, dim: int | None) -> tuple[Tensor, int]:
    """input with dim as its last dimension, or flattened, and dim counted from 0."""
    if dim is None:
        return input.flatten(), 0
    x = input.movedim(dim, -1)
    return (x, dim % x.dim()) if x.dim() else (x.reshape(1), 0)


@function(method=True, out=True, results=("min", "max"))
def aminmax(
    input: Tensor, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """Minimum and maximum of all elements or along dim, as (min, max).

    Raises RuntimeError for an empty reduction.

    keepdim  the reduced dimensions stay, with size 1

    See also amin() and amax().

    >>> x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    >>> x.aminmax(dim=1)
    torch.return_types.aminmax(
    min=tensor([1., 2.]),
    max=tensor([5., 6.]))
    """
    dims = () if dim is None else dim
    return input.amin(dims, keepdim), input.amax(dims, keepdim)


@function(method=True)
def count_nonzero(input: Tensor, dim: Dims | None = None) -> Tensor:
    """Number of nonzero elements, of all or along dim.

    >>> x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    >>> x.count_nonzero()
    tensor(6)
    """
    return (input != 0).sum(dim)


@function(method=True, out=True)
def nansum(
    input: Tensor,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
) -> Tensor:
    """Sum of the elements, treating NaN as 0.

    dim      the dimension or dimensions to reduce, None for all
    keepdim  the reduced dimensions stay, with size 1
    dtype    convert to it first; by default integers and bools become int64

    >>> x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    >>> x.nansum(dim=1)
    tensor([ 9., 12.])
    """
    if input.dtype.is_floating_point or input.dtype.is_complex:
        input = _C.where(input == input, input, 0)
        dtype = input.dtype if dtype is None else dtype  # also under autocast
    return _C._named(input.sum(dim, keepdim, dtype=dtype), "NansumBackward0")


@function(method=True, out=True, like="nansum")
def nanmean(
    input: Tensor, dim: Dims | None = None, keepdim: bool = False, **dtype: Any
) -> Tensor:
    """Mean of the elements that are not NaN.

    RuntimeError for integers.

    dtype  of the sum, by default input's

    >>> x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    >>> x.nanmean(dim=1)
    tensor([3., 4.])
    """
    floating("input", input)
    count = (input == input).sum(dim, keepdim)
    return nansum(input, dim, keepdim, **dtype) / count


def _check_quantile(input, q, interpolation):
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"interpolation is {interpolation!r}; give 'linear', 'lower', 'higher', "
            "'midpoint' or 'nearest'"
        )
    if input.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(
            f"the input is of type {input.dtype}; give float32 or float64"
        )
    if not input.numel():
        raise RuntimeError("the input has no elements; give some")
    if not isinstance(q, _C.Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"q is {q}; give a number from 0 to 1")
    elif q.dtype != input.dtype or q.device != input.device or q.dim() > 1:
        raise RuntimeError(
            f"q is a Tensor of {q.dim()} dimensions and type {q.dtype} on {q.device}; "
            f"give one of at most 1 of type {input.dtype} on {input.device}"
        )
    elif q.device.type == "cpu" and not ((q >= 0) & (q <= 1)).all():
        raise RuntimeError("q has elements outside 0 to 1; give numbers from 0 to 1")


def _at_ranks(ordered, rank, interpolation):
    """The elements of sorted rows at ranks that need not be whole."""
    if interpolation in ("lower", "higher", "nearest"):
        step = {"lower": "floor", "higher": "ceil", "nearest": "round"}[interpolation]
        return ordered.gather(-1, getattr(rank, step)().to(_C.int64))
    below, above = rank.floor(), rank.ceil()
    low = ordered.gather(-1, below.to(_C.int64))
    high = ordered.gather(-1, above.to(_C.int64))
    part = 0.5 if interpolation == "midpoint" else rank - below
    part = _C.where(above > below, part, 0)
    return _C.where(part > 0, low + part * (high - low), low)


def _quantile(
    skip_nan: bool,
    /,
    input: Tensor,
    q: Value,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    input, q = _C._autocast_float_on_cpu(input, q)
    _check_quantile(input, q, interpolation)
    if not isinstance(q, _C.Tensor):
        q = _C.tensor(q, dtype=input.dtype, device=input.device)
    x, place = _last(input, dim)
    n = x.size(-1)
    count = (x == x).sum(-1, keepdim=True)
    if skip_nan:
        rank = q.reshape(-1) * (count - 1).clamp(0).to(x.dtype)
    else:  # a NaN, sorted last, is the quantile of its row
        rank = _C.where(count < n, n - 1, q.reshape(-1) * (n - 1)).to(x.dtype)
    result = _at_ranks(x.sort(-1).values, rank, interpolation).movedim(-1, 0)
    if keepdim:
        sizes = enumerate(input.shape)
        shape = [1 if dim is None or d == place else n for d, n in sizes]
        result = result.reshape(result.size(0), *shape)
    return result if q.dim() else result.squeeze(0)


@function(method=True, out=True, like="_quantile", given=(False,))
def quantile() -> Tensor:
    """Quantiles q, from 0 to 1, of all elements or along dim.

    interpolation between two elements is 'linear', 'lower', 'higher', 'midpoint' or
    'nearest'. A vector q adds a first dimension. NaN if an element is NaN.

    RuntimeError for types other than float32 and float64, for no elements, and for a q
    outside 0 to 1.

    keepdim  the reduced dimensions stay, with size 1

    >>> x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    >>> x.quantile(0.5)
    tensor(3.5000)
    """


@function(method=True, out=True, like="quantile", given=(True,))
def nanquantile() -> Tensor:
    """quantile() of the elements that are not NaN.

    q, dim, keepdim and interpolation are those of quantile().

    >>> x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    >>> x.nanquantile(0.5)
    tensor(3.5000)
    """


@function(method=True, out=True, results=("values", "indices"))
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Most frequent value along dim, the smallest of several, and its last index.

    Returns (values, indices).

    keepdim  dim stays, with size 1

    >>> x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    >>> x.mode(dim=1)
    torch.return_types.mode(
    values=tensor([1., 2.]),
    indices=tensor([0, 1]))
    """
    x, place = _last(input, dim)
    n = x.size(-1)
    ordered, indices = x.sort(-1)
    number = _C.arange(n, device=x.device).expand(x.shape)
    change = _C.ones(x.shape, dtype=_C.bool, device=x.device)
    change[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    start = _C.where(change, number, 0).cummax(-1).values
    best = (number - start).argmax(-1, keepdim=True)
    index = indices.gather(-1, best).movedim(-1, place)
    values = x.movedim(-1, place).gather(place, index)
    if keepdim and input.dim():
        return values, index
    return values.squeeze(place), index.squeeze(place)


@function(out=True)
def isin(
    elements: Value,
    test_elements: Value,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Whether each element equals one of test_elements: bools of elements' shape.

    invert=True negates the result.

    assume_unique has no effect.

    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
    tensor([False,  True, False])
    """
    del assume_unique  # allows shortcuts that are not taken
    like = elements if isinstance(elements, _C.Tensor) else test_elements
    if not isinstance(like, _C.Tensor):
        raise TypeError("elements and test_elements are numbers; give a Tensor")
    elements = _C.as_tensor(elements, device=like.device)
    others = _C.as_tensor(test_elements, device=like.device).flatten()
    same_device(elements, others)
    dtype = _C.promote_types(elements.dtype, others.dtype)
    elements, others = elements.to(dtype), others.to(dtype)
    for each in (elements, others):
        if each.is_complex():
            raise RuntimeError(
                f"elements of {each.dtype} have no order to look them up by; compare "
                "with (x[..., None] == y).any(-1)"
            )
    if others.numel() <= 16:
        found = _C.zeros(elements.shape, dtype=_C.bool, device=like.device)
        for i in range(others.numel()):
            found |= elements == others[i]
    else:
        others = others.sort().values
        place = _C.searchsorted(others, elements).clamp(0, others.numel() - 1)
        found = others[place] == elements
    return ~found if invert else found


@function(method=True)
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariance matrix of variables in rows and observations in columns.

    fweights is the integer frequency of each observation, aweights its floating weight.

    correction  subtracted from the number of observations, by which the sum of products
                is divided: 1 for a sample, 0 for all there are

    >>> x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    >>> x.cov()
    tensor([[ 4., -2.],
            [-2.,  4.]])
    """
    if input.dim() > 2:
        raise RuntimeError(f"the input has {input.dim()} dimensions; give at most 2")
    if input.dtype is _C.bool:
        raise RuntimeError("the input holds bools; give numbers")
    x = input.reshape(1, -1) if input.dim() < 2 else input
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.get_default_dtype())
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.dim() > 1 or given.numel() != x.size(1):
            raise RuntimeError(
                f"{name} has shape {tuple(given.shape)}; give {x.size(1)} numbers, one "
                "for each observation"
            )
        if given.dtype.is_floating_point != (name == "aweights"):
            kind = "floats" if name == "aweights" else "integers"
            raise RuntimeError(f"{name} is of type {given.dtype}; give {kind}")
        if (given < 0).any():
            raise RuntimeError(f"{name} has negative elements; give 0 or more")
        weights = given if weights is None else weights * given
    if weights is None:
        x = x - x.mean(1, keepdim=True)
        product = x @ x.mH
        degrees: Any = max(x.size(1) - correction, 0)
    else:
        total = weights.sum()
        x = x - (x * weights).sum(1, keepdim=True) / total
        product = x @ (x * weights).mH
        lost = 1 if aweights is None else (weights * aweights).sum() / total
        degrees = (total - correction * lost).clamp(min=0)
    result = product / degrees
    return result.squeeze()  # a number for one variable


@function(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """Correlation matrix of variables in rows and observations in columns.

    >>> x = torch.tensor([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    >>> x.corrcoef()
    tensor([[ 1.0000, -0.5000],
            [-0.5000,  1.0000]])
    """
    c = cov(input)
    if c.dim() == 0:
        return c / c
    deviation = c.diagonal().real.sqrt()
    c = c / deviation.reshape(-1, 1) / deviation
    if c.is_complex():
        return _C.complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1))
    return c.clamp(-1, 1)
