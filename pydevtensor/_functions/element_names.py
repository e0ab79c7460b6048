"""Which functions are of single elements."""

from __future__ import annotations

import functools

from pydevtensor import _C

_ELEMENTS = """
absolute negative subtract multiply divide true_divide not_equal less less_equal greater
greater_equal fix arcsin arccos arctan arcsinh arccosh arctanh arctan2 clip sgn rsub
where relu sigmoid tanh selu celu threshold hardtanh relu6 gelu softshrink hardshrink
logit clone contiguous to float double half bfloat16 int long short bool type conj clamp
real imag nan_to_num isclose positive detach requires_grad_ conj_physical complex polar
zeros_like ones_like full_like empty_like copy_ zero_ fill_ masked_fill detach_
floor_divide cpu cuda type_as silu mish softplus elu leaky_relu logsigmoid hardsigmoid
hardswish softsign tanhshrink float_power resolve_conj bitwise_and bitwise_or
bitwise_xor
"""
_OPERATORS = """
add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow neg
abs invert and or xor lshift rshift eq ne lt le gt ge iadd isub imul itruediv ipow
ifloordiv iand ior ixor ilshift irshift
"""


@functools.cache
def element_names() -> frozenset[str]:
    """The names of functions, methods and operators of single elements."""
    names = {row[0] for row in _C._operations()} | {*_ELEMENTS.split()}
    names |= {name + "_" for name in names if name[-1] != "_"}
    names |= {f"__{name}__" for name in _OPERATORS.split()}
    names |= {s[0] for s in _C._signatures() if s[0].startswith("special_")}
    return frozenset(names)
