"""NumPy's universal functions and operators on tensors (docs/numpy.md).

NumPy calls Tensor.__array_ufunc__ where its arrays and functions meet a tensor: a + t,
a == t, numpy.sin(t). An operator computes as between two tensors, so that t + a is
a + t; other functions compute on arrays, and their results become tensors.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydevtensor import _C

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    """a @ b in their common type: arrays are often float64 and tensors float32."""
    dtype = _C.promote_types(a.dtype, b.dtype)
    return a.to(dtype) @ b.to(dtype)


# Operators by the names of their universal functions.
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "matmul": _matmul,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def operand(value: Any) -> Any:
    """An array as a Tensor over its memory, a sparse tensor as a dense one.

    NotImplemented for anything else.
    """
    if isinstance(value, _C.Tensor):
        return value.to_dense()
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return NotImplemented
    return _C.as_tensor(value)


def array_ufunc(arguments: tuple[Any, ...], keywords: dict[str, Any] | None) -> Any:
    """The result of Tensor.__array_ufunc__(ufunc, method, *inputs, **keywords)."""
    import numpy

    ufunc, method, *inputs = arguments
    keywords = dict(keywords or {})
    ours = (_C.Tensor, numpy.ndarray, numpy.generic)
    for value in (*inputs, *keywords.get("out", ())):
        if hasattr(value, "__array_ufunc__") and not isinstance(value, ours):
            return NotImplemented  # the other library decides
    compute = _OPERATORS.get(ufunc.__name__)
    if compute and method == "__call__" and not keywords:
        return compute(*map(_as_operand, inputs))
    if "where" in keywords:
        keywords["where"] = _as_array(keywords["where"])
    arrays = [_as_array(value) for value in inputs]
    if method == "at":  # changes its first argument, and returns nothing
        if isinstance(inputs[0], _C.Tensor):
            arrays[0] = arrays[0].copy()
        ufunc.at(*arrays, **keywords)
        _store(inputs[0], arrays[0])
        return None
    targets = keywords.get("out", (None,) * ufunc.nout)
    if "out" in keywords:
        keywords["out"] = tuple(
            x.__array__(copy=True) if isinstance(x, _C.Tensor) else x for x in targets
        )
    results = getattr(ufunc, method)(*arrays, **keywords)
    several = isinstance(results, tuple)
    made = map(_store, targets, results if several else (results,))
    return tuple(made) if several else next(made)


def _as_operand(value: Any) -> Any:
    """An array as a Tensor and one of NumPy's numbers as a number."""
    import numpy

    if isinstance(value, numpy.generic):
        return value.item()
    array = operand(value)
    return value if array is NotImplemented else array


def _as_array(value: Any) -> Any:
    return value.__array__() if isinstance(value, _C.Tensor) else value


def _store(target: Any, result: Any) -> Any:
    """The result in its target, or as a Tensor where a tensor has such a dtype."""
    if isinstance(target, _C.Tensor):
        return target.copy_(_C.as_tensor(result))
    if target is not None:
        return target  # NumPy wrote to it
    try:
        return _C.as_tensor(result)
    except TypeError:
        return result
