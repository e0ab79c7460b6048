"""The namespace of the Python array API standard, for libraries written against it.

`x.__array_namespace__()` is this module, so that scikit-learn, SciPy and others compute
with Tensors. A function of the library that does what the standard says is here
itself; around the others are thin functions. uint16 to uint64 are left out:
docs/array-api.md has the list.

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

import pydevtensor as torch
from pydevtensor._names import publish as _publish
from pydevtensor.array_api import (
    creation,
    dtypes,
    elementwise,
    fft,
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

__all__ = ["__array_api_version__", "e", "fft", "inf", "linalg", "nan", "newaxis"]
__all__ += ["pi"]
__all__ += creation.__all__
__all__ += dtypes.__all__
__all__ += elementwise.__all__
__all__ += info.__all__
__all__ += manipulation.__all__
__all__ += products.__all__
__all__ += searching.__all__
__all__ += statistics.__all__

newaxis = None

__all__ += ["bool", "complex64", "complex128", "float32", "float64", "int8", "int16"]
__all__ += ["int32", "int64", "uint8"]
complex64, complex128 = torch.complex64, torch.complex128
bool, uint8, float32, float64 = torch.bool, torch.uint8, torch.float32, torch.float64
int8, int16, int32, int64 = torch.int8, torch.int16, torch.int32, torch.int64

# The library's own functions that agree with the standard.
__all__ += ["abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert"]
__all__ += ["ceil", "conj", "cos", "cosh", "exp", "expm1", "floor", "imag", "isfinite"]
__all__ += [
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_not",
    "negative",
]
__all__ += [
    "positive",
    "real",
    "reciprocal",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
]
__all__ += ["tan", "tanh", "trunc"]
abs, acos, acosh, asin, asinh = (
    torch.abs,
    torch.acos,
    torch.acosh,
    torch.asin,
    torch.asinh,
)
atan, atanh, bitwise_invert, ceil = (
    torch.atan,
    torch.atanh,
    torch.bitwise_not,
    torch.ceil,
)
conj, cos, cosh, exp, expm1 = torch.conj, torch.cos, torch.cosh, torch.exp, torch.expm1
floor, isfinite, isinf, isnan = torch.floor, torch.isfinite, torch.isinf, torch.isnan
log, log1p, log2, log10 = torch.log, torch.log1p, torch.log2, torch.log10
logical_not, negative, positive = torch.logical_not, torch.negative, torch.positive
imag, real, reciprocal, signbit = (
    torch.imag,
    torch.real,
    torch.reciprocal,
    torch.signbit,
)
sin, sinh, sqrt, square = torch.sin, torch.sinh, torch.sqrt, torch.square
tan, tanh, trunc = torch.tan, torch.tanh, torch.trunc

__all__ += ["asarray", "empty_like", "from_dlpack", "full_like", "ones_like"]
__all__ += ["zeros_like"]
asarray, from_dlpack, empty_like = torch.asarray, torch.from_dlpack, torch.empty_like
full_like, ones_like, zeros_like = torch.full_like, torch.ones_like, torch.zeros_like

__all__ += ["broadcast_arrays", "broadcast_shapes", "moveaxis", "tile"]
broadcast_arrays, broadcast_shapes = torch.broadcast_tensors, torch.broadcast_shapes
moveaxis, tile = torch.moveaxis, torch.tile

_publish(__name__, errors=True)
