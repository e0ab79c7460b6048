"""The namespace of the Python array API standard, for libraries written against it.

`x.__array_namespace__()` is this module, so that scikit-learn, SciPy and others compute
with Tensors. A function of the library that does what the standard says is here
itself; around the others are thin functions. Complex types, fft and uint16 to uint64
are left out: docs/array-api.md has the list.

The standard gives the parameters of its functions the same names everywhere:

- x, x1 and x2 are Tensors, of which x1 or x2 may be a number. arrays are several
  Tensors, arrays_and_dtypes Tensors, types and numbers.
- axis is the dimension that the function goes along, or a tuple of dimensions, or None
  for all; axes are all dimensions in a new order. keepdims=True leaves the dimension
  with size 1.
- shape, dtype and device are those of the result; shape is an int or a tuple of ints,
  fill_value what fills it, n_rows and n_cols are its sizes. from_ is a Tensor or type.
- descending=True sorts from the largest on, stable=True keeps the order of equal
  elements.
- correction is taken from the number of elements that a variance divides by.
- ord is the order of a norm, offset the number of a diagonal above the main one.

>>> import pydevtensor as torch
>>> xp = torch.ones(2).__array_namespace__()
>>> xp.sum(xp.ones((2, 3)), axis=1, keepdims=True)
tensor([[3.],
        [3.]])
"""

from math import e, inf, nan, pi

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.array_api import (
    creation,
    dtypes,
    elementwise,
    info,
    linalg,
    manipulation,
    products,
    searching,
    statistics,
)
from pydevtensor.array_api.creation import *
from pydevtensor.array_api.dtypes import *
from pydevtensor.array_api.elementwise import *
from pydevtensor.array_api.info import *
from pydevtensor.array_api.manipulation import *
from pydevtensor.array_api.products import *
from pydevtensor.array_api.searching import *
from pydevtensor.array_api.statistics import *

__array_api_version__ = "2025.12"

__all__ = ["__array_api_version__", "e", "inf", "linalg", "nan", "newaxis", "pi"]
__all__ += creation.__all__
__all__ += dtypes.__all__
__all__ += elementwise.__all__
__all__ += info.__all__
__all__ += manipulation.__all__
__all__ += products.__all__
__all__ += searching.__all__
__all__ += statistics.__all__

newaxis = None

__all__ += ["bool", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"]
bool, uint8, float32, float64 = _C.bool, _C.uint8, _C.float32, _C.float64
int8, int16, int32, int64 = _C.int8, _C.int16, _C.int32, _C.int64

# The library's own functions that agree with the standard.
__all__ += ["abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert"]
__all__ += ["ceil", "conj", "cos", "cosh", "exp", "expm1", "floor", "isfinite", "isinf"]
__all__ += ["isnan", "log", "log1p", "log2", "log10", "logical_not", "negative"]
__all__ += ["positive", "real", "reciprocal", "round", "signbit", "sin", "sinh", "sqrt"]
__all__ += ["square", "tan", "tanh", "trunc"]
abs, acos, acosh, asin, asinh = _C.abs, _C.acos, _C.acosh, _C.asin, _C.asinh
atan, atanh, bitwise_invert, ceil = _C.atan, _C.atanh, _C.bitwise_not, _C.ceil
conj, cos, cosh, exp, expm1 = _C.conj, _C.cos, _C.cosh, _C.exp, _C.expm1
floor, isfinite, isinf, isnan = _C.floor, _C.isfinite, _C.isinf, _C.isnan
log, log1p, log2, log10 = _C.log, _C.log1p, _C.log2, _C.log10
logical_not, negative, positive = _C.logical_not, _C.negative, _C.positive
real, reciprocal, round, signbit = _C.real, _C.reciprocal, _C.round, _C.signbit
sin, sinh, sqrt, square = _C.sin, _C.sinh, _C.sqrt, _C.square
tan, tanh, trunc = _C.tan, _C.tanh, _C.trunc

__all__ += ["asarray", "empty_like", "from_dlpack", "full_like", "ones_like"]
__all__ += ["zeros_like"]
asarray, from_dlpack, empty_like = _C.asarray, _C.from_dlpack, _C.empty_like
full_like, ones_like, zeros_like = _C.full_like, _C.ones_like, _C.zeros_like

__all__ += ["broadcast_arrays", "broadcast_shapes", "moveaxis", "tile"]
broadcast_arrays, broadcast_shapes = _C.broadcast_tensors, _C.broadcast_shapes
moveaxis, tile = _C.moveaxis, _C.tile

_publish(__name__)
