"""How functions are written, one record for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor.onnx._writer import FUNCTIONS, Ref, Writer, values
from pydevtensor.onnx.errors import UnsupportedOperatorError


def record(*names: str) -> Callable[[Any], Any]:
    def add(body: Any) -> Any:
        FUNCTIONS.update(dict.fromkeys(names, body))
        return body

    return add


def refused(what: str) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(f"export(): {what}")


# --- functions of elements

_ONE = """
relu:Relu sigmoid:Sigmoid tanh:Tanh exp:Exp log:Log sqrt:Sqrt abs:Abs neg:Neg erf:Erf
ceil:Ceil floor:Floor round:Round sign:Sign sin:Sin cos:Cos tan:Tan asin:Asin acos:Acos
atan:Atan sinh:Sinh cosh:Cosh asinh:Asinh acosh:Acosh atanh:Atanh reciprocal:Reciprocal
softsign:Softsign hardswish:HardSwish mish:Mish isnan:IsNaN isinf:IsInf
logical_not:Not invert:Not bitwise_not:Not
"""
_TWO = """
add:Add sub:Sub mul:Mul truediv:Div div:Div pow:Pow maximum:Max minimum:Min
iadd:Add isub:Sub imul:Mul itruediv:Div
logical_and:And logical_or:Or logical_xor:Xor and_:And or_:Or xor:Xor
"""
_COMPARED = "eq:Equal lt:Less gt:Greater le:LessOrEqual ge:GreaterOrEqual"


def _pairs(text: str) -> list[list[str]]:
    return [word.split(":") for word in text.split()]


for _name, _op in _pairs(_ONE):

    @record(_name, f"{_name}_")
    def _one(
        w: Writer, y: Any, x: Any, *unused: Any, op: str = _op, **named: Any
    ) -> Any:
        floats = y.dtype.is_floating_point
        return w.put(op, w.cast(x, y.dtype) if floats else x)


def _both(w: Writer, a: Any, b: Any, dtype: Any) -> tuple[str, str]:
    return tuple(w.of(w.cast(_to(x, dtype), dtype), dtype) for x in (a, b))  # type: ignore[return-value]


def _to(value: Any, dtype: Any) -> Any:
    return value.to(dtype) if isinstance(value, _C.Tensor) else value


for _name, _op in _pairs(_TWO):

    @record(_name, f"{_name}_")
    def _two(
        w: Writer,
        y: Any,
        a: Any,
        b: Any,
        *,
        alpha: Any = 1,
        op: str = _op,
        **named: Any,
    ) -> Any:
        if alpha != 1 or named.get("rounding_mode"):
            raise refused("alpha and rounding_mode are not written; use two operations")
        return w.put(op, *_both(w, a, b, y.dtype))


for _name, _op in _pairs(_COMPARED):

    @record(_name)
    def _compared(w: Writer, y: Any, a: Any, b: Any, *, op: str = _op) -> Any:
        return w.put(op, *_both(w, a, b, _C.result_type(values(a), values(b))))


@record("ne")
def _ne(w: Writer, y: Any, a: Any, b: Any) -> Any:
    return w.put("Not", FUNCTIONS["eq"](w, y, a, b))


@record("rsqrt")
def _rsqrt(w: Writer, y: Any, x: Any) -> Any:
    return w.put("Reciprocal", w.put("Sqrt", x))


@record("square")
def _square(w: Writer, y: Any, x: Any) -> Any:
    return w.put("Mul", x, x)


@record("silu")
def _silu(w: Writer, y: Any, x: Any, *unused: Any) -> Any:
    return w.put("Mul", x, w.put("Sigmoid", x))


@record("gelu")
def _gelu(w: Writer, y: Any, x: Any, approximate: str = "none") -> Any:
    return w.put("Gelu", x, approximate=approximate)


@record("hardsigmoid")
def _hardsigmoid(w: Writer, y: Any, x: Any, *unused: Any) -> Any:
    return w.put("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@record("leaky_relu")
def _leaky(w: Writer, y: Any, x: Any, negative_slope: float = 0.01, *u: Any) -> Any:
    return w.put("LeakyRelu", x, alpha=negative_slope)


@record("elu")
def _elu(w: Writer, y: Any, x: Any, alpha: float = 1.0, *unused: Any) -> Any:
    return w.put("Elu", x, alpha=alpha)


@record("celu")
def _celu(w: Writer, y: Any, x: Any, alpha: float = 1.0, *unused: Any) -> Any:
    return w.put("Celu", x, alpha=alpha)


@record("selu")
def _selu(w: Writer, y: Any, x: Any, *unused: Any) -> Any:
    return w.put("Selu", x)


@record("softplus")
def _softplus(w: Writer, y: Any, x: Any, beta: float = 1.0, *unused: Any) -> Any:
    if beta != 1:
        raise refused(f"softplus() with beta={beta}; give 1")
    return w.put("Softplus", x)


@record("prelu")
def _prelu(w: Writer, y: Any, x: Any, weight: Any) -> Any:
    shape = [-1] + [1] * (y.dim() - 2) if y.dim() > 2 else [-1]
    return w.put("PRelu", x, weight.reshape(shape))


@record("relu6")
def _relu6(w: Writer, y: Any, x: Any, *unused: Any) -> Any:
    return w.put("Clip", x, w.of(0, y.dtype), w.of(6, y.dtype))


@record("hardtanh", "clamp", "clip")
def _clamp(w: Writer, y: Any, x: Any, *bounds: Any, **named: Any) -> Any:
    given = dict(zip(("low", "high"), bounds[:2], strict=False))
    low = named.get("min", named.get("min_val", given.get("low")))
    high = named.get("max", named.get("max_val", given.get("high")))
    ends = ["" if end is None else w.of(end, y.dtype) for end in (low, high)]
    return w.put("Clip", w.cast(x, y.dtype), *ends)


@record("where")
def _where(w: Writer, y: Any, condition: Any, a: Any, b: Any) -> Any:
    return w.put("Where", condition, *_both(w, a, b, y.dtype))


@record("masked_fill", "masked_fill_")
def _masked_fill(w: Writer, y: Any, x: Any, mask: Any, value: Any) -> Any:
    return w.put("Where", mask, w.of(value, y.dtype), x)


@record("to", "float", "double", "half", "long", "int", "bool", "type", "type_as")
def _converted(w: Writer, y: Any, x: Any, *unused: Any, **named: Any) -> Any:
    return w.cast(x, y.dtype)


@record("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")
def _constant(w: Writer, y: Any, x: Any, *unused: Any, **named: Any) -> Any:
    return w.of(y)


@record("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
@record("feature_alpha_dropout", "contiguous", "clone", "detach", "cpu", "cuda")
def _same(w: Writer, y: Any, x: Any, *unused: Any, **named: Any) -> Any:
    return Ref(x.name, y)


# --- along dimensions


for _name, _op in (("softmax", "Softmax"), ("log_softmax", "LogSoftmax")):

    @record(_name)
    def _along(
        w: Writer, y: Any, x: Any, dim: int = -1, *u: Any, op: str = _op, **named: Any
    ) -> Any:
        return w.put(op, w.cast(x, y.dtype), axis=dim)


for _name, _op in (
    ("sum", "ReduceSum"),
    ("mean", "ReduceMean"),
    ("amax", "ReduceMax"),
    ("amin", "ReduceMin"),
    ("prod", "ReduceProd"),
    ("logsumexp", "ReduceLogSumExp"),
):

    @record(_name)
    def _reduced(
        w: Writer,
        y: Any,
        x: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        op: str = _op,
        **named: Any,
    ) -> Any:
        if dim is None:
            return w.put(op, w.cast(x, y.dtype), keepdims=0)
        axes = w.ints([dim] if isinstance(dim, int) else dim)
        return w.put(op, w.cast(x, y.dtype), axes, keepdims=int(keepdim))


for _name, _op in (("argmax", "ArgMax"), ("argmin", "ArgMin")):

    @record(_name)
    def _arg(
        w: Writer,
        y: Any,
        x: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        op: str = _op,
    ) -> Any:
        if dim is None:
            x, dim = w.put("Reshape", x, w.ints([-1])), 0
        return w.put(op, x, axis=dim, keepdims=int(keepdim))


@record("max", "min")
def _extreme(w: Writer, y: Any, x: Any, *args: Any, **named: Any) -> Any:
    raise refused("max() and min() give values and indices; use amax() and argmax()")


@record("cumsum")
def _cumsum(w: Writer, y: Any, x: Any, dim: int) -> Any:
    return w.put("CumSum", x, w.of(dim, _C.int64))


@record("topk")
def _topk(
    w: Writer, y: Any, x: Any, k: int, dim: int = -1, largest: bool = True, *u: Any
) -> Any:
    return w.put("TopK", x, w.ints([k]), outputs=2, axis=dim, largest=int(largest))


# --- shapes


def reshaped(w: Writer, y: Any, x: Any) -> Any:
    """x in the shape of y, whose first dimension stays open."""
    first = y.shape[0] if y.dim() else None
    same = bool(x.dim()) and first == x.shape[0]
    sizes = [0 if same else -1, *y.shape[1:]] if y.dim() else []
    return w.put("Reshape", x, w.ints(sizes))


@record("reshape", "view", "flatten", "unflatten", "reshape_as", "view_as")
def _reshape(w: Writer, y: Any, x: Any, *unused: Any, **named: Any) -> Any:
    return reshaped(w, y, x)


@record("permute", "transpose", "t", "swapaxes", "movedim", "numpy_T")
def _permute(w: Writer, y: Any, x: Any, *args: Any, **named: Any) -> Any:
    # The dimensions by name: those of a tensor whose sizes are all different.
    probe = _C.empty([d + 2 for d in range(x.dim())], device="meta")
    name = "permute" if len(args) > 2 or not args or _is_list(args[0]) else "transpose"
    if not args and not named:
        name = "t"
    found = getattr(probe, name)(*args, **named)
    return w.put("Transpose", x, perm=[size - 2 for size in found.shape])


def _is_list(value: Any) -> bool:
    return isinstance(value, (tuple, list))


@record("getattr")
def _attribute(w: Writer, y: Any, x: Any, name: str) -> Any:
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
            found = w.put("Gather", found, w.of(each, _C.int64), axis=dim)
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
    repeats = list(counts[0]) if _is_list(counts[0]) else list(counts)
    for _ in range(len(repeats) - x.dim()):
        x = w.call("unsqueeze", x, 0)
    return w.put("Tile", x, w.ints(repeats))


@record("tril", "triu")
def _triangle(w: Writer, y: Any, x: Any, diagonal: int = 0) -> Any:
    raise refused("tril() and triu() of values that are not constants; use a mask")


@record("gather")
def _gather(w: Writer, y: Any, x: Any, dim: int, index: Any) -> Any:
    return w.put("GatherElements", x, index, axis=dim)


@record("index_select")
def _index_select(w: Writer, y: Any, x: Any, dim: int, index: Any) -> Any:
    return w.put("Gather", x, index, axis=dim)


@record("embedding")
def _embedding(w: Writer, y: Any, x: Any, weight: Any, *unused: Any) -> Any:
    return w.put("Gather", weight, x)


@record("pad")
def _pad(
    w: Writer, y: Any, x: Any, pad: Any, mode: str = "constant", value: Any = None
) -> Any:
    ends = [[0] * x.dim(), [0] * x.dim()]
    for i, size in enumerate(pad):
        ends[i % 2][-1 - i // 2] = size
    words = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    words["circular"] = "wrap"
    fill = [w.of(value or 0, y.dtype)] if mode == "constant" else []
    return w.put("Pad", x, w.ints(ends[0] + ends[1]), *fill, mode=words[mode])


# --- products


@record("matmul", "mm", "bmm", "mv")
def _matmul(w: Writer, y: Any, a: Any, b: Any) -> Any:
    return w.put("MatMul", a, b)


@record("linear")
def _linear(w: Writer, y: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    turned = weight.t().contiguous() if isinstance(weight, _C.Tensor) else None
    if turned is None:
        turned = w.call("transpose", weight, 0, 1)
    found = w.put("MatMul", x, turned)
    return found if bias is None else w.put("Add", found, bias)


@record("einsum")
def _einsum(w: Writer, y: Any, equation: str, *tensors: Any) -> Any:
    parts = tensors[0] if _is_list(tensors[0]) else tensors
    return w.put("Einsum", *parts, equation=equation.replace(" ", ""))


@record("baddbmm", "addmm")
def _addmm(
    w: Writer, y: Any, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    if (beta, alpha) != (1, 1):
        raise refused("beta and alpha are not written; use two operations")
    return w.put("Add", x, w.put("MatMul", a, b))


@record("scaled_dot_product_attention")
def _attention(
    w: Writer,
    y: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if enable_gqa:
        raise refused("scaled_dot_product_attention() with enable_gqa")
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = w.call("matmul", query, w.call("transpose", key, -2, -1))
    scores = w.call("mul", scores, factor)
    if is_causal:
        attn_mask = _C.ones(scores.shape[-2:], dtype=_C.bool).tril()
    if attn_mask is not None:
        if values(attn_mask).dtype == _C.bool:
            far = _C.tensor(float("-inf"), dtype=y.dtype)
            attn_mask = w.put("Where", attn_mask, w.of(0, y.dtype), far)
        scores = Ref(w.put("Add", scores, attn_mask), scores.value)
    return w.put("MatMul", w.put("Softmax", scores, axis=-1), value)
