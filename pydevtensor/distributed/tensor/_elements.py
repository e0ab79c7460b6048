"""Calls with DTensors: those that compute with each rank's part, and refusals."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._functions.element_names import element_names
from pydevtensor._tree import flatten
from pydevtensor.autograd import no_grad
from pydevtensor.distributed.tensor._layout import Layout
from pydevtensor.distributed.tensor._placements import Partial

Tensor = _C.Tensor
_local_shape: Any = Tensor.shape.__get__
# Methods whose answer is that of the whole tensor, and those of the part.
_OF_THE_WHOLE = {"nelement", "numel", "size", "stride"}
_OF_THE_PART = {"data_ptr", "dim", "element_size", "get_device", "is_complex"}
_OF_THE_PART |= {"is_contiguous", "is_floating_point", "is_pinned", "is_shared"}
_OF_THE_PART |= {"ndimension", "register_hook", "retain_grad", "as_subclass"}
_OF_THE_PART |= {"register_post_accumulate_grad_hook", "is_signed", "is_tensor"}
_OF_TERMS = {"clone", "contiguous", "detach", "detach_", "requires_grad_"}
_RANDOM = {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_"}
_RANDOM |= {"normal_", "random_", "uniform_"}


def refusal(name: str) -> NotImplementedError:
    """The error of a call that has no rule."""
    return NotImplementedError(
        f"{name}() of a DTensor is not supported; compute with to_local(), this rank's "
        "part, or with full_tensor(), which all ranks call"
    )


def call(kind: type, func: Any, args: Any, named: dict[str, Any]) -> Any:
    """func(*args, **named), of which some are DTensors, whose class is kind."""
    name = getattr(func, "__name__", str(func))
    first = args[0] if args else None
    if name in ("__get__", "__set__") or name in _OF_THE_PART:
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **named)
    if name in _OF_THE_WHOLE and isinstance(first, kind):
        like = _C.empty(first._layout.shape, dtype=first.dtype, device="meta")  # type: ignore[attr-defined]
        return func(like, *args[1:], **named)
    if name in _RANDOM and isinstance(first, kind):
        return _fill(func, first, args[1:], named)
    if name == "equal":
        return _equal(kind, *args)
    if name not in element_names():
        raise refusal(name)
    given = [t for t in flatten((args, named))[0] if isinstance(t, Tensor)]
    part = next(t for t in given if isinstance(t, kind))
    layout: Layout = part._layout  # type: ignore[attr-defined]
    if name == "copy_" and isinstance(args[1], kind):
        args = first, _like(args[1], layout), *args[2:]
        given = [*args[:2]]
    _check(name, kind, given, layout)
    with _C.DisableTorchFunctionSubclass():
        found = func(*args, **named)
    if any(found is t for t in given):
        return found
    if not isinstance(found, Tensor) or found.shape != _local_shape(part):
        raise refusal(name)
    made: Any = found.as_subclass(kind)
    made._layout = layout
    return made


def _equal(kind: type, a: Any, b: Any) -> bool:
    """Whether all parts are equal. All ranks of the mesh call it."""
    layout: Layout = (a if isinstance(a, kind) else b)._layout  # type: ignore[union-attr]
    _check("equal", kind, [a, b], layout)
    with _C.DisableTorchFunctionSubclass():
        same = _C.tensor(int(a.equal(b)), device=a.device)
    for i in range(layout.mesh.ndim):
        dist.all_reduce(same, dist.ReduceOp.MIN, layout.mesh.get_group(i))
    return bool(same)


def _like(source: Any, layout: Layout) -> Any:
    """A DTensor of these placements, if it is of the same shape and mesh."""
    fits = (source._layout.shape, source._layout.mesh) == (layout.shape, layout.mesh)
    return source.redistribute(placements=layout.placements) if fits else source


def _check(name: str, kind: type, given: list[Any], layout: Layout) -> None:
    for each in given:
        if not isinstance(each, kind):
            if each.ndim:
                raise RuntimeError(
                    f"{name}() got mixed torch.Tensor and DTensor; make a DTensor of "
                    f"the Tensor of shape {[*each.shape]} by distribute_tensor(), or "
                    "compute with to_local()"
                )
        elif each._layout != layout:  # type: ignore[attr-defined]
            other: Layout = each._layout  # type: ignore[attr-defined]
            raise NotImplementedError(
                f"{name}() of DTensors of shapes {[*layout.shape]} and "
                f"{[*other.shape]} with placements {layout.placements} on "
                f"{layout.mesh!r} and {other.placements} on {other.mesh!r} is not "
                "supported; redistribute() one of them, or compute with full_tensor()"
            )
    terms = any(isinstance(each, Partial) for each in layout.placements)
    if terms and name not in _OF_TERMS:
        raise NotImplementedError(
            f"{name}() of a DTensor with placements {layout.placements} is not "
            "supported; redistribute() it first"
        )


def _fill(func: Any, first: Any, args: Any, named: dict[str, Any]) -> Any:
    """Random numbers in place: this rank's part of those of the whole tensor, so that
    ranks with equal seeds have what one process has."""
    whole = _C.empty(first._layout.shape, dtype=first.dtype, device=first.device)
    with no_grad():
        func(whole, *args, **named)
    return first._take(whole)
