"""The array API standard's Fourier transforms, over those of pydevtensor.fft.

n and s are the sizes that x is cut or padded with zeros to; without them its own. norm
says which direction is divided by the number of elements: "backward" the inverse one,
"forward" the other, and "ortho" each by the root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydevtensor import Tensor
from pydevtensor import fft as _library
from pydevtensor._names import publish as _publish
from pydevtensor.array_api._operands import named as _named

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift"]
__all__ += ["ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn"]


def _along_one(
    function: Callable[..., Tensor], name: str, *texts: str
) -> Callable[..., Tensor]:
    def call(
        x: Tensor,
        /,
        *,
        n: int | None = None,
        axis: int = -1,
        norm: str = "backward",
    ) -> Tensor:
        return function(x, n, axis, norm)

    made: Callable[..., Tensor] = _named(call, name, *texts)
    return made


def _along_several(
    function: Callable[..., Tensor], name: str, *texts: str
) -> Callable[..., Tensor]:
    def call(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Tensor:
        return function(x, s, axes, norm)

    made: Callable[..., Tensor] = _named(call, name, *texts)
    return made


# fmt: off
fft = _along_one(_library.fft, "fft", "The transform along a dimension.",
                 "xp.fft.fft(xp.asarray([1.0, 0, 0, 0])).real",
                 "tensor([1., 1., 1., 1.])")
ifft = _along_one(_library.ifft, "ifft", "The inverse of fft().",
                  "xp.fft.ifft(xp.asarray([1 + 0j, 1, 1, 1])).real",
                  "tensor([1., 0., 0., 0.])")
rfft = _along_one(_library.rfft, "rfft",
                  "The first n // 2 + 1 numbers of the transform of real ones.",
                  "xp.fft.rfft(xp.asarray([1.0, 0, 0, 0])).real",
                  "tensor([1., 1., 1.])")
irfft = _along_one(_library.irfft, "irfft",
                   "The inverse of rfft(); without n of an even number of elements.",
                   "xp.fft.irfft(xp.asarray([1 + 0j, 1, 1]))",
                   "tensor([1., 0., 0., 0.])")
hfft = _along_one(_library.hfft, "hfft",
                  "The real transform of the first half of conjugate pairs.",
                  "xp.fft.hfft(xp.asarray([1 + 0j, 0, 0]))", "tensor([1., 1., 1., 1.])")
ihfft = _along_one(_library.ihfft, "ihfft", "The inverse of hfft().",
                   "xp.fft.ihfft(xp.asarray([1.0, 1, 1, 1])).real",
                   "tensor([1., 0., 0.])")
fftn = _along_several(_library.fftn, "fftn",
                      "The transform along several dimensions, without axes along all.",
                      "xp.fft.fftn(xp.asarray([[1.0, 0], [0, 0]])).real",
                      "tensor([[1., 1.],\n        [1., 1.]])")
ifftn = _along_several(_library.ifftn, "ifftn", "The inverse of fftn().",
                       "xp.fft.ifftn(xp.asarray([[1 + 0j, 1], [1, 1]])).real",
                       "tensor([[1., 0.],\n        [0., 0.]])")
rfftn = _along_several(_library.rfftn, "rfftn",
                       "fftn() of real numbers; along the last axis the first half.",
                       "xp.fft.rfftn(xp.ones((2, 4))).shape", "torch.Size([2, 3])")
irfftn = _along_several(_library.irfftn, "irfftn", "The inverse of rfftn().",
                        "xp.fft.irfftn(xp.ones((2, 3), dtype=xp.complex64)).shape",
                        "torch.Size([2, 4])")
# fmt: on


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None
) -> Tensor:
    """The frequencies of the results of fft() for n samples at distances d.

    >>> import pydevtensor.array_api as xp
    >>> xp.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _library.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None
) -> Tensor:
    """The frequencies of the results of rfft() for n samples at distances d.

    >>> import pydevtensor.array_api as xp
    >>> xp.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _library.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """x with the frequency 0 in the middle of the dimensions axes, without them of all.

    >>> import pydevtensor.array_api as xp
    >>> xp.fft.fftshift(xp.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _library.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of fftshift().

    >>> import pydevtensor.array_api as xp
    >>> xp.fft.ifftshift(xp.asarray([-1, 0, 1]))
    tensor([ 0,  1, -1])
    """
    return _library.ifftshift(x, axes)


_publish(__name__, errors=True)
