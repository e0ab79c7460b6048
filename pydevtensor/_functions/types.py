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
Dims: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = Size
Dtype: TypeAlias = _C.dtype
Device: TypeAlias = _C.device

__all__ = ["Device", "Dims", "Dtype", "Generator", "Number", "Size", "Sizes"]
__all__ += ["Tensor", "Tensors", "Value"]
