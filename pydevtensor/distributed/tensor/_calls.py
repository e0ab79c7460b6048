"""Calls with DTensors: those that compute with each rank's part, and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._functions.element_names import element_names
from pydevtensor._tree import flatten
from pydevtensor.autograd import no_grad
from pydevtensor.distributed.tensor import _rules
from pydevtensor.distributed.tensor._layout import Layout
from pydevtensor.distributed.tensor._moves import Spread
from pydevtensor.distributed.tensor._placements import Partial, Replicate, Shard

Tensor = _C.Tensor
_local_shape: Any = Tensor.shape.__get__
# Methods whose answer is that of the whole tensor, and those of the part.
_OF_THE_WHOLE = {"nelement", "numel", "size", "stride"}
_OF_THE_PART = {"data_ptr", "dim", "element_size", "get_device", "is_complex"}
_OF_THE_PART |= {"is_contiguous", "is_floating_point", "is_pinned", "is_shared"}
_OF_THE_PART |= {"ndimension", "register_hook", "retain_grad", "as_subclass"}
_OF_THE_PART |= {"register_post_accumulate_grad_hook", "is_signed", "is_tensor"}
_OF_THE_PART |= {"storage_offset"}
# Calls that make terms of terms: of a sum, and of any reduction.
_OF_SUMS = {"neg", "negative", "__neg__", "neg_", "half", "bfloat16", "float", "double"}
_OF_SUMS |= {"to", "type", "cpu", "cuda", "zero_"}
_SCALES = {"mul", "multiply", "__mul__", "__rmul__", "mul_", "__imul__", "div"}
_SCALES |= {"divide", "true_divide", "__truediv__", "div_", "__itruediv__"}
_ADDS = {"add", "add_", "__add__", "__radd__", "__iadd__", "sub", "sub_", "subtract"}
_ADDS |= {"__sub__", "__isub__", "copy_"}
_OF_TERMS = {"contiguous", "detach", "detach_", "requires_grad_"}
_RANDOM = {"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_"}
_RANDOM |= {"normal_", "random_", "uniform_"}
# Not element by element of all their operands.
_NOT_ELEMENTS = {"glu", "prelu"}


def refusal(name: str) -> NotImplementedError:
    """The error of a call that has no rule."""
    return NotImplementedError(
        f"{name}() of a DTensor is not supported; compute with to_local(), this rank's "
        "part, or with full_tensor(), which all ranks call"
    )


def call(kind: type, func: Any, args: Any, named: dict[str, Any], of: str = "") -> Any:
    """func(*args, **named), of which some are DTensors, whose class is kind."""
    name = of or getattr(func, "__name__", str(func))
    first = args[0] if args else named.get("input")
    if name in ("__get__", "__set__") or name in _OF_THE_PART:
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **named)
    if name in ("stack", "cat"):
        return _row(kind, name, func, *args, **named)
    if name == "equal":
        return _equal(kind, *args)
    if isinstance(first, kind):
        found: Any = first
        if name in _OF_THE_WHOLE:
            return func(found._layout.like(found.dtype), *args[1:], **named)
        if name in _RANDOM:
            return _fill(func, found, args[1:], named)
        if name in ("rand_like", "randn_like"):
            fill = Tensor.uniform_ if name == "rand_like" else Tensor.normal_
            return _fill(fill, _C.empty_like(found, **named), (), {})
        if name == "__setitem__":
            return _set(found, *args[1:])
        if name == "backward":
            return _backward(kind, found, *args[1:], **named)
        given = args[1:]
        rest = {key: each for key, each in named.items() if key != "input"}
        if not any(isinstance(each, Tensor) for each in flatten((given, rest))[0]):
            if name in _rules.REDUCTIONS:
                plan = _rules.reduction(name, func, found, given, rest)
                return _follow(kind, func, found, plan, given, rest)
            if name in _rules.BY_SIZES or name in _rules.BY_STRIDES:
                return _view(kind, name, func, found, given, rest)
        elif name in ("view_as", "reshape_as", "expand_as"):
            form = name.removesuffix("_as")
            return getattr(found, form)(args[1].shape)
    if name == "max" or name == "min":
        name = f"{name}imum"
    if name not in element_names() or name in _NOT_ELEMENTS:
        raise refusal(name)
    return _elements(kind, name, func, args, named)


def _made(kind: type, part: Any, layout: Layout) -> Any:
    found = part.as_subclass(kind)
    found._layout = layout
    return found


def _moved(x: Any, placements: Any) -> Any:
    same = x._layout.placements == placements
    return x if same else x.redistribute(placements=placements)


def _follow(
    kind: type, func: Any, x: Any, plan: _rules.Plan, args: Any, named: dict[str, Any]
) -> Any:
    """Compute as a plan says."""
    x = _moved(x, plan.needs)
    with _C.DisableTorchFunctionSubclass():
        found = plan.run(x) if plan.run else func(x, *args, **named)
    made = [
        _made(kind, part, layout)
        for part, layout in zip(_rules.listed(found), plan.gives, strict=True)
    ]
    return made[0] if isinstance(found, Tensor) else type(found)(made)


def _view(
    kind: type, name: str, func: Any, x: Any, args: Any, named: dict[str, Any]
) -> Any:
    if any(isinstance(each, _C.dtype) for each in flatten((args, named))[0]):
        raise refusal(name)  # other sizes
    index = args[0] if name == "__getitem__" else ()
    for each in index if isinstance(index, tuple) else (index,):
        if not (each is None or each is ... or isinstance(each, (int, slice))):
            raise refusal(name)
        if isinstance(each, bool):
            raise refusal(name)
    plan = _rules.view(name, func, x, args, named)
    return _follow(kind, func, x, plan, args, named)


def _set(x: Any, index: Any, value: Any) -> None:
    """x[index] = value, of elements that each rank has by itself."""
    plan = _rules.view("__getitem__", Tensor.__getitem__, x, (index,), {})
    if plan.needs != x._layout.placements:
        raise refusal("__setitem__")
    target = x[index]
    target.copy_(value) if isinstance(value, Tensor) else target.fill_(value)


def _backward(
    kind: type, x: Any, gradient: Any = None, *args: Any, **named: Any
) -> None:
    """The backward pass from a DTensor. All ranks of the mesh call it."""
    gradient = named.pop("gradient", gradient)
    x = x._without_terms()
    if isinstance(gradient, kind):
        into = x._layout.placements
        gradient = gradient.redistribute(placements=into).to_local()  # type: ignore[attr-defined]
    x.to_local().backward(gradient, *args, **named)


def _row(
    kind: type, name: str, func: Any, tensors: Any, dim: int = 0, **named: Any
) -> Any:
    """stack() or cat()."""
    given = [*tensors]
    if named or not all(isinstance(each, kind) for each in given):
        raise refusal(name)
    layout = _rules.row(name, [each._layout for each in given], dim)
    shift = name == "stack"
    at = dim % len(layout.shape)
    needs = tuple(
        Shard(p.dim - 1) if shift and isinstance(p, Shard) and p.dim > at else p
        for p in layout.placements
    )
    parts = [_moved(each, needs) for each in given]
    with _C.DisableTorchFunctionSubclass():
        return _made(kind, func(parts, dim), layout)


def _equal(kind: type, a: Any, b: Any) -> bool:
    """Whether all parts are equal. All ranks of the mesh call it."""
    one: Any = a if isinstance(a, kind) else b
    layout: Layout = one._layout
    _check("equal", kind, [a, b], layout)
    if a.shape != b.shape:
        return False
    into = _rules.joined([layout.shape], [layout])
    a, b = (_moved(t, into.placements) if isinstance(t, kind) else t for t in (a, b))
    with _C.DisableTorchFunctionSubclass():
        same = _C.tensor(int(a.equal(b)), device=a.device)
    for i in range(layout.mesh.ndim):
        dist.all_reduce(same, dist.ReduceOp.MIN, layout.mesh.get_group(i))
    return bool(same)


def _elements(
    kind: type, name: str, func: Any, args: Any, named: dict[str, Any]
) -> Any:
    """A call that computes element by element, of operands that broadcast."""
    leaves, rebuild = flatten((args, named))
    given = [each for each in leaves if isinstance(each, Tensor)]
    parts: list[Any] = [each for each in given if isinstance(each, kind)]
    layouts = [each._layout for each in parts]
    target: Any = named.get("out", args[0] if _writes(name) else None)
    owner: Any = target if isinstance(target, kind) else parts[0]
    layout: Layout = owner._layout
    _check(name, kind, given, layout)
    terms = any(isinstance(p, Partial) for each in layouts for p in each.placements)
    alike = all(each == layout for each in layouts)
    if (
        terms and not (alike and _keeps_terms(kind, name, args, named, layouts))
    ) or not alike:
        into = _rules.joined([tuple(each.shape) for each in given], layouts)
        if target is not None:
            if any(isinstance(p, Partial) for p in layout.placements):
                raise _terms_refused(name, layout)
            if into.shape != layout.shape:
                raise RuntimeError(
                    f"{name}() of a DTensor of shape {[*layout.shape]} and others has "
                    f"a result of shape {[*into.shape]}, which does not fit into it"
                )
            into = layout
        args, named = rebuild(
            _beside(each, into) if isinstance(each, kind) else each for each in leaves
        )
        layout = into
    elif layout.strides is not None:
        dense = _C.empty_like(layout.like()).stride()
        layout = replace(layout, strides=None if name == "contiguous" else dense)
    with _C.DisableTorchFunctionSubclass():
        found = func(*args, **named)
    if any(found is t for t in given):
        return found
    sizes = _local_shape(parts[0]) if alike else layout.part_shape()
    if not isinstance(found, Tensor) or found.shape != sizes:
        raise refusal(name)
    return _made(kind, found, layout)


def _beside(x: Any, into: Layout) -> Any:
    """An operand of a call that computes the parts of `into`."""
    x = _moved(x, _rules.within(x._layout, into))
    groups = [
        into.mesh.get_group(i)
        for i, (own, each) in enumerate(
            zip(x._layout.placements, into.placements, strict=True)
        )
        if isinstance(each, Shard) and isinstance(own, Replicate)
    ]
    if not groups or not x.requires_grad:
        return x
    with _C.DisableTorchFunctionSubclass():
        return Spread.apply(x, groups)


def _writes(name: str) -> bool:
    """Whether a call writes into its first operand."""
    if name.startswith("__"):
        return name.startswith("__i") and name != "__invert__"
    return name.endswith("_")


def _keeps_terms(
    kind: type, name: str, args: Any, named: dict[str, Any], layouts: list[Layout]
) -> bool:
    """Whether the terms of a DTensor become the terms of the result."""
    ops = {p.reduce_op for p in layouts[0].placements if isinstance(p, Partial)}
    first = args[0] if args else None
    if len(layouts) == 1 and name in _OF_TERMS:
        return True
    if any(hasattr(p, "norm_type") for p in layouts[0].placements):
        return False
    if not ops <= {"sum", "avg"} or not isinstance(first, Tensor):
        return name == "copy_" and len(layouts) == 2
    if not first.is_floating_point():
        return False
    if len(layouts) == 2:
        return name in _ADDS
    kinds = [each for each in args[1:] if isinstance(each, _C.dtype)]
    if name in _OF_SUMS:
        return all(each.is_floating_point for each in kinds)
    divides = "mul" not in name and not isinstance(first, kind)
    return name in _SCALES and len(args) == 2 and not named and not divides


def _check(name: str, kind: type, given: list[Any], layout: Layout) -> None:
    for each in given:
        if not isinstance(each, kind):
            if each.ndim:
                raise RuntimeError(
                    f"{name}() got mixed torch.Tensor and DTensor; make a DTensor of "
                    f"the Tensor of shape {[*each.shape]} by distribute_tensor(), or "
                    "compute with to_local()"
                )
        elif each._layout.mesh != layout.mesh:  # type: ignore[attr-defined]
            raise NotImplementedError(
                f"{name}() of DTensors on {layout.mesh!r} and "
                f"{each._layout.mesh!r} is not supported; compute with full_tensor()"  # type: ignore[attr-defined]
            )


def _terms_refused(name: str, layout: Layout) -> NotImplementedError:
    return NotImplementedError(
        f"{name}() of a DTensor with placements {layout.placements} is not supported; "
        "redistribute() it first"
    )


def _fill(func: Any, first: Any, args: Any, named: dict[str, Any]) -> Any:
    """Random numbers in place: this rank's part of those of the whole tensor, so that
    ranks with equal seeds have what one process has."""
    whole = _C.empty(first._layout.shape, dtype=first.dtype, device=first.device)
    with no_grad():
        func(whole, *args, **named)
    return first._take(whole)
