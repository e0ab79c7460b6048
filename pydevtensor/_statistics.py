"""Statistics that are best said with other functions: the bodies of some of _C's.

_C checks and binds the arguments, and calls the function of the same name here with
those that were given, by name; `out` it sees to itself.
"""

from __future__ import annotations

from typing import Any

import pydevtensor as torch

Tensor = Any


def _last(input: Tensor, dim: int | None) -> tuple[Tensor, int]:
    """Input with dim as its last dimension, or flat, and dim counted from 0."""
    if dim is None:
        return input.flatten(), 0
    count = max(input.dim(), 1)
    if not -count <= dim < count:
        raise IndexError(
            f"dimension {dim} does not exist: give one from {-count} to {count - 1}"
        )
    dim %= count
    if input.dim() == 0:
        return input.reshape(1), 0
    return input.transpose(dim, -1), dim


# --- counts


def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements are not 0."""
    return (input != 0).sum(dim)


def bincount(
    input: Tensor, weights: Tensor | None = None, minlength: int = 0
) -> Tensor:
    """How often each number from 0 on is there, or what its weights amount to."""
    if input.dtype.is_floating_point or input.dtype is torch.bool:
        raise NotImplementedError(
            f"bincount(): the input is of type {input.dtype}; give integers"
        )
    if input.dim() != 1:
        raise RuntimeError(
            f"bincount(): the input has {input.dim()} dimensions; give it as one, for "
            "example flatten()"
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
        if input.min().item() < 0:
            raise RuntimeError(
                f"bincount(): the input holds {input.min().item()}; give numbers "
                "from 0 on"
            )
        size = max(size, input.max().item() + 1)
    if weights is None:
        weights = torch.ones(input.shape, dtype=torch.int64, device=input.device)
    elif weights.dtype is not torch.float32:
        weights = weights.to(torch.float64)
    counts = torch.zeros(size, dtype=weights.dtype, device=input.device)
    return counts.scatter_add_(0, input.to(torch.int64), weights)


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements are in each of as many bins of one width."""
    if not input.dtype.is_floating_point:
        raise NotImplementedError(
            f"histc(): not defined for tensors of type {input.dtype}; convert it "
            "first, for example with .float()"
        )
    if bins < 1:
        raise RuntimeError(f"histc(): bins is {bins}; give 1 or more")
    low, high = float(min), float(max)
    if low == high and input.numel():
        low, high = input.min().item(), input.max().item()
    if low == high:
        low, high = low - 1, high + 1
    if not (abs(low) < torch.inf and abs(high) < torch.inf):
        raise RuntimeError(
            f"histc(): the range from {low} to {high} is not finite; give min and max"
        )
    if low > high:
        raise RuntimeError(
            f"histc(): min is {low} and max {high}; give a max greater than min"
        )
    x = input.detach().flatten()
    inside = (x >= low) & (x <= high)
    place = torch.where(inside, (x - low) / (high - low) * bins, 0)
    place = place.to(torch.int64).clamp(0, bins - 1)
    counts = torch.zeros(bins, dtype=input.dtype, device=input.device)
    return counts.scatter_add_(0, place, inside.to(input.dtype))


# --- without NaN


def nansum(
    input: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The sum of the elements that are no NaN."""
    if input.dtype.is_floating_point:
        input = torch.where(input == input, input, 0)
    return input.sum(dim, keepdim, dtype=dtype)


def nanmean(
    input: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The mean of the elements that are no NaN."""
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            f"nanmean(): the input is of type {input.dtype}; convert it first, for "
            "example with .float()"
        )
    count = (input == input).sum(dim, keepdim)
    return nansum(input, dim, keepdim, dtype) / count


# --- differences


