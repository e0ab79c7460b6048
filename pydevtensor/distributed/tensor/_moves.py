"""Parts that move between ranks, for autograd."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor.autograd import Function
from pydevtensor.distributed.tensor._layout import Layout
from pydevtensor.distributed.tensor._placements import NormPartial, Partial

Tensor = _C.Tensor


class Move(Function):
    """Moves a part from one layout to another, and its gradient back."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, now: Layout, then: Layout) -> Tensor:
        ctx.layouts = now.gradient(), then.gradient()
        if now == then:
            return local.view_as(local)
        whole = now.whole(local.detach())
        ctx.terms = [(i, p) for i, p in enumerate(now.placements) if _is_uneven(p)]
        if ctx.terms:
            ctx.save_for_backward(local.detach(), now.cut(whole))
        return then.cut(whole).clone(memory_format=_C.contiguous_format)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        now, then = ctx.layouts
        gradient = now.cut(then.whole(gradient)).clone()
        if ctx.saved_tensors:
            local, whole = ctx.saved_tensors
            share = _share(local, whole, ctx.terms, now.mesh)
            gradient = gradient * share.to(gradient.dtype)
        return gradient, None, None


def _is_uneven(placement: Any) -> bool:
    """Whether the gradient of a term differs from that of the result."""
    if isinstance(placement, NormPartial):
        return True
    return isinstance(placement, Partial) and placement.reduce_op in ("max", "min")


def _share(local: Tensor, whole: Tensor, terms: Any, mesh: Any) -> Tensor:
    """The derivative of the norm, or the extreme, of all ranks by that of a rank."""
    i, term = terms[0]
    if isinstance(term, NormPartial):
        # n = (a^p + b^p)^(1/p) has the derivative dn/da = (a / n)^(p - 1).
        return (local / whole).nan_to_num() ** (term.norm_type - 1)
    here = (local == whole).to(whole.dtype)
    count = here.clone()  # of the ranks that have the extreme: each has an equal share
    for i, _ in terms:
        dist.all_reduce(count, group=mesh.get_group(i))
    return here / count


class Local(Function):
    """The part itself; its gradient may have another layout."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, own: Layout, of_gradient: Layout) -> Tensor:
        ctx.layouts = own.gradient(), of_gradient
        ctx.differs = own != of_gradient
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        own, of_gradient = ctx.layouts
        if ctx.differs:
            gradient = own.cut(of_gradient.whole(gradient)).clone()
        return gradient, None, None


class Spread(Function):
    """A copy that each rank computes with beside its part of another tensor: the
    gradient is the sum of those of the ranks. groups: these ranks."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, groups: list[Any]) -> Tensor:
        ctx.groups = groups
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        gradient = gradient.clone()
        for group in ctx.groups:
            dist.all_reduce(gradient, group=group)
        return gradient, None
