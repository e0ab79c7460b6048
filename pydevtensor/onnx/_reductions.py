"""Records of reductions and products."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor.onnx._records import Arguments, record, refused
from pydevtensor.onnx._shapes import is_list
from pydevtensor.onnx._writer import Writer

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
        if dim is None or dim == ():
            return w.put(op, x, keepdims=int(a.keepdim))
        axes = w.ints([dim] if isinstance(dim, int) else dim)
        return w.put(op, x, axes, keepdims=int(a.keepdim))


for _name, _op in (("argmax", "ArgMax"), ("argmin", "ArgMin")):

    @record(_name, by_name=True)
    def _arg(w: Writer, y: Any, a: Arguments, op: str = _op) -> Any:
        x, dim = a.input, a.dim
        if dim is None:
            x, dim = w.put("Reshape", x, w.ints([-1])), 0
        return w.put(op, x, axis=dim, keepdims=int(a.keepdim))


@record("max", "min")
def _extreme(w: Writer, y: Any, x: Any, *args: Any, **named: Any) -> Any:
    raise refused("max() and min() give values and indices; use amax() and argmax()")


@record("cumsum")
def _cumsum(w: Writer, y: Any, x: Any, dim: int) -> Any:
    return w.put("CumSum", x, w.of(dim, torch.int64))


@record("topk")
def _topk(
    w: Writer, y: Any, x: Any, k: int, dim: int = -1, largest: bool = True, *u: Any
) -> Any:
    return w.put("TopK", x, w.ints([k]), outputs=2, axis=dim, largest=int(largest))


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
