"""Arrays for the tests of the array API standard."""

import numpy
import pytest

strict = pytest.importorskip("array_api_strict")
ARRAY, DTYPE = type(strict.asarray(1)), type(strict.float32)
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64"]
DTYPES += ["complex64", "complex128"]


def find(module, name):
    """A name of a module, which may stand below linalg; None where there is none."""
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


PD = numpy.array([[[4.0, 1.0], [1.0, 3.0]], [[2.0, 0.5], [0.5, 1.0]]])
RECT = numpy.arange(12.0).reshape(2, 3, 2) % 5
