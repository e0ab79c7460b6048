"""Which parts of a DTensor a call needs, and which parts of its result it makes.

A rule takes the Layout of the tensor and gives a Plan, by calling the function with a
tensor of the device meta: from the sizes or strides of its result follows where each
dimension is. No rule reads data, so all ranks make the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any

from pydevtensor import _C
from pydevtensor.distributed.tensor._layout import Layout
from pydevtensor.distributed.tensor._placements import (
    NormPartial,
    Partial,
    Replicate,
    Shard,
)

Tensor = _C.Tensor

# By the name of a reduction the placement of its result where the reduced dimension was
# divided; None: it needs the whole dimension.
REDUCTIONS: dict[str, str | None] = dict.fromkeys(
    ("std", "var", "std_mean", "var_mean", "median", "nanmedian", "nanmean", "argmax")
)
REDUCTIONS |= {"argmin": None, "logsumexp": None, "aminmax": None, "mean": "avg"}
REDUCTIONS |= {"sum": "sum", "nansum": "sum", "count_nonzero": "sum", "any": "sum"}
REDUCTIONS |= {"amax": "max", "max": "max", "amin": "min", "min": "min"}
REDUCTIONS |= {"prod": "product", "all": "product"}
REDUCTIONS |= {"norm": "norm", "vector_norm": "norm"}
_BY_STRIDES = """
transpose permute swapaxes swapdims movedim moveaxis t adjoint T H mT mH select narrow
__getitem__ chunk split tensor_split unbind expand expand_as
"""
_BY_SIZES = """
view reshape flatten unflatten ravel squeeze unsqueeze view_as reshape_as
"""
# Views that leave each dimension as it is, or select from it; and those of the same
# elements in the same order.
BY_STRIDES, BY_SIZES = {*_BY_STRIDES.split()}, {*_BY_SIZES.split()}


# Strides by which a dimension is known again: primes, one for each dimension.
_LABELS = [1_009, 1_013, 1_019, 1_021, 1_031, 1_033, 1_039, 1_049]
_LABELS += [1_051, 1_061, 1_063, 1_069, 1_087, 1_091, 1_093, 1_097]


@dataclass
class Plan:
    """needs: the placements in which the call takes its tensor. gives: the layouts of
    its results. run: makes the parts of the results from the part of the tensor; None:
    the function itself does."""

    needs: tuple[Any, ...]
    gives: list[Layout]
    run: Callable[[Tensor], Any] | None = None


def listed(found: Any) -> list[Any]:
    """The results of a call."""
    return [found] if isinstance(found, Tensor) else [*found]


def reduction(
    name: str, func: Any, x: Any, args: Sequence[Any], named: dict[str, Any]
) -> Plan:
    """The plan of a sum, an extreme, a norm, or another reduction of a DTensor x."""
    layout: Layout = x._layout
    labels = range(2, 2 + len(layout.shape))
    probe = _C.empty([*labels], dtype=x.dtype, device="meta")
    found = func(probe, *args, **named)
    sizes = [*listed(found)[0].shape]
    kept = {label: sizes.index(label) for label in labels if label in sizes}
    shape = tuple(1 if n < 2 else layout.shape[n - 2] for n in sizes)
    into = _placement(name, args, named) if isinstance(found, Tensor) else None
    if getattr(func, "__module__", "") == "pydevtensor.linalg" and name == "norm":
        into = into if _is_of_vectors(x, *args, **named) else None
    divided = [
        layout.mesh.size(i)
        for i, each in enumerate(layout.placements)
        if isinstance(each, Shard) and each.dim + 2 not in kept
    ]
    if into is not None and divided:
        op, recorded = into.reduce_op, _C.is_grad_enabled() and x.requires_grad
        uneven = any(n % prod(divided) for n in _cut_sizes(layout, kept))
        if (
            (op == "avg" and uneven)
            or (op in ("max", "min") and layout.some_empty())
            or (op == "product" and recorded)  # a term may be 0
        ):
            into = None
    needs: list[Any] = []
    gives: list[Any] = []
    for each in layout.placements:
        if isinstance(each, Shard):
            at = kept.get(each.dim + 2)
            whole = at is None and into is None
            needs.append(Replicate() if whole else each)
            gives.append(Shard(at) if at is not None else into or Replicate())
        else:
            same = _same_terms(name, each, into, x.dtype)
            needs.append(each if same else Replicate())
            gives.append(needs[-1])
    plan = Plan(
        tuple(needs), [Layout(shape, layout.mesh, tuple(gives))] * len(listed(found))
    )
    if into == Partial("avg") and divided:
        plan.run = lambda part: _scaled(func(part, *args, **named), prod(divided))
    return plan


def _cut_sizes(layout: Layout, kept: dict[int, int]) -> list[int]:
    """The sizes of the divided dimensions that are reduced."""
    dims = {each.dim for each in layout.placements if isinstance(each, Shard)}
    return [layout.shape[dim] for dim in dims if dim + 2 not in kept]


def _is_of_vectors(
    x: Any, ord: Any = None, dim: Any = None, *unused: Any, **named: Any
) -> bool:
    """Whether linalg.norm() is the norm of all elements, or along a dimension."""
    count = x.ndim if dim is None else len(dim) if isinstance(dim, Sequence) else 1
    return ord in (None, "fro") or count == 1


def _placement(name: str, args: Sequence[Any], named: dict[str, Any]) -> Partial | None:
    """That of a result to which each rank has a term."""
    op = REDUCTIONS[name]
    if op != "norm":
        return Partial(op) if op else None
    p = args[0] if args else named.get("p", named.get("ord", 2))
    p = 2 if p in (None, "fro") else p
    if not isinstance(p, (int, float)):
        return None
    at_limits = {inf: Partial("max"), -inf: Partial("min"), 0: Partial("sum")}
    return at_limits.get(p) or NormPartial(norm_type=p)


def _same_terms(name: str, each: Any, into: Any, dtype: Any) -> bool:
    """Whether the terms of a tensor make the terms of the result."""
    if not isinstance(each, Partial):
        return True
    if name == "sum" and dtype != _C.bool:
        return each in (Partial("sum"), Partial("avg"))
    extremes = ("amax", "amin", "max", "min")
    return name in extremes and each == into


def _scaled(found: Tensor, ranks: int) -> Tensor:
    """A rank's mean, whose gradient is that of the mean of all ranks' means."""
    if found.requires_grad:
        return found / ranks + (found * (1 - 1 / ranks)).detach()
    return found


def view(
    name: str, func: Any, x: Any, args: Sequence[Any], named: dict[str, Any]
) -> Plan:
    """The plan of a view. RuntimeError for sizes that join or cut rows of ranks."""
    layout: Layout = x._layout
    found = listed(func(layout.like(x.dtype), *args, **named))
    if name in BY_SIZES:
        places = [_by_sizes(name, layout, tuple(found[0].shape))]
    else:
        like = _C.empty_strided(
            layout.shape, _LABELS[: len(layout.shape)], device="meta"
        )
        places = [_by_strides(like, e) for e in listed(func(like, *args, **named))]
    needs = tuple(
        Replicate()
        if isinstance(each, Shard) and any(each.dim not in place for place in places)
        else each
        for each in layout.placements
    )
    gives = [
        Layout(
            tuple(each.shape),
            layout.mesh,
            tuple(Shard(place[p.dim]) if isinstance(p, Shard) else p for p in needs),
            tuple(each.stride()),
        )
        for each, place in zip(found, places, strict=True)
    ]
    plan = Plan(needs, gives)
    if name in BY_SIZES or name.startswith("expand"):
        form = {"view": "view", "view_as": "view"}.get(name, "reshape")
        form = "expand" if name.startswith("expand") else form
        sizes = gives[0].part_shape()
        plan.run = lambda part: getattr(part, form)(sizes)
    return plan


def _by_strides(like: Tensor, found: Tensor) -> dict[int, int]:
    """By each dimension that a view has as it was, its place in the view."""
    now = [*zip(found.shape, found.stride(), strict=True)]
    place = {}
    for dim, each in enumerate(zip(like.shape, like.stride(), strict=True)):
        if now.count(each) == 1:
            place[dim] = now.index(each)
    return place


def _by_sizes(name: str, layout: Layout, shape: tuple[int, ...]) -> dict[int, int]:
    """By each divided dimension the one of the result that is divided in its place."""
    place = {}
    for dim in {each.dim for each in layout.placements if isinstance(each, Shard)}:
        length, before = layout.shape[dim], prod(layout.shape[:dim])
        found = [j for j in range(len(shape)) if prod(shape[:j]) == before]
        ranks = prod(
            layout.mesh.size(i)
            for i, each in enumerate(layout.placements)
            if each == Shard(dim)
        )
        fits = [j for j in found if shape[j] == length]
        if not length % ranks:
            fits = fits or [j for j in found if not shape[j] % ranks]
        if not fits:
            raise RuntimeError(
                f"{name}() of a DTensor of shape {[*layout.shape]} with placements "
                f"{layout.placements} to {[*shape]} would divide rows of a rank; "
                "redistribute() it first, or compute with to_local() or full_tensor()"
            )
        place[dim] = fits[-1]
    return place


def joined(shapes: Sequence[tuple[int, ...]], layouts: Sequence[Layout]) -> Layout:
    """The layout in which tensors of these shapes, some of them DTensors of these
    layouts, are computed with element by element: it divides what one of them divides.
    """
    shape = tuple(_C.broadcast_shapes(*shapes))
    mesh = layouts[0].mesh
    placements: list[Any] = []
    for i in range(mesh.ndim):
        shards = [
            Shard(each.dim + len(shape) - len(layout.shape))
            for layout in layouts
            for each in [layout.placements[i]]
            if isinstance(each, Shard)
            and layout.shape[each.dim] == shape[each.dim - len(layout.shape)]
        ]
        placements.append(shards[0] if shards else Replicate())
    return Layout(shape, mesh, tuple(placements))


def within(layout: Layout, into: Layout) -> tuple[Any, ...]:
    """The placements of an operand of a call that computes the parts of `into`."""
    more = len(into.shape) - len(layout.shape)
    return tuple(
        Replicate()
        if isinstance(each, Shard)
        and (each.dim < more or layout.shape[each.dim - more] != into.shape[each.dim])
        else (Shard(each.dim - more) if isinstance(each, Shard) else each)
        for each in into.placements
    )


def row(name: str, layouts: Sequence[Layout], dim: int) -> Layout:
    """The layout of stack() or cat() along dim, of the operands in its placements."""
    first, new = layouts[0], name == "stack"
    dim %= len(first.shape) + new
    placements = [
        pair[0] if all(each == pair[0] for each in pair) else Replicate()
        for pair in zip(*(layout.placements for layout in layouts), strict=True)
    ]
    shape = [*first.shape]
    if new:
        shape.insert(dim, len(layouts))
    else:
        shape[dim] = sum(layout.shape[dim] for layout in layouts)
        placements = [Replicate() if p == Shard(dim) else p for p in placements]
    moved = (
        Shard(p.dim + 1) if new and isinstance(p, Shard) and p.dim >= dim else p
        for p in placements
    )
    return Layout(tuple(shape), first.mesh, tuple(moved))
