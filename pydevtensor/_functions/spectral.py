"""Spectra of short pieces of signals."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import fourier, function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor

_ENDS = {
    "reflect": lambda at, n: n - 1 - (n - 1 - at.abs()).abs(),
    "replicate": lambda at, n: at.clamp(0, n - 1),
    "circular": lambda at, n: at % n,
}


def _padded(x: Tensor, count: int, mode: str) -> Tensor:
    """count more elements at either end of the last dimension."""
    n = x.shape[-1]
    if mode == "constant":
        return _C.constant_pad_nd(x, [count, count], 0)
    if mode not in _ENDS:
        raise NotImplementedError(
            f"pad_mode is {mode!r}; give 'constant' or one of {', '.join(_ENDS)}"
        )
    if count > n - (mode == "reflect"):
        raise RuntimeError(
            f"{count} elements at either end are more than a signal of {n} has; give a "
            "smaller n_fft, or center=False"
        )
    at = _C.arange(-count, n + count, device=x.device)
    return x.index_select(-1, _ENDS[mode](at, n))


def _sizes(n_fft: int, hop: int | None, width: int | None) -> tuple[int, int]:
    """hop_length and win_length."""
    hop = n_fft // 4 if hop is None else hop
    width = n_fft if width is None else width
    if hop < 1:
        raise RuntimeError(f"hop_length is {hop}; give 1 or more")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"win_length is {width}; give 1 to {n_fft}, which is n_fft")
    return hop, width


def _window(window: Tensor | None, width: int, n_fft: int, x: Tensor) -> Tensor:
    """The window, with zeros on either side up to the length of n_fft."""
    if window is None:
        kind = _C.float64 if x.dtype in (_C.float64, _C.complex128) else _C.float32
        window = _C.ones(width, dtype=kind, device=x.device)
    if window.shape != (width,):
        raise RuntimeError(
            f"window has the shape {tuple(window.shape)}; give ({width},): win_length"
        )
    before = (n_fft - width) // 2
    return _C.constant_pad_nd(window, [before, n_fft - width - before], 0)


@function(method=True)
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Transforms of pieces of a signal times a window: (..., frequencies, pieces).

    input: a signal, or a batch of them, (B, L). n_fft: the length of the transforms.
    hop_length: from one piece to the next one, n_fft // 4 by default. win_length: the
    length of the window, n_fft by default; a shorter one has zeros on either side.
    window: the factors, ones by default. center: piece t has element t * hop_length in
    its middle; pad_mode says what is beyond the ends: "reflect", "constant" (0),
    "replicate" or "circular". normalized: divides by the root of n_fft. onesided: the
    first n_fft // 2 + 1 frequencies, of real signals, which is their default.
    return_complex: has to be given for real signals; False gives the parts in a last
    dimension of 2. align_to_window: has to be None or False.

    RuntimeError for other shapes, and lengths that do not fit.

    >>> torch.stft(torch.ones(8), 4, center=False, return_complex=True)[:, 0]
    tensor([4.+0.j, 0.+0.j, 0.+0.j])
    """
    complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not complex:
            raise RuntimeError("give return_complex=True, or False for a real result")
        return_complex = True
    if align_to_window:
        raise RuntimeError("align_to_window is True; leave it out")
    if input.dim() not in (1, 2) or not (complex or input.is_floating_point()):
        raise RuntimeError(
            f"input is {input.dtype} of the shape {tuple(input.shape)}; give floats or "
            "complex numbers of the shape (L,) or (B, L)"
        )
    hop, width = _sizes(n_fft, hop_length, win_length)
    factors = _window(window, width, n_fft, input)
    x = _padded(input, n_fft // 2, pad_mode) if center else input
    if not 0 < n_fft <= x.shape[-1]:
        raise RuntimeError(f"n_fft is {n_fft}; give 1 to {x.shape[-1]}")
    onesided = not complex if onesided is None else onesided
    if onesided and complex:
        raise RuntimeError("onesided is True; give False where elements are complex")
    pieces = x.unfold(-1, n_fft, hop) * factors
    scale = 1 / math.sqrt(n_fft) if normalized else 1
    if onesided:
        spectra = fourier.of_real(pieces, -1, scale)
    else:
        if not complex:
            pieces = pieces.to(fourier.complex_type(pieces))
        spectra = fourier.of_complex(pieces, (-1,), True, scale)
    spectra = spectra.mT
    return spectra if return_complex else _C.view_as_real(spectra)


@function(method=True)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which input is the stft(), with the same arguments.

    input: complex, (frequencies, pieces) or (B, frequencies, pieces). n_fft,
    hop_length, win_length, window, center, normalized: those of the stft(). onesided:
    whether input has the first n_fft // 2 + 1 frequencies alone. length: that of the
    signal.
    return_complex: gives a complex signal, of all frequencies.

    RuntimeError where the windows leave an element out.

    >>> torch.istft(torch.stft(torch.ones(8), 4, return_complex=True), 4)
    tensor([1., 1., 1., 1., 1., 1., 1., 1.])
    """
    if not input.is_complex() or input.dim() not in (2, 3) or not input.numel():
        raise RuntimeError(
            f"input is {input.dtype} of the shape {tuple(input.shape)}; give complex "
            "numbers of the shape (frequencies, pieces) or (B, frequencies, pieces)"
        )
    bins = input.shape[-2]
    if onesided is None:
        onesided = bins != n_fft
    if bins != (n_fft // 2 + 1 if onesided else n_fft):
        raise RuntimeError(
            f"input has {bins} frequencies, which n_fft={n_fft} does not"
        )
    if onesided and return_complex:
        raise RuntimeError("return_complex is True; give all frequencies then")
    hop, width = _sizes(n_fft, hop_length, win_length)
    factors = _window(window, width, n_fft, input)
    scale = 1 / math.sqrt(n_fft) if normalized else 1 / n_fft
    if return_complex:
        pieces = fourier.of_complex(input.mT, (-1,), False, scale)
    else:
        first = input.mT[..., : n_fft // 2 + 1]
        pieces = fourier.to_real(first, n_fft, -1, scale)
    count = pieces.shape[-2]
    at = _C.arange(count, device=input.device).unsqueeze(-1) * hop
    at = (at + _C.arange(n_fft, device=input.device)).reshape(-1)
    whole = n_fft + hop * (count - 1)

    def joined(pieces: Tensor) -> Any:
        empty = pieces.new_zeros((*pieces.shape[:-2], whole))
        return empty.index_add(-1, at, pieces.flatten(-2))

    signal = joined(pieces * factors)
    weight = joined((factors * factors).expand(count, n_fft))
    start = n_fft // 2 if center else 0
    end = whole - start if length is None else min(start + length, whole)
    signal, weight = signal[..., start:end], weight[start:end]
    if not (weight.abs() > 1e-11).all():
        raise RuntimeError(
            "the windows leave an element of the signal out; give others"
        )
    signal = signal / weight
    if length is not None and length > signal.shape[-1]:
        warnings.warn(
            f"istft: the signal is shorter than length={length}, and ends with zeros",
            UserWarning,
            stacklevel=2,
        )
        signal = fourier.resized(signal, signal.dim() - 1, length)
    return signal
