"""Batching rules of subscripts and other indices: see _rules."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.func import _batched
from pydevtensor.func._batched import each, full, is_batched, state, wrap
from pydevtensor.func._rules import (
    _aligned,
    _Arguments,
    _given,
    _rule,
    _shifted,
    _target,
)

Tensor = _C.Tensor

# --- indices --------------------------------------------------------------------------


def _is_index(x: Any) -> bool:
    return isinstance(x, Tensor)


def _whole_key(x: Any, key: Any) -> list[Any]:
    """The parts of a subscript: tensors for lists, slices for an Ellipsis."""
    parts = [*key] if isinstance(key, tuple) else [key]
    parts = [
        _C.tensor(p, device=x.device) if isinstance(p, (list, range)) else p
        for p in parts
    ]
    if any(
        isinstance(p, bool) or (_is_index(p) and p.dtype in (_C.bool, _C.uint8))
        for p in parts
    ):
        masks = [p for p in parts if _is_index(p) and p.dtype == _C.bool]
        if any(type(m) is not Tensor for m in masks) or not masks:
            raise _batched.Concrete("vmap(): a mask that differs between elements")
        parts = [
            q
            for p in parts
            for q in (p.nonzero(as_tuple=True) if any(p is m for m in masks) else [p])
        ]
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if not any(p is Ellipsis for p in parts):
        parts.append(Ellipsis)
    at = next(i for i, p in enumerate(parts) if p is Ellipsis)
    return [*parts[:at], *[slice(None)] * (x.ndim - used), *parts[at + 1 :]]


@_rule("__getitem__")
def _get(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    x, key = args
    parts = _whole_key(x, key)
    advanced = [i for i, p in enumerate(parts) if _is_index(p)]
    own = is_batched(x, level)
    if not advanced:
        return wrap(x.value[(slice(None), *parts)], level)
    # Numbers count as index tensors where there is one.
    chosen = [i for i, p in enumerate(parts) if _is_index(p) or isinstance(p, int)]
    ndim = max(parts[i].ndim for i in advanced)
    together = chosen == [*range(chosen[0], chosen[-1] + 1)]
    before = sum(not isinstance(p, int) for p in parts[: chosen[0]]) if together else 0
    differ = any(is_batched(parts[i], level) for i in advanced)
    values = [_aligned(p, level, ndim) if _is_index(p) else p for p in parts]
    if not differ:
        made = x.value[(slice(None), *values)]
        # Dimensions of indices that are apart come first, before the batch.
        return wrap(made if together else made.movedim(ndim, 0), level)
    if not own:
        made = x[tuple(values)]
        return wrap(made.movedim(before, 0), level)
    rows = _C.arange(state.sizes[level - 1], device=x.device)
    rows = rows.reshape([-1, *[1] * ndim])
    values = [
        p.unsqueeze(0) if _is_index(p) and not is_batched(parts[i], level) else p
        for i, p in enumerate(values)
    ]
    made = x.value[(rows, *values)]
    front = together and chosen[0] == 0
    if before and not front:  # batch, indices, then the dimensions before these
        moved = [*range(1, 1 + ndim)]
        made = made.movedim(moved, [before + d for d in moved])
    return wrap(made, level)


@_rule("__setitem__")
def _set(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    x, key, y = args
    value = _target(x, level)
    parts = _whole_key(x, key)
    if any(is_batched(p, level) for p in parts):
        raise _batched.Concrete("vmap(): indices that differ, written to")
    chosen = [i for i, p in enumerate(parts) if _is_index(p) or isinstance(p, int)]
    if any(map(_is_index, parts)) and chosen != [*range(chosen[0], chosen[-1] + 1)]:
        raise _batched.Concrete("vmap(): indices that are apart, written to")
    if is_batched(y, level):
        ndim = value[(slice(None), *parts)].ndim - 1
        y = _aligned(y, level, ndim)
    value[(slice(None), *parts)] = y


@_rule("index_select")
def _index_select(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    x, dim, index = _given(args, kwargs)
    index = index if index.ndim else index.reshape(1)
    dim = _shifted(dim, x.ndim) - 1
    return x[(*[slice(None)] * dim, index)] if x.ndim else x[None][index]


@_rule("index_add", "index_copy", "index_fill", "index_add_", "index_copy_")
def _index_add(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    x, dim, index, source = args[:4]
    if is_batched(index, level):
        return each(level, func, args, kwargs)
    source = full(source, level) if isinstance(source, Tensor) else source
    place = _target(x, level) if func.__name__[-1] == "_" else full(x, level)
    made = func(place, _shifted(dim, x.ndim), index, source, **kwargs)
    return x if func.__name__[-1] == "_" else wrap(made, level)


@_rule("take")
def _take(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    return args[0].reshape(-1)[args[1]]


@_rule("embedding")
def _embedding(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    index, weight = args[0], a.get("weight")
    if is_batched(weight, level):
        if a.get("max_norm") is not None:
            return each(level, func, args, kwargs)
        return weight[index]
    a.set("weight", weight)
    return wrap(a.run(index.value), level)


@_rule("trace")
def _trace(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    return args[0].diagonal().sum()