def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Each element less the one before it along dim, n times over."""
    if input.dim() == 0:
        raise RuntimeError("diff(): the input has no dimension; give one of at least 1")
    if n < 0:
        raise RuntimeError(f"diff(): n is {n}; give 0 or more")
    parts = [part for part in (prepend, input, append) if part is not None]
    if len(parts) > 1:
        input = torch.cat(parts, dim)
    else:
        _last(input, dim)  # checks dim
    # After as many rounds as there are elements nothing is left.
    for _ in range(n if n < input.size(dim) else input.size(dim)):
        size = max(input.size(dim) - 1, 0)
        after = input.narrow(dim, input.size(dim) - size, size)
        before = input.narrow(dim, 0, size)
        input = after != before if input.dtype is torch.bool else after - before
    return input if n else input.clone()


# --- places in order


def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
    name: str = "quantile",
    skips: bool = False,
) -> Tensor:
    """The element that a share q of the others lies below, between two if need be."""
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}(): interpolation is {interpolation!r}; give 'linear', 'lower', "
            "'higher', 'midpoint' or 'nearest'"
        )
    if input.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(
            f"{name}(): the input is of type {input.dtype}; give float32 or float64"
        )
    if not input.numel():
        raise RuntimeError(f"{name}(): the input has no elements; give some")
    if not isinstance(q, torch.Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}(): q is {q}; give a number from 0 to 1")
        q = torch.tensor(q, dtype=input.dtype, device=input.device)
    if q.dtype != input.dtype or q.device != input.device or q.dim() > 1:
        raise RuntimeError(
            f"{name}(): q is a Tensor of {q.dim()} dimensions and type {q.dtype} on "
            f"{q.device}; give one of at most 1 of type {input.dtype} on {input.device}"
        )
    if q.device.type == "cpu" and not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{name}(): q holds numbers beyond 0 to 1; give such ones")
    x, place = _last(input, dim)
    n = x.size(-1)
    ordered = x.sort(-1).values
    count = (x == x).sum(-1, keepdim=True)
    if skips:
        rank = q.reshape(-1) * (count - 1).clamp(0).to(x.dtype)
    else:  # one NaN, which is last, makes all of its row NaN
        rank = torch.where(count < n, n - 1, q.reshape(-1) * (n - 1)).to(x.dtype)
    if interpolation in ("lower", "higher", "nearest"):
        step = {"lower": "floor", "higher": "ceil", "nearest": "round"}[interpolation]
        result = ordered.gather(-1, getattr(rank, step)().to(torch.int64))
    else:
        below, above = rank.floor(), rank.ceil()
        low = ordered.gather(-1, below.to(torch.int64))
        high = ordered.gather(-1, above.to(torch.int64))
        part = 0.5 if interpolation == "midpoint" else rank - below
        part = torch.where(above > below, part, 0)
        result = torch.where(part > 0, low + part * (high - low), low)
    # The quantiles are in the last dimension, where dim was moved to.
    result = result.permute(result.dim() - 1, *range(result.dim() - 1))
    if keepdim:
        shape = [1] * input.dim() if dim is None else list(input.shape)
        if dim is not None and input.dim():
            result = result.unsqueeze(-1).transpose(place + 1, -1)
            shape[place] = 1
        result = result.reshape(result.size(0), *shape)
    elif dim is not None and input.dim():
        # The last dimension of the input stands where dim was.
        result = result.unsqueeze(-1).transpose(place + 1, -1).squeeze(place + 1)
    return result if q.dim() else result.squeeze(0)


def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> Tensor:
    """quantile() of the elements that are no NaN."""
    return quantile(input, q, dim, keepdim, interpolation, "nanquantile", True)


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The commonest element along dim, the least of several, and its last place."""
    x, place = _last(input, dim)
    n = x.size(-1)
    if n == 0:
        raise IndexError(
            f"mode(): dimension {dim} has size 0; give a dimension that has elements"
        )
    ordered, indices = x.sort(-1)
    number = torch.arange(n, device=x.device).expand(x.shape)
    change = torch.ones(x.shape, dtype=torch.bool, device=x.device)
    change[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    start = torch.where(change, number, 0).cummax(-1).values
    best = (number - start).argmax(-1, keepdim=True)
    index = indices.gather(-1, best)
    values = x.gather(-1, index)
    if input.dim() == 0:
        return values.reshape(()), index.reshape(())
    values, index = values.transpose(place, -1), index.transpose(place, -1)
    if keepdim:
        return values, index
    return values.squeeze(place), index.squeeze(place)


def isin(
    elements: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Which elements are among the others."""
    del assume_unique  # says nothing that would help here
    like = elements if isinstance(elements, torch.Tensor) else test_elements
    if not isinstance(like, torch.Tensor):
        raise TypeError("isin(): elements and test_elements are numbers; give a Tensor")
    elements = torch.as_tensor(elements, device=like.device)
    others = torch.as_tensor(test_elements, device=like.device).flatten()
    if elements.device != others.device:
        raise RuntimeError(
            f"isin(): elements are on {elements.device}, test_elements on "
            f"{others.device}; bring them to one device with .to()"
        )
    if others.numel() <= 16:
        found = torch.zeros(elements.shape, dtype=torch.bool, device=like.device)
        for i in range(others.numel()):
            found |= elements == others[i]
    else:
        others = others.sort().values
        place = torch.searchsorted(others, elements).clamp(0, others.numel() - 1)
        found = others[place] == elements
    return ~found if invert else found


# --- several variables


def cov(
    input: Tensor,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariances of the rows, each of which holds one variable's observations."""
    if input.dim() > 2:
        raise RuntimeError(
            f"cov(): the input has {input.dim()} dimensions; give at most 2"
        )
    if input.dtype is torch.bool:
        raise RuntimeError("cov(): the input holds bools; give numbers")
    x = input.reshape(1, -1) if input.dim() < 2 else input
    if not x.dtype.is_floating_point:
        x = x.to(torch.get_default_dtype())
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.dim() > 1 or given.numel() != x.size(1):
            raise RuntimeError(
                f"cov(): {name} has shape {tuple(given.shape)}; give {x.size(1)} "
                "numbers, one for each observation"
            )
        if given.dtype.is_floating_point != (name == "aweights"):
            raise RuntimeError(
                f"cov(): {name} is of type {given.dtype}; give "
                + ("floats" if name == "aweights" else "integers")
            )
        if bool((given < 0).any()):
            raise RuntimeError(f"cov(): {name} holds negative numbers; give none")
        given = given.to(x.dtype)
        weights = given if weights is None else weights * given
    if weights is None:
        total = x.size(1)
        mean = x.mean(1, keepdim=True)
        rest = total - correction
    else:
        total = weights.sum()
        mean = (x * weights).sum(1, keepdim=True) / total
        if aweights is None:
            rest = total - correction
        else:
            rest = total - correction * (weights * aweights.to(x.dtype)).sum() / total
    off = x - mean
    product = off @ (off if weights is None else off * weights).T
    rest = max(float(rest), 0.0)
    result = product / rest
    return result.reshape(()) if input.dim() < 2 else result


def corrcoef(input: Tensor) -> Tensor:
    """The correlations of the rows, each of which holds one variable's observations."""
    if input.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): the input has {input.dim()} dimensions; give at most 2"
        )
    c = cov(input)
    if c.dim() == 0:
        return c / c
    number = torch.arange(c.size(0), device=c.device)
    deviation = c[number, number].sqrt()
    return (c / deviation.reshape(-1, 1) / deviation).clamp(-1, 1)
