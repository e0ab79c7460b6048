"""Transforms without a scale along dimensions, and their gradients."""

from __future__ import annotations

import math
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor.autograd import Function

if TYPE_CHECKING:
    from pydevtensor._C import Tensor

# Up to so many elements along a dimension a transform on a GPU is one product.
_DENSE = 64


# --- SciPy's and NumPy's ------------------------------------------------------------


_found: list[Any] = []


def _library() -> Any:
    """SciPy's fft, or NumPy's, or None."""
    if not _found:
        for name in ("scipy.fft", "numpy.fft"):
            with suppress(ImportError):
                _found.append(import_module(name))
                break
        else:
            _found.append(None)
    return _found[0]


def _by_library(
    name: str, x: Tensor, forward: bool, *args: Any, **words: Any
) -> Tensor:
    """The function of the library, without a scale, in the precision of x."""
    words["norm"] = "backward" if forward else "forward"
    if _library().__name__.startswith("scipy"):
        words["workers"] = _C.get_num_threads()
    array = getattr(_library(), name)(x.detach().numpy(), *args, **words)
    wide = x.dtype in (_C.float64, _C.complex128)
    kind = ("float" if array.dtype.kind == "f" else "complex", 64 if wide else 32)
    width = kind[1] * (1 if kind[0] == "float" else 2)
    return _C.from_numpy(array.astype(f"{kind[0]}{width}", order="C", copy=False))


# --- cuFFT's ------------------------------------------------------------------------


def _has_cufft(x: Tensor) -> bool:
    return x.device.type == "cuda" and _C._cufft_version() is not None


def _by_cufft(
    x: Tensor, dims: tuple[int, ...], forward: bool, *real_elements: int
) -> Tensor:
    """The transforms along dims, which cuFFT has last, and three at once."""
    for i in range(0, len(dims), 3):
        some = dims[i : i + 3]
        last = tuple(range(-len(some), 0))
        x = _C._fourier(x.movedim(some, last), len(some), forward, *real_elements)
        x = x.movedim(last, some)
    return x.contiguous()


# --- composed of products -----------------------------------------------------------


def _turns(x: Tensor, steps: Tensor, n: int, forward: bool) -> Tensor:
    """e^(2 pi i steps / n), or of the other sign, in the type of x."""
    angle = (steps % n).to(_C.float64) * ((-2 if forward else 2) * math.pi / n)
    return _C.polar(_C.ones_like(angle), angle).to(x.dtype)


def _steps(x: Tensor, n: int) -> Tensor:
    return _C.arange(n, device=x.device)


def _composed(x: Tensor, forward: bool) -> Tensor:
    """The transform along the last dimension.

    A length of p times q has p transforms of length q of transforms of length p
    (Gentleman and Sande, 1966). A prime one that is long becomes a convolution
    (Bluestein, 1970).
    """
    n = x.shape[-1]
    p = next(k for k in range(math.isqrt(n), 0, -1) if n % k == 0)
    if n <= _DENSE:
        k = _steps(x, n)
        return x @ _turns(x, k.unsqueeze(-1) * k, n, forward)
    if p == 1:
        return _as_convolution(x, forward)
    q = n // p
    inner = _composed(x.unflatten(-1, (p, q)).mT, forward).mT
    steps = _steps(x, p).unsqueeze(-1) * _steps(x, q)
    outer = _composed(inner * _turns(x, steps, n, forward), forward)
    return outer.mT.reshape(x.shape)


def _as_convolution(x: Tensor, forward: bool) -> Tensor:
    """The transform as a convolution with a chirp, whose length is a power of 2."""
    n = x.shape[-1]
    length = 1 << (2 * n - 2).bit_length()
    k = _steps(x, n)
    chirp = _turns(x, k * k, 2 * n, forward)
    response = x.new_zeros(length)
    response[:n] = chirp.conj()
    response[length - n + 1 :] = chirp[1:].flip(0).conj()
    signal = x.new_zeros((*x.shape[:-1], length))
    signal[..., :n] = x * chirp
    product = _composed(signal, True) * _composed(response.unsqueeze(0), True)[0]
    return _composed(product, False)[..., :n] * (chirp / length)


