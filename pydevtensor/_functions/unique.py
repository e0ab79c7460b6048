"""Distinct elements, and those that differ from the one before."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def _order_of_rows(rows):
    """Where the rows are in lexicographic order."""
    places = _C.arange(rows.size(0), device=rows.device)
    for column in reversed(rows.unbind(1)):  # stable sorts: the first column decides
        places = places[column[places].argsort(stable=True)]
    return places


def _unique(input, dim, consecutive, return_inverse, return_counts):
    """The values, and the inverse and the counts if they are wanted."""
    x = input.detach()
    if x.is_complex():
        raise NotImplementedError(
            f"elements of {x.dtype} have no order; call it with dim=0 on "
            "torch.view_as_real(x.reshape(-1))"
        )
    rows, others = x.reshape(-1), []
    if dim is not None:
        turned = x.movedim(dim, 0) if x.dim() else rows
        n, *others = turned.shape
        if 0 in others:
            raise RuntimeError(
                f"another dimension than {dim} has size 0, so its parts hold nothing "
                "to compare; give that dimension, or none"
            )
        rows = turned.reshape(n, prod(others))
    n, places = rows.size(0), None
    if consecutive:
        ordered = rows
    elif dim is None:
        ordered, places = rows.sort(stable=True)
    else:
        places = _order_of_rows(rows)
        ordered = rows[places]
    change = _C.ones(n, dtype=_C.bool, device=x.device)
    differs = ordered[1:] != ordered[:-1]
    change[1:] = differs if dim is None else differs.any(-1)
    starts = change.nonzero().reshape(-1)
    found = [ordered[starts]]
    if dim is not None:
        parts = found[0].reshape(starts.numel(), *others)
        found = [parts.movedim(0, dim).contiguous()]
    if return_inverse:
        group = change.cumsum(0) - 1
        inverse = group if places is None else group.scatter(0, places, group)
        found.append(inverse.reshape(x.shape) if dim is None else inverse)
    if return_counts:
        found.append(_C.cat([starts[1:], starts.new_full((1,), n)]) - starts)
    return found


@function(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements, sorted, in one dimension; with dim, the distinct slices along it.

    return_inverse adds the index of each element among them, return_counts the number
    of times each occurs. Every NaN is distinct. Synchronizes with a GPU.

    >>> torch.tensor([3, 1, 3, 2]).unique(return_counts=True)
    (tensor([1, 2, 3]), tensor([1, 1, 2]))
    """  # noqa: E501
    values, *rest = _unique(input, dim, False, return_inverse, return_counts)
    if input.requires_grad:
        mark = _C._unique2 if dim is None else _C._unique_dim
        values = mark(values, input)
    return (values, *rest) if rest else values


@function(method=True)
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The elements that differ from the one before; otherwise like unique().

    return_inverse, return_counts and dim are those of unique().

    >>> torch.tensor([1, 1, 2, 2, 1]).unique_consecutive()
    tensor([1, 2, 1])
    """
    values, *rest = _unique(input, dim, True, return_inverse, return_counts)
    if input.requires_grad:
        values = _C._unique_consecutive(values, input)
    return (values, *rest) if rest else values
