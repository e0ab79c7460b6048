"""The text of sparse tensors, as PyTorch prints them."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C, printing

_INDENT = len("tensor(")


def _part(name: str, tensor: Any) -> str:
    start = f"{name}=tensor("
    text = "[]"
    if tensor.numel():
        text = printing._elements(tensor.detach(), _INDENT + len(start))
    if not tensor.numel():
        text += f", size={tuple(tensor.shape)}"
    return start + text + ")"


def text(tensor: Any) -> str:
    """repr() of a sparse tensor."""
    pattern, notes = tensor._pattern, []
    names: tuple[str, ...] = ("indices",)
    parts: tuple[Any, ...] = (pattern.indices,)
    if pattern.starts is not None:
        names = ("crow_indices", "col_indices")
        if pattern.by_column:
            names = ("ccol_indices", "row_indices")
        parts = (pattern.starts, pattern.inner)
    pairs = zip((*names, "values"), (*parts, tensor._data), strict=True)
    body = (",\n" + " " * _INDENT).join(_part(*pair) for pair in pairs)
    if tensor.device.type != "cpu":
        notes.append(f"device='{tensor.device}'")
    notes += [f"size={tuple(tensor.shape)}", f"nnz={pattern.count}"]
    if tensor.dtype not in (_C.get_default_dtype(), _C.int64, _C.bool):
        notes.append(f"dtype={tensor.dtype}")
    notes.append(f"layout=torch.{pattern.name}")
    if tensor.grad_fn is not None:
        notes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        notes.append("requires_grad=True")
    apart = pattern.starts is None
    return printing._append_notes("tensor(" + body, notes, _INDENT, apart)
