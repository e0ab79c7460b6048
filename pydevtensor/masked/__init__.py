"""Functions of the elements that a mask lets count, under torch.masked's names.

A mask is a Tensor of bool whose shape broadcasts to the input's: True where an element
counts. Without one all do. Where no element counts, a sum is 0, a product 1, an
extremum the least or greatest number of the type, and a mean, a variance, a median or a
softmax NaN. Gradients of elements that do not count are 0.
"""

from pydevtensor import _C
from pydevtensor._names import publish as _publish

globals().update(_C._namespace("masked"))
_publish(__name__)
