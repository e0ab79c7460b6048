"""The transforms under their public names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import fourier, function

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydevtensor._functions.types import Dims, Tensor

    _Kind = Callable[[Tensor, Any, Any, str | None, bool], Tensor]

# --- arguments ----------------------------------------------------------------------


def _floating(x: Tensor, real: bool = False) -> Tensor:
    """x in a type that has transforms."""
    if real and x.is_complex():
        raise RuntimeError(f"input is of {x.dtype}; give a real Tensor")
    if not (x.is_floating_point() or x.is_complex()):
        return x.to(_C.get_default_dtype())
    if x.dtype in (_C.float16, _C.bfloat16):
        raise RuntimeError(f"input is of {x.dtype}; convert it with .float()")
    return x


def _as_complex(x: Tensor) -> Tensor:
    x = _floating(x)
    return x if x.is_complex() else x.to(fourier.complex_type(x))


def _scale(norm: str | None, n: int, forward: bool) -> float:
    if norm not in (None, "forward", "backward", "ortho"):
        raise RuntimeError(f"norm is {norm!r}; give 'forward', 'backward' or 'ortho'")
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm == "forward") == forward else 1


def _dim(x: Tensor, dim: int) -> int:
    if not -x.dim() <= dim < x.dim():
        raise IndexError(f"dim is {dim}, and input has {x.dim()} dimensions")
    return dim % x.dim()


def _positive(n: int) -> int:
    if n < 1:
        raise RuntimeError(f"a length is {n}; give 1 or more")
    return n


def _wanted(
    x: Tensor, s: Dims | None, dim: Dims | None, halved: bool = False
) -> tuple[list[int], tuple[int, ...]]:
    """The lengths and the dimensions; halved: the last length is twice the size."""
    if dim is None:
        count = x.dim() if s is None else len(s)
        if count > x.dim():
            raise RuntimeError(f"s has {count} lengths, and input {x.dim()} dimensions")
        dims = tuple(range(x.dim() - count, x.dim()))
    else:
        dims = tuple(_dim(x, d) for d in dim)
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"dim is {dim}; give each dimension once")
    if s is not None and len(s) != len(dims):
        raise RuntimeError(f"s has {len(s)} lengths for {len(dims)} dimensions")
    sizes = [x.shape[d] for d in dims]
    if halved and sizes:
        sizes[-1] = 2 * (sizes[-1] - 1)
    if s is not None:
        sizes = [size if n == -1 else n for n, size in zip(s, sizes, strict=True)]
    return [_positive(n) for n in sizes], dims


def _resized(x: Tensor, sizes: list[int], dims: tuple[int, ...]) -> Tensor:
    for n, dim in zip(sizes, dims, strict=True):
        x = fourier.resized(x, dim, n)
    return x


# --- three kinds --------------------------------------------------------------------


def _complex(x: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    x = _as_complex(x)
    sizes, dims = _wanted(x, s, dim)
    scale = _scale(norm, math.prod(sizes), forward)
    return fourier.of_complex(_resized(x, sizes, dims), dims, forward, scale)


def _real(x: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    """Half of a transform of real elements: forward, or inverse and so conjugate."""
    x = _floating(x, real=True)
    sizes, dims = _wanted(x, s, dim)
    if not dims:
        raise RuntimeError("there is no dimension to transform; give one in dim")
    scale = _scale(norm, math.prod(sizes), forward)
    half = fourier.of_real(_resized(x, sizes, dims), dims[-1], scale)
    half = half if forward else half.conj()
    return fourier.of_complex(half, dims[:-1], forward) if dims[1:] else half


def _to_real(x: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    """The real elements of a half: by an inverse transform, or a forward one."""
    x = _as_complex(x)
    sizes, dims = _wanted(x, s, dim, halved=True)
    if not dims:
        raise RuntimeError("there is no dimension to transform; give one in dim")
    scale = _scale(norm, math.prod(sizes), forward)
    x = _resized(x, [*sizes[:-1], sizes[-1] // 2 + 1], dims)
    if dims[1:]:
        x = fourier.of_complex(x, dims[:-1], forward)
    return fourier.to_real(x.conj() if forward else x, sizes[-1], dims[-1], scale)


# --- one dimension ------------------------------------------------------------------


def _one(
    kind: _Kind,
    forward: bool,
    /,
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
) -> Tensor:
    return kind(input, None if n is None else (n,), (dim,), norm, forward)


@function(out=True, like="_one", given=(_complex, True))
def fft() -> Tensor:
    """The discrete Fourier transform along a dimension: complex.

    n: the length, to which the input is cut, or filled with zeros; that of the input.
    dim: the dimension.
    norm: "backward", which None means, leaves the forward transform without a factor
    and divides the inverse one by n; "forward" the other way round; "ortho" divides
    both by the root of n. RuntimeError for another.

    Integers and bools are converted to the default type; RuntimeError for 16 bits.

    >>> torch.fft.fft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """


@function(out=True, like="_one", given=(_complex, False))
def ifft() -> Tensor:
    """The inverse discrete Fourier transform along a dimension: complex.

    n, dim, norm: as in fft().

    >>> torch.fft.ifft(torch.tensor([4.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """


@function(out=True, like="_one", given=(_real, True))
def rfft() -> Tensor:
    """The first n // 2 + 1 elements of the transform of real numbers.

    The others are their conjugates.

    n, dim, norm: as in fft().

    >>> torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """


@function(out=True, like="_one", given=(_to_real, False))
def irfft() -> Tensor:
    """Real numbers whose rfft() is the input.

    n: how many; 2 * (size - 1) where it is not given.
    dim, norm: as in fft().

    >>> torch.fft.irfft(torch.tensor([10.0 + 0j, -2 + 2j, -2]))
    tensor([1., 2., 3., 4.])
    """


@function(out=True, like="_one", given=(_to_real, True))
def hfft() -> Tensor:
    """The transform, which is real, of a signal that its first half determines.

    The other half are the conjugates of the first.

    n: the length of the result; 2 * (size - 1) where it is not given.
    dim, norm: as in fft().

    >>> torch.fft.hfft(torch.tensor([1.0, 2.0, 3.0]))
    tensor([ 8., -2.,  0., -2.])
    """


@function(out=True, like="_one", given=(_real, False))
def ihfft() -> Tensor:
    """The first n // 2 + 1 elements of the inverse transform of real numbers.

    n, dim, norm: as in fft().

    >>> torch.fft.ihfft(torch.tensor([8.0, -2.0, 0.0, -2.0]))
    tensor([1.-0.j, 2.-0.j, 3.-0.j])
    """


# --- several dimensions -------------------------------------------------------------


def _several(
    kind: _Kind,
    forward: bool,
    /,
    input: Tensor,
    s: Dims | None = None,
    dim: Dims | None = None,
    norm: str | None = None,
) -> Tensor:
    return kind(input, s, dim, norm, forward)


@function(out=True, like="_several", given=(_complex, True))
def fftn() -> Tensor:
    """fft() along several dimensions.

    s: the length along each; -1 or None for the input's. dim: all, or the last len(s).
    norm: as in fft(), with the product of the lengths for n.

    >>> torch.fft.fftn(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """


@function(out=True, like="_several", given=(_complex, False))
def ifftn() -> Tensor:
    """ifft() along several dimensions.

    s, dim, norm: as in fftn().

    >>> torch.fft.ifftn(torch.tensor([[4.0, 0.0], [0.0, 0.0]]))
    tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]])
    """


@function(out=True, like="_several", given=(_real, True))
def rfftn() -> Tensor:
    """rfft() along the last of several dimensions, and fft() along the others.

    s, dim, norm: as in fftn().

    >>> torch.fft.rfftn(torch.ones(2, 4)).shape
    torch.Size([2, 3])
    """


@function(out=True, like="_several", given=(_to_real, False))
def irfftn() -> Tensor:
    """Real numbers whose rfftn() is the input.

    s: the lengths of the result. dim, norm: as in fftn().

    >>> torch.fft.irfftn(torch.fft.rfftn(torch.ones(2, 4)))
    tensor([[1., 1., 1., 1.],
            [1., 1., 1., 1.]])
    """


@function(out=True, like="_several", given=(_to_real, True))
def hfftn() -> Tensor:
    """hfft() along the last of several dimensions, and fft() along the others.

    s: the lengths of the result. dim, norm: as in fftn().

    >>> torch.fft.hfftn(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """


@function(out=True, like="_several", given=(_real, False))
def ihfftn() -> Tensor:
    """ihfft() along the last of several dimensions, and ifft() along the others.

    s, dim, norm: as in fftn().

    >>> torch.fft.ihfftn(torch.ones(2, 4)).shape
    torch.Size([2, 3])
    """


# --- two dimensions -----------------------------------------------------------------


def _two(
    kind: _Kind,
    forward: bool,
    /,
    input: Tensor,
    s: Dims | None = None,
    dim: Dims = (-2, -1),
    norm: str | None = None,
) -> Tensor:
    return kind(input, s, dim, norm, forward)


@function(out=True, like="_two", given=(_complex, True))
def fft2() -> Tensor:
    """fftn() along two dimensions, the last ones.

    s, dim, norm: as in fftn().

    >>> torch.fft.fft2(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """


@function(out=True, like="_two", given=(_complex, False))
def ifft2() -> Tensor:
    """ifftn() along two dimensions, the last ones.

    s, dim, norm: as in fftn().

    >>> torch.fft.ifft2(torch.tensor([[4.0, 0.0], [0.0, 0.0]]))
    tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]])
    """


@function(out=True, like="_two", given=(_real, True))
def rfft2() -> Tensor:
    """rfftn() along two dimensions, the last ones.

    s, dim, norm: as in fftn().

    >>> torch.fft.rfft2(torch.ones(2, 4)).shape
    torch.Size([2, 3])
    """


@function(out=True, like="_two", given=(_to_real, False))
def irfft2() -> Tensor:
    """irfftn() along two dimensions, the last ones.

    s, dim, norm: as in irfftn().

    >>> torch.fft.irfft2(torch.fft.rfft2(torch.ones(2, 2)))
    tensor([[1., 1.],
            [1., 1.]])
    """


@function(out=True, like="_two", given=(_to_real, True))
def hfft2() -> Tensor:
    """hfftn() along two dimensions, the last ones.

    s, dim, norm: as in hfftn().

    >>> torch.fft.hfft2(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """


@function(out=True, like="_two", given=(_real, False))
def ihfft2() -> Tensor:
    """ihfftn() along two dimensions, the last ones.

    s, dim, norm: as in ihfftn().

    >>> torch.fft.ihfft2(torch.ones(2, 4)).shape
    torch.Size([2, 3])
    """
