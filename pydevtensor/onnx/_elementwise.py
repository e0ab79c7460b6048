"""Records of elementwise functions."""

from __future__ import annotations

import math
from typing import Any

import pydevtensor as torch
from pydevtensor.onnx._records import FUNCTIONS, Arguments, record, refused
from pydevtensor.onnx._writer import Ref, Writer, values

_ONE = """
relu:Relu sigmoid:Sigmoid tanh:Tanh exp:Exp log:Log sqrt:Sqrt abs:Abs neg:Neg erf:Erf
ceil:Ceil floor:Floor round:Round sign:Sign sin:Sin cos:Cos tan:Tan asin:Asin acos:Acos
atan:Atan sinh:Sinh cosh:Cosh asinh:Asinh acosh:Acosh atanh:Atanh reciprocal:Reciprocal
softsign:Softsign selu:Selu isnan:IsNaN isinf:IsInf
logical_not:Not invert:Not bitwise_not:Not
"""
_TWO = """
add:Add sub:Sub mul:Mul truediv:Div div:Div pow:Pow maximum:Max minimum:Min
iadd:Add isub:Sub imul:Mul itruediv:Div
logical_and:And logical_or:Or logical_xor:Xor and_:And or_:Or xor:Xor
"""
# The attribute of an operator, and the argument that it is.
_WITH_ONE = """
leaky_relu:LeakyRelu:alpha:negative_slope elu:Elu:alpha:alpha celu:Celu:alpha:alpha
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
    return value.to(dtype) if isinstance(value, torch.Tensor) else value


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
        return w.put(op, *_both(w, a, b, torch.result_type(values(a), values(b))))


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


@record("hardsigmoid")
def _hardsigmoid(w: Writer, y: Any, x: Any, *unused: Any) -> Any:
    return w.put("HardSigmoid", x, alpha=1 / 6, beta=0.5)


for _name, *_words in _pairs(_WITH_ONE):

    @record(_name, by_name=True)
    def _with_one(w: Writer, y: Any, a: Arguments, words: list[str] = _words) -> Any:
        op, attribute, argument = words
        return w.put(op, a.input, **{attribute: getattr(a, argument)})


@record("mish")
def _mish(w: Writer, y: Any, x: Any, *unused: Any) -> Any:
    if w.version >= 18:
        return w.put("Mish", x)
    return w.put("Mul", x, w.put("Tanh", w.put("Softplus", x)))


@record("hardswish", "hardswish_")
def _hardswish(w: Writer, y: Any, x: Any, *unused: Any) -> Any:
    if w.version >= 14:
        return w.put("HardSwish", x)
    return w.put("Mul", x, FUNCTIONS["hardsigmoid"](w, y, x))


@record("gelu", by_name=True)
def _gelu(w: Writer, y: Any, a: Arguments) -> Any:
    x, tanh = a.input, a.approximate == "tanh"
    if w.version >= 20:
        return w.put("Gelu", x, approximate=a.approximate)
    inner = x
    if tanh:  # Hendrycks and Gimpel, 2016
        cube = w.put("Mul", w.put("Mul", x, x), w.put("Mul", x, w.of(0.044715, x)))
        inner = w.put("Add", x, cube)
    inner = w.put("Mul", inner, w.of((2 / math.pi if tanh else 0.5) ** 0.5, x))
    share = w.put("Add", w.put("Tanh" if tanh else "Erf", inner), w.of(1, x))
    return w.put("Mul", w.put("Mul", x, w.of(0.5, x)), share)


@record("glu", by_name=True)
def _glu(w: Writer, y: Any, a: Arguments) -> Any:
    halves = w.ints([y.shape[a.dim]] * 2)
    kept, gate = w.put("Split", a.input, halves, outputs=2, axis=a.dim)
    return w.put("Mul", kept, w.put("Sigmoid", gate))


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
