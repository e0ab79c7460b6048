"""Records of reductions and products."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor.onnx._records import Arguments, record, refused
from pydevtensor.onnx._shapes import is_list
from pydevtensor.onnx._writer import Ref, Writer

for _name, _op in (("softmax", "Softmax"), ("log_softmax", "LogSoftmax")):

    @record(_name, by_name=True)
    def _along(w: Writer, y: Any, a: Arguments, op: str = _op) -> Any:
        return w.put(op, w.cast(a.input, y.dtype), axis=a.dim)


for _name, _op in (
    ("sum", "ReduceSum"),
    ("mean", "ReduceMean"),
    ("amax", "ReduceMax"),
    ("amin", "ReduceMin"),
    ("prod", "ReduceProd"),
    ("logsumexp", "ReduceLogSumExp"),
):

    @record(_name, by_name=True)
    def _reduced(w: Writer, y: Any, a: Arguments, op: str = _op) -> Any:
        x, dim = w.cast(a.input, y.dtype), a.dim
        axes = [dim] if isinstance(dim, int) else list(dim or ()) or None
        return w.reduce(op, x, axes, a.keepdim)


for _name, _op in (("argmax", "ArgMax"), ("argmin", "ArgMin")):

    @record(_name, by_name=True)
    def _arg(w: Writer, y: Any, a: Arguments, op: str = _op) -> Any:
        x, dim = a.input, a.dim
        if dim is None:
            x, dim = w.put("Reshape", x, w.ints([-1])), 0
        return w.put(op, x, axis=dim, keepdims=int(a.keepdim))


for _name, _op in (("max", "Max"), ("min", "Min")):

    @record(_name)
    def _extreme(
        w: Writer, y: Any, x: Any, *args: Any, op: str = _op, **named: Any
    ) -> Any:
        other = named.get("other", args[0] if args else None)
        if isinstance(other, (Ref, torch.Tensor)):
            return w.put(op, w.cast(x, y.dtype), w.cast(other, y.dtype))
        if not is_list(y):
            return w.reduce(f"Reduce{op}", x, None, False)
        a = Arguments(torch.max, (x, *args), named)
        found = w.reduce(f"Reduce{op}", x, [a.dim], a.keepdim)
        return found, w.put(f"Arg{op}", x, axis=a.dim, keepdims=int(a.keepdim))


@record("cumsum")
def _cumsum(w: Writer, y: Any, x: Any, dim: int) -> Any:
    return w.put("CumSum", x, w.of(dim, torch.int64))


@record("topk", by_name=True)
def _topk(w: Writer, y: Any, a: Arguments) -> Any:
    into = {"outputs": 2, "axis": a.dim, "largest": int(a.largest)}
    return w.put("TopK", a.input, w.ints([a.k]), **into)


@record("sort", by_name=True)
def _sort(w: Writer, y: Any, a: Arguments) -> Any:
    into = {"outputs": 2, "axis": a.dim, "largest": int(a.descending)}
    return w.put("TopK", a.input, w.ints([a.input.shape[a.dim]]), **into)


# --- products


@record("matmul", "mm", "bmm", "mv")
def _matmul(w: Writer, y: Any, a: Any, b: Any) -> Any:
    return w.put("MatMul", a, b)


@record("linear")
def _linear(w: Writer, y: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    turned = weight.t().contiguous() if isinstance(weight, torch.Tensor) else None
    if turned is None:
        turned = w.call("transpose", weight, 0, 1)
    found = w.put("MatMul", x, turned)
    return found if bias is None else w.put("Add", found, bias)


@record("einsum")
def _einsum(w: Writer, y: Any, equation: str, *tensors: Any) -> Any:
    parts = tensors[0] if is_list(tensors[0]) else tensors
    return w.put("Einsum", *parts, equation=equation.replace(" ", ""))


@record("baddbmm", "addmm")
def _addmm(
    w: Writer, y: Any, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    if (beta, alpha) != (1, 1):
        raise refused("beta and alpha are not written; use two operations")
    return w.put("Add", x, w.put("MatMul", a, b))
