"""How a function of Python modules returns its result: new, or in `out`."""

from __future__ import annotations

from pydevtensor import _C
from pydevtensor._C import Tensor


def write(result: Tensor, out: Tensor | None) -> Tensor:
    """result, or `out` after it was written there."""
    return result if out is None else _C.mul(result, 1, out=out)
