"""Names for annotations, as torch.types has them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias, Union

from pydevtensor import _C
from pydevtensor._C import Size, Tensor

__all__ = ["Device", "FileLike", "Number", "Size", "Tensor"]

Number: TypeAlias = Union[int, float, bool]  # noqa: UP007
Device: TypeAlias = Union[_C.device, str, int, None]  # noqa: UP007
FileLike: TypeAlias = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007
_size: TypeAlias = Union[_C.Size, list[int], tuple[int, ...]]  # noqa: UP007
_int, _float, _bool, _complex = int, float, bool, complex
_dtype, _device, _layout = _C.dtype, _C.device, _C.layout
_TensorOrTensors: TypeAlias = Union[_C.Tensor, Sequence[_C.Tensor]]  # noqa: UP007
Storage: TypeAlias = Any
