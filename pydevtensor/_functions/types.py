"""The types of arguments, as public functions receive them.

Their names are those of csrc/python/arguments.h (DT_PARAM_TYPES), which says what
callers may give for each. Only type checkers read this module.
"""

from typing import TypeAlias

from pydevtensor import _C
from pydevtensor._C import Generator, Size, Tensor

Tensors: TypeAlias = tuple[Tensor, ...]
Number: TypeAlias = float
Value: TypeAlias = Tensor | float
Truth: TypeAlias = bool
Text: TypeAlias = str  # of which the function says what is wrong with it, ValueError
Order: TypeAlias = float | str
Dims: TypeAlias = tuple[int, ...]
PerDim: TypeAlias = int | tuple[int, ...]  # Dims with an int as default
Ints: TypeAlias = tuple[int, ...] | list[int]
Sizes: TypeAlias = Size
Dtype: TypeAlias = _C.dtype
Device: TypeAlias = _C.device

__all__ = ["Device", "Dims", "Dtype", "Generator", "Ints", "Number", "Order"]
__all__ += ["PerDim", "Size", "Sizes", "Tensor", "Tensors", "Text", "Truth", "Value"]
