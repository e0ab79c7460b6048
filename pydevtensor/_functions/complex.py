"""Complex tensors from real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def _pairs(real, imag, names):
    """The complex tensor of two real ones of one type."""
    if real.dtype != imag.dtype or real.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(
            f"{names} are of the types {real.dtype} and {imag.dtype}; give two of "
            "float32, or two of float64"
        )
    parts = _C.broadcast_tensors(real, imag)
    return _C.view_as_complex(_C.stack(parts, -1))


@function(out=True)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of their parts, which broadcast.

    real, imag: the real and the imaginary parts.

    complex64 of float32, complex128 of float64; RuntimeError for other types, or two.

    >>> torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([3.0, -4.0]))
    tensor([1.+3.j, 2.-4.j])
    """
    return _pairs(real, imag, "real and imag")


@function(out=True)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers in polar coordinates, which broadcast.

    abs, angle: the magnitudes, and the angles in radians.

    complex64 of float32, complex128 of float64; RuntimeError for other types, or two.

    >>> torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
    tensor([1.+0.j, 2.+0.j])
    """
    return _pairs(abs * angle.cos(), abs * angle.sin(), "abs and angle")
