"""Pooling: one number for each window over the last dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.nn import functional as F

if TYPE_CHECKING:
    from pydevtensor._functions.types import Dims, PerDim, Tensor, Truth


def numbers(name: str, value: Any, ndim: int) -> list[int]:
    """The value for each of ndim dimensions: one for all, or a sequence of them."""
    if isinstance(value, int):
        return [value] * ndim
    if len(value) not in (1, ndim):
        raise RuntimeError(
            f"{name} has {len(value)} numbers; give one, or {ndim}: one for each "
            "dimension that the window slides along"
        )
    return [*value] * (ndim // len(value))


# --- norms ---


def _power_mean(
    ndim: int,
    /,
    input: Tensor,
    norm_type: float,
    kernel_size: Dims,
    stride: Dims | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    p = norm_type
    if not p:
        raise ZeroDivisionError("norm_type is 0; give another number")
    if p in (math.inf, -math.inf):  # the limits: the largest and the least
        sign = math.copysign(1, p)
        pool = getattr(F, f"max_pool{ndim}d")
        taken = pool(input.abs() * sign, kernel_size, stride, ceil_mode=ceil_mode)
        return taken * sign
    pool = getattr(F, f"avg_pool{ndim}d")
    out = pool(input.pow(p), kernel_size, stride, ceil_mode=ceil_mode)
    size = math.prod(numbers("kernel_size", kernel_size, ndim))
    return (out.sign() * out.abs().relu() * size).pow(1.0 / p)


@function(like="_power_mean", given=(1,))
def lp_pool1d() -> Tensor:
    """The p-th root of the sum of x^p over each window of (..., length).

    norm_type    p; inf: the largest |x|, -inf: the least; ZeroDivisionError for 0
    kernel_size  size of the window, a number or one for each dimension
    stride       step of the window (kernel_size)
    ceil_mode    let a last window reach over the end

    >>> nn.functional.lp_pool1d(torch.tensor([[3.0, 4.0, 0.0, 2.0]]), 2, 2)
    tensor([[5., 2.]])
    """


@function(like="lp_pool1d", given=(2,))
def lp_pool2d() -> Tensor:
    """The p-th root of the sum of x^p over each window of (..., height, width).

    >>> nn.functional.lp_pool2d(torch.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    tensor([[[5.]]])
    """


@function(like="lp_pool1d", given=(3,))
def lp_pool3d() -> Tensor:
    """The p-th root of the sum of x^p over each window of (..., depth, height, width).

    >>> nn.functional.lp_pool3d(torch.tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
    tensor([[[[5.]]]])
    """


# --- fractional ---


def _starts(samples: Any, size: int, output: int, kernel: int) -> Any:
    """Where the windows of each plane begin (Graham, 2014), int64."""
    if output == 1:
        return _C.full_like(samples, size - kernel, dtype=_C.int64).unsqueeze(-1)
    alpha = _C.full_like(samples, size - kernel).div(output - 1).unsqueeze(-1)
    u = samples.unsqueeze(-1)
    steps = _C.arange(output - 1, device=samples.device)
    starts = ((steps + u) * alpha).long() - (u * alpha).long()
    last = _C.full_like(starts[..., :1], size - kernel)
    return _C.cat([starts, last], -1)


def _window_counts(given: Any, wanted: Any, ratio: Any) -> list[int]:
    """How many windows each dimension has, of those given and wanted, or a ratio."""
    ndim = len(given)
    if wanted is not None:
        return numbers("output_size", wanted, ndim)
    if len(ratio) != ndim:
        raise ValueError(f"output_ratio has {len(ratio)} numbers; give {ndim}")
    return [int(size * each) for size, each in zip(given, ratio, strict=True)]


def _window_elements(samples: Any, given: Any, output: Any, kernel: Any) -> Any:
    """Where the elements of the windows are in a plane, (N, C, *output, *kernel)."""
    ndim = len(kernel)
    # In two dimensions the first number is the width's.
    order = range(ndim) if ndim == 3 else range(ndim - 1, -1, -1)
    flat: Any = None
    for d, which in enumerate(order):
        begin = _starts(samples[..., which], given[d], output[d], kernel[d])
        at = begin.unsqueeze(-1) + _C.arange(kernel[d], device=samples.device)
        shape = [1] * (2 * ndim)
        shape[d], shape[ndim + d] = output[d], kernel[d]
        at = at.reshape(*samples.shape[:2], *shape)
        flat = at if flat is None else flat * given[d] + at
    return flat


def _fractional(
    ndim: int,
    always: bool,
    /,
    input: Tensor,
    kernel_size: Dims,
    output_size: Dims | None = None,
    output_ratio: Any = None,
    return_indices: Truth = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """always: give the indices, whatever return_indices is."""
    if output_size is None and output_ratio is None:
        raise ValueError("output_size and output_ratio are None; give one of them")
    if input.dim() not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"the input has {input.dim()} dimensions; give {ndim + 1} or {ndim + 2}"
        )
    given = input.shape[-ndim:]
    output = _window_counts(given, output_size, output_ratio)
    kernel = numbers("kernel_size", kernel_size, ndim)
    input, samples = _C._autocast_float_on_cpu(input, _random_samples)
    x = input if input.dim() == ndim + 2 else input.unsqueeze(0)
    for had, made, taps in zip(given, output, kernel, strict=True):
        # PyTorch wants one element more than are needed in three dimensions.
        if taps < 1 or made < 1 or made + taps - 1 > had - (ndim == 3):
            raise RuntimeError(
                f"{made} windows of {taps} elements do not fit into {had}; "
                "give fewer or smaller ones"
            )
    if samples is None:
        samples = _C.rand(*x.shape[:2], ndim, dtype=x.dtype, device=x.device)
    flat = _window_elements(samples, given, output, kernel).flatten(2 + ndim)
    windows = _C._flat(x).flatten(2).gather(-1, flat.flatten(2)).reshape(flat.shape)
    values, places = windows.max(-1)
    indices = flat.gather(-1, places.unsqueeze(-1)).squeeze(-1)
    if input.dim() == ndim + 1:
        values, indices = values.squeeze(0), indices.squeeze(0)
    values = _C._named(values, f"FractionalMaxPool{ndim}DBackward0")
    return (values, indices) if always or return_indices else values


@function(like="_fractional", given=(2, False))
def fractional_max_pool2d() -> Any:
    """The maximum of windows of (..., height, width) at random distances.

    By Graham, 2014. ValueError unless the number of windows is given, RuntimeError
    where they do not fit.

    kernel_size      size of the window, a number or one for each dimension
    output_size      the number of windows, one for all or one for each dimension
    output_ratio     in its place, windows for each element, a number from 0 to 1 for
                     each dimension
    return_indices   also give where the maxima are
    _random_samples  numbers from 0 to 1, of shape (N, C, 2), instead of random ones

    >>> nn.functional.fractional_max_pool2d(torch.ones(1, 5, 5), 2, (3, 3)).shape
    torch.Size([1, 3, 3])
    """


@function(like="fractional_max_pool2d", given=(3, False))
def fractional_max_pool3d() -> Any:
    """The maximum of windows of the last three dimensions at random distances.

    _random_samples  numbers from 0 to 1, of shape (N, C, 3), instead of random ones

    >>> nn.functional.fractional_max_pool3d(torch.ones(1, 5, 5, 5), 2, 3).shape
    torch.Size([1, 3, 3, 3])
    """


@function(like="_fractional", given=(2, True))
def fractional_max_pool2d_with_indices() -> Any:
    """fractional_max_pool2d with return_indices=True.

    kernel_size     size of the window, a number or one for each dimension
    output_size     the number of windows, one for all or one for each dimension
    output_ratio    in its place, windows for each element, a number for each dimension
    return_indices  of no effect: the indices are given always

    >>> x = torch.arange(4.0).reshape(1, 2, 2)
    >>> nn.functional.fractional_max_pool2d_with_indices(x, 2, 1)
    (tensor([[[3.]]]), tensor([[[3]]]))
    """


@function(like="fractional_max_pool2d_with_indices", given=(3, True))
def fractional_max_pool3d_with_indices() -> Any:
    """fractional_max_pool3d with return_indices=True.

    >>> x = torch.arange(27.0).reshape(1, 3, 3, 3)
    >>> nn.functional.fractional_max_pool3d_with_indices(x, 2, 1)
    (tensor([[[[26.]]]]), tensor([[[[26]]]]))
    """


# --- back ---


def _unpool(
    ndim: int,
    /,
    input: Tensor,
    indices: Tensor,
    kernel_size: Dims,
    stride: Dims | None = None,
    padding: PerDim = 0,
    output_size: Any = None,
) -> Tensor:
    kernel = numbers("kernel_size", kernel_size, ndim)
    steps = numbers("stride", stride, ndim) if stride is not None else kernel
    border = numbers("padding", padding, ndim)
    if input.dim() not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"the input has {input.dim()} dimensions; give {ndim + 1} or {ndim + 2}"
        )
    if indices.dtype != _C.int64:
        raise RuntimeError(
            f"the indices are of {indices.dtype}; convert them with .long()"
        )
    if indices.shape != input.shape:
        raise RuntimeError(
            f"the input has shape {[*input.shape]} and the indices have "
            f"{[*indices.shape]}; give the indices of max_pool{ndim}d"
        )
    if min(steps) < 1:
        raise RuntimeError(f"the stride is {stride}; give 1 or more")
    sizes = [
        (size - 1) * steps[d] - 2 * border[d] + kernel[d]
        for d, size in enumerate(input.shape[-ndim:])
    ]
    if output_size is not None:
        given = [*output_size][-ndim:]
        if len(output_size) not in (ndim, ndim + 1, ndim + 2):
            raise ValueError(
                f"output_size has {len(output_size)} numbers; give {ndim} or {ndim + 2}"
            )
        for d, size in enumerate(given):
            low, high = sizes[d] - steps[d], sizes[d] + steps[d]
            if not low < size < high:
                raise ValueError(
                    f"invalid output_size {[*output_size]}: dimension {d} must "
                    f"be between {low} and {high}"
                )
        sizes = given
    if min(sizes) < 1:
        raise RuntimeError(f"the output would have sizes {sizes}; give more")
    (input,) = _C._autocast_float_on_cpu(input)
    planes = input.new_zeros(*input.shape[:-ndim], math.prod(sizes))
    flat = planes.scatter(-1, indices.flatten(-ndim), input.flatten(-ndim))
    result = flat.reshape(*input.shape[:-ndim], *sizes)
    return _C._named(result, f"MaxUnpool{ndim}DBackward0")


@function(like="_unpool", given=(1,))
def max_unpool1d() -> Tensor:
    """Maxima put back to where max_pool1d found them, in zeros.

    Raises RuntimeError for an index outside of the output; on a GPU, AcceleratorError
    at the next synchronization.

    indices      indices of the maxima, int64 of input's shape, which max_pool1d gives
                 with return_indices=True; RuntimeError for others
    kernel_size  size of the window, a number or one for each dimension
    stride       step of the window (kernel_size)
    padding      elements added at both ends of each dimension
    output_size  which of the sizes that give this many maxima; ValueError for one that
                 does not

    >>> nn.functional.max_unpool1d(torch.tensor([[3.0]]), torch.tensor([[1]]), 2)
    tensor([[0., 3.]])
    """


@function(like="max_unpool1d", given=(2,))
def max_unpool2d() -> Tensor:
    """Maxima put back to where max_pool2d found them, in zeros: see max_unpool1d.

    indices      indices of the maxima in a plane, int64 of input's shape, which
                 max_pool2d gives with return_indices=True
    output_size  which of the sizes that give this many maxima, one for each dimension

    >>> nn.functional.max_unpool2d(torch.tensor([[[3.0]]]), torch.tensor([[[1]]]), 2)
    tensor([[[0., 3.],
             [0., 0.]]])
    """


@function(like="max_unpool1d", given=(3,))
def max_unpool3d() -> Tensor:
    """Maxima put back to where max_pool3d found them, in zeros: see max_unpool1d.

    indices      indices of the maxima in a volume, int64 of input's shape, which
                 max_pool3d gives with return_indices=True
    output_size  which of the sizes that give this many maxima, one for each dimension

    >>> index = torch.tensor([[[[1]]]])
    >>> nn.functional.max_unpool3d(torch.tensor([[[[3.0]]]]), index, (1, 1, 2))
    tensor([[[[0., 3.]]]])
    """
