"""Records of functions of shapes and of indices."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor.onnx._records import Arguments, record, refused
from pydevtensor.onnx._writer import Ref, Writer


@record("reshape", "view", "flatten", "unflatten", "reshape_as", "view_as")
def _reshape(w: Writer, y: Any, x: Any, *unused: Any, **named: Any) -> Any:
    # The first dimension stays open.
    first = y.shape[0] if y.dim() else None
    same = bool(x.dim()) and first == x.shape[0]
    sizes = [0 if same else -1, *y.shape[1:]] if y.dim() else []
    return w.put("Reshape", x, w.ints(sizes))


@record("permute", "transpose", "t", "swapaxes", "movedim", "numpy_T")
def _permute(w: Writer, y: Any, x: Any, *args: Any, **named: Any) -> Any:
    # The dimensions by name: those of a tensor whose sizes are all different.
    probe = torch.empty([d + 2 for d in range(x.dim())], device="meta")
    name = "permute" if len(args) > 2 or not args or is_list(args[0]) else "transpose"
    if not args and not named:
        name = "t"
    found = getattr(probe, name)(*args, **named)
    return w.put("Transpose", x, perm=[size - 2 for size in found.shape])


def is_list(value: Any) -> bool:
    return isinstance(value, (tuple, list))


@record("getattr")
def _attribute(w: Writer, y: Any, x: Any, name: str) -> Any:
    if is_list(x):
        return getattr(x, name)
    if name not in ("T", "mT"):
        raise refused(f"the attribute {name} of a tensor")
    perm = [*range(x.dim())]
    perm[-2:] = perm[:-3:-1]
    return w.put("Transpose", x, perm=perm)


@record("unsqueeze")
def _unsqueeze(w: Writer, y: Any, x: Any, dim: int) -> Any:
    return w.put("Unsqueeze", x, w.ints([dim]))


@record("squeeze")
def _squeeze(w: Writer, y: Any, x: Any, dim: Any = None) -> Any:
    if dim is None:
        dim = [d for d, size in enumerate(x.shape) if size == 1]
    dims = [dim] if isinstance(dim, int) else list(dim)
    axes = [d % x.dim() for d in dims if x.shape[d] == 1]
    return w.put("Squeeze", x, w.ints(axes)) if axes else Ref(x.name, y)


@record("cat", "concat", "concatenate")
def _cat(w: Writer, y: Any, tensors: Any, dim: int = 0, **named: Any) -> Any:
    axis = named.get("axis", dim)
    return w.put("Concat", *(w.cast(x, y.dtype) for x in tensors), axis=axis)


@record("stack")
def _stack(w: Writer, y: Any, tensors: Any, dim: int = 0) -> Any:
    axis = w.ints([dim])
    parts = [w.put("Unsqueeze", w.cast(x, y.dtype), axis) for x in tensors]
    return w.put("Concat", *parts, axis=dim)


@record("chunk", "split", "unbind")
def _split(w: Writer, y: Any, x: Any, *args: Any, **named: Any) -> Any:
    dim = named.get("dim", args[-1] if len(args) == 2 else 0)
    sizes = [each.shape[dim] for each in y] if y[0].dim() == x.dim() else [1] * len(y)
    if y[0].dim() < x.dim():  # unbind
        dim = named.get("dim", args[0] if args else 0)
    made = w.put("Split", x, w.ints(sizes), outputs=len(y), axis=dim)
    made = [made] if isinstance(made, str) else made
    if y[0].dim() < x.dim():
        return [w.put("Squeeze", each, w.ints([dim])) for each in made]
    return made


@record("getitem")
def _getitem(w: Writer, y: Any, x: Any, index: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return x[index]
    found, dim = x, 0
    for each in _spelled(index, x.dim()):
        if each is None:
            found, dim = w.put("Unsqueeze", found, w.ints([dim])), dim + 1
        elif isinstance(each, int):
            found = w.put("Gather", found, w.of(each, torch.int64), axis=dim)
        elif isinstance(each, slice):
            if each != slice(None):
                step = each.step or 1
                end = 2**62 if each.stop is None else each.stop
                ends = ([each.start or 0], [end], [dim], [step])
                found = w.put("Slice", found, *map(w.ints, ends))
            dim += 1
        else:
            raise refused(f"an index of type {type(each).__name__}; use gather()")
    return found if isinstance(found, str) else Ref(found.name, y)


def _spelled(index: Any, dims: int) -> list[Any]:
    """An index with slices in the place of an ellipsis."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if not any(part is Ellipsis for part in parts):
        return parts
    at = next(i for i, part in enumerate(parts) if part is Ellipsis)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    return parts[:at] + [slice(None)] * (dims - used) + parts[at + 1 :]


@record("expand", "expand_as")
def _expand(w: Writer, y: Any, x: Any, *unused: Any) -> Any:
    lead = y.dim() - x.dim()
    kept = [
        1 if d >= lead and x.shape[d - lead] == s else s for d, s in enumerate(y.shape)
    ]
    return w.put("Expand", x, w.ints(kept))  # 1: the size of x


@record("repeat")
def _repeat(w: Writer, y: Any, x: Any, *counts: Any) -> Any:
    repeats = list(counts[0]) if is_list(counts[0]) else list(counts)
    for _ in range(len(repeats) - x.dim()):
        x = w.call("unsqueeze", x, 0)
    return w.put("Tile", x, w.ints(repeats))


@record("tril", "triu")
def _triangle(w: Writer, y: Any, x: Any, diagonal: int = 0) -> Any:
    raise refused("tril() and triu() of values that are not constants; use a mask")


for _name, _op in (("gather", "GatherElements"), ("index_select", "Gather")):

    @record(_name, by_name=True)
    def _gather(w: Writer, y: Any, a: Arguments, op: str = _op) -> Any:
        return w.put(op, a.input, a.index, axis=a.dim)
