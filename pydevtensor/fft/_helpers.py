"""Frequencies of a transform's elements, and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dims, Number, Tensor


@function(out=True, factory=True)
def fftfreq(n: int, d: Number = 1.0, **factory: Any) -> Tensor:
    """The frequencies of the elements of fft()'s result, in cycles for a unit of d.

    n: the length of the transform. d: the distance of two samples.

    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    requires_grad = factory.pop("requires_grad", False)
    dtype = factory.pop("dtype", None) or _C.get_default_dtype()
    steps = _C.arange(n, dtype=_C.float64, **factory)
    steps[(n + 1) // 2 :] -= n
    return (steps / (n * d)).to(dtype).requires_grad_(requires_grad)


@function(out=True, factory=True)
def rfftfreq(n: int, d: Number = 1.0, **factory: Any) -> Tensor:
    """The frequencies of the elements of rfft()'s result, in cycles for a unit of d.

    n: the length of the transform. d: the distance of two samples.

    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    requires_grad = factory.pop("requires_grad", False)
    dtype = factory.pop("dtype", None) or _C.get_default_dtype()
    steps = _C.arange(n // 2 + 1, dtype=_C.float64, **factory)
    return (steps / (n * d)).to(dtype).requires_grad_(requires_grad)


def _rolled(x: Tensor, dim: Dims | None, up: int) -> Tensor:
    dims = range(x.dim()) if dim is None else dim
    return x.roll([(x.shape[d] + up) // 2 for d in dims], [*dims]) if dims else x


@function()
def fftshift(input: Tensor, dim: Dims | None = None) -> Tensor:
    """The elements of a transform in the order of their frequencies, 0 in the middle.

    dim: the dimensions; all of them where they are not given.

    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _rolled(input, dim, 0)


@function()
def ifftshift(input: Tensor, dim: Dims | None = None) -> Tensor:
    """The inverse of fftshift().

    dim: the dimensions; all of them where they are not given.

    >>> torch.fft.ifftshift(torch.fft.fftshift(torch.fft.fftfreq(4)))
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _rolled(input, dim, 1)