def _has_library(x: Tensor) -> bool:
    return x.device.type == "cpu" and _library() is not None


def _c2c(x: Tensor, dims: tuple[int, ...], forward: bool) -> Tensor:
    if not x.numel():
        return x.clone()
    if _has_library(x):
        name = "fftn" if forward else "ifftn"
        return _by_library(name, x, forward, axes=dims)
    if _has_cufft(x):
        return _by_cufft(x, tuple(sorted(d % x.dim() for d in dims)), forward)
    for dim in dims:
        x = _composed(x.movedim(dim, -1), forward).movedim(-1, dim)
    return x.contiguous()


def _r2c(x: Tensor, dim: int) -> Tensor:
    half = x.shape[dim] // 2 + 1
    if _has_library(x) and x.numel():
        return _by_library("rfft", x, True, axis=dim)
    if _has_cufft(x) and x.numel():
        return _by_cufft(x, (dim,), True)
    whole = _c2c(x.to(complex_type(x)), (dim,), True)
    return whole.narrow(dim, 0, half).contiguous()


def _c2r(x: Tensor, n: int, dim: int) -> Tensor:
    if _has_library(x) and x.numel():
        return _by_library("irfft", x, False, n, axis=dim)
    if _has_cufft(x) and x.numel():
        return _by_cufft(x, (dim,), False, n)
    half = n // 2 + 1
    rest = x.narrow(dim, 1, n - half).flip(dim).conj()
    return _c2c(_C.cat([x, rest], dim), (dim,), False).real.contiguous()


# --- with gradients -----------------------------------------------------------------


def complex_type(x: Tensor) -> Any:
    """The complex type with x's precision."""
    return _C.complex128 if x.dtype == _C.float64 else _C.complex64


def _scaled(x: Tensor, scale: float) -> Tensor:
    return x if scale == 1 else x.mul_(scale)


class _OfComplex(Function):
    _node = "FftC2CBackward0"

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, dims: tuple[int, ...], forward: bool, scale: float
    ) -> Tensor:
        ctx.call = dims, not forward, scale
        return _scaled(_c2c(x, dims, forward), scale)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        return of_complex(g, *ctx.call), None, None, None


class _OfReal(Function):
    _node = "FftR2CBackward0"

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, scale: float) -> Tensor:
        ctx.call = x.shape[dim], dim, scale
        return _scaled(_r2c(x, dim), scale)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        n, dim, scale = ctx.call
        return of_complex(resized(g, dim, n), (dim,), False, scale).real, None, None


class _ToReal(Function):
    _node = "FftC2RBackward0"

    @staticmethod
    def forward(ctx: Any, x: Tensor, n: int, dim: int, scale: float) -> Tensor:
        ctx.call = n, dim, scale
        return _scaled(_c2r(x, n, dim), scale)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        n, dim, scale = ctx.call
        # All but the first element, and the middle one, stand for their conjugates too.
        times = _C.full((n // 2 + 1,), 2.0, dtype=g.dtype, device=g.device)
        times[:: n // 2 if n % 2 == 0 else n] = 1.0
        shape = [-1 if d == dim % g.dim() else 1 for d in range(g.dim())]
        return of_real(g, dim, scale) * times.reshape(shape), None, None, None


def of_complex(
    x: Tensor, dims: tuple[int, ...], forward: bool, scale: float = 1
) -> Tensor:
    """The transforms along dims, times scale."""
    return _OfComplex.apply(x, dims, forward, scale) if dims else x.clone()


def of_real(x: Tensor, dim: int, scale: float = 1) -> Tensor:
    """The first half of the transform of real elements."""
    return _OfReal.apply(x, dim, scale)


def to_real(x: Tensor, n: int, dim: int, scale: float = 1) -> Tensor:
    """n real elements, of whose inverse transform x is the first half."""
    return _ToReal.apply(resized(x, dim, n // 2 + 1), n, dim, scale)


def resized(x: Tensor, dim: int, n: int) -> Tensor:
    """The first n elements along a dimension, with zeros where there are fewer."""
    size = x.shape[dim]
    if n <= size:
        return x if n == size else x.narrow(dim, 0, n)
    shape = list(x.shape)
    shape[dim] = n - size
    return _C.cat([x, x.new_zeros(shape)], dim)
