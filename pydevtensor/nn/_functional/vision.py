"""Images of other sizes: interpolation, shuffled pixels, samples at given positions."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.nn import functional as F

if TYPE_CHECKING:
    from pydevtensor._functions.types import Sizes, Tensor, Text, Truth

# --- interpolation ---

# By mode: how one dimension is resampled, how many there may be, and the node's name.
_MODES = {
    "nearest": ("nearest", (1, 2, 3), "Nearest"),
    "nearest-exact": ("nearest-exact", (1, 2, 3), "NearestExact"),
    "linear": ("linear", (1,), "Linear"),
    "bilinear": ("linear", (2,), "Bilinear"),
    "trilinear": ("linear", (3,), "Trilinear"),
    "bicubic": ("cubic", (2,), "Bicubic"),
    "lanczos": ("lanczos", (2,), "Lanczos"),
    "area": ("area", (1, 2, 3), ""),
}
_AVERAGES = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)


def _each(name: str, value: Any, input: Any) -> list[Any]:
    """value for each dimension that is interpolated."""
    ndim = input.dim() - 2
    if not isinstance(value, (tuple, list)):
        return [value] * ndim
    if len(value) != ndim:
        raise ValueError(
            f"{name} is {value} for an input of shape {[*input.shape]}; "
            f"give one number, or {ndim}: one for each dimension after the channels"
        )
    return [*value]


def _check_way(mode: str, ndim: int, align_corners: Any, antialias: bool) -> None:
    """Raise for a mode that does not go with the dimensions or the options."""
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and ndim == 2):
        raise ValueError(
            "antialias is for 'bilinear', 'bicubic' and 'lanczos' of 4 "
            "dimensions; leave it out"
        )
    if ndim not in _MODES.get(mode, ("", (), ""))[1]:
        raise NotImplementedError(
            f"mode {mode!r} of an input of {ndim + 2} dimensions; give "
            "'nearest', 'nearest-exact' or 'area' for 3 to 5, 'linear' for 3, "
            "'bilinear', 'bicubic' or 'lanczos' for 4, 'trilinear' for 5"
        )
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError("'lanczos' needs antialias=True and takes no align_corners")


def _resampled(
    x: Any,
    sizes: list[int],
    way: str,
    scales: list[float],
    align_corners: bool,
    antialias: bool,
    rounds: bool,
) -> Any:
    """x with its last dimensions in other sizes; rounds: integers, after each one."""
    d = len(sizes) - 1
    while d >= 0:
        # Two dimensions at a time, unless the result between them is rounded.
        above = -1 if rounds or d == 0 else d - 1
        x = _C._resample(
            x,
            2 + d,
            sizes[d],
            way,
            scales[d],
            align_corners,
            antialias,
            above=-1 if above < 0 else sizes[above],
            above_scale=0.0 if above < 0 else scales[above],
        )
        if rounds:
            x = (x + 0.5).floor().clamp(0, 255)
        d -= 1 if above < 0 else 2
    return x


@function()
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: Text = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: Truth | None = None,
    antialias: Truth = False,
) -> Tensor:
    """input (N, C, and 1 to 3 dimensions) with those dimensions in another size.

    ValueError unless one of size and scale_factor is given, NotImplementedError for a
    mode that does not go with the number of dimensions.

    size                    sizes of the result, an int or one for each dimension
    scale_factor            what the sizes are multiplied by, a number or one for each
                            dimension
    mode                    'nearest', 'nearest-exact', 'area', 'linear' (of 1
                            dimension), 'bilinear', 'bicubic' and 'lanczos' (of 2) or
                            'trilinear' (of 3)
    align_corners           the first and the last elements stay where they are, else
                            the borders; not for 'nearest', 'nearest-exact' and 'area'
    recompute_scale_factor  the ratio of the sizes counts, not scale_factor
    antialias               smaller results are averages ('bilinear' and 'bicubic', and
                            always 'lanczos', which needs it)

    >>> x = torch.tensor([[[1.0, 3.0]]])
    >>> nn.functional.interpolate(x, scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    ndim = input.dim() - 2
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners is for 'linear', 'bilinear', 'bicubic' and "
            f"'trilinear', not for {mode!r}; leave it out"
        )
    if (size is None) == (scale_factor is None):
        raise ValueError("give either size or scale_factor, and one only")
    factors = (
        None if scale_factor is None else _each("scale_factor", scale_factor, input)
    )
    sizes = None if size is None else _each("size", size, input)
    if sizes is not None:
        if recompute_scale_factor:
            raise ValueError(
                "recompute_scale_factor has no meaning with size; leave it out"
            )
        for one in sizes:
            if not isinstance(one, int):
                raise TypeError(f"size is {size!r}; give ints")
    _check_way(mode, ndim, align_corners, antialias)
    way, _, node = _MODES[mode]
    given = input.shape[2:]
    if sizes is None:
        for factor in factors or ():
            if not isinstance(factor, (int, float)):
                raise TypeError(f"scale_factor is {scale_factor!r}; give numbers")
        pairs = zip(given, factors or (), strict=True)
        sizes = [math.floor(float(had) * factor) for had, factor in pairs]
        if recompute_scale_factor or way == "area":
            factors = None
    if way == "area":
        return _AVERAGES[ndim - 1](input, sizes)
    if min(*given, *sizes) < 1 or not input.shape[1]:
        raise RuntimeError(
            f"from shape {[*input.shape]} to sizes {sizes}; only the batch may be empty"
        )
    if not (input.is_floating_point() or input.dtype == _C.uint8):
        raise NotImplementedError(
            f"not defined for tensors of type {input.dtype}; convert it "
            "first, e.g. with .float()"
        )
    (input,) = _C._autocast_float_on_gpu(input)
    # Half-precision is rounded only once: one call takes two dimensions. Integers are
    # moved, or computed in float32 and rounded after each dimension, halves up.
    exact = way in ("nearest", "nearest-exact")
    wide = input.dtype in (_C.float32, _C.float64) or exact
    if ndim < 3 and input.is_floating_point():
        wide = True
    x = input if wide else input.float()
    rounds = input.dtype == _C.uint8 and not exact
    scales = [0.0] * ndim if factors is None else [float(f) for f in factors]
    if way == "nearest" and ndim == 2:
        # PyTorch takes these sizes of images alone by their ratio.
        for d in range(ndim):
            if sizes[d] in (given[d], 2 * given[d]):
                scales[d] = 0.0
    x = _resampled(x, sizes, way, scales, bool(align_corners), antialias, rounds)
    x = x.to(input.dtype)
    return _C._named(x, f"Upsample{node}{ndim}D{'Aa' * antialias}Backward0")


@function()
def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: Text = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """interpolate by its older name.

    size, scale_factor   what the sizes become or are multiplied by, one of the two
    mode, align_corners  as for interpolate

    >>> nn.functional.upsample(torch.tensor([[[1.0, 3.0]]]), 4)
    tensor([[[1., 1., 3., 3.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


@function()
def upsample_nearest(
    input: Tensor, size: Any = None, scale_factor: Any = None
) -> Tensor:
    """interpolate with mode='nearest'.

    size, scale_factor  what the sizes become or are multiplied by, one of the two

    >>> nn.functional.upsample_nearest(torch.tensor([[[1.0, 3.0]]]), 4)
    tensor([[[1., 1., 3., 3.]]])
    """
    return interpolate(input, size, scale_factor, mode="nearest")


@function()
def upsample_bilinear(
    input: Tensor, size: Any = None, scale_factor: Any = None
) -> Tensor:
    """interpolate with mode='bilinear' and align_corners=True.

    size, scale_factor  what height and width become or are multiplied by, one of the
                        two

    >>> nn.functional.upsample_bilinear(torch.tensor([[[[1.0, 3.0]]]]), (1, 3))
    tensor([[[[1., 2., 3.]]]])
    """
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# --- shuffles ---


def _positive(name: str, value: int) -> None:
    if value < 1:
        raise RuntimeError(f"{name} is {value}; give 1 or more")


def _need_dims(input: Any) -> None:
    if input.dim() < 3:
        raise RuntimeError(
            f"the input has {input.dim()} dimensions; give at least 3: "
            "channels and two more"
        )


def _divides(what: str, size: int, by: int) -> None:
    if size % by:
        raise RuntimeError(f"{size} {what} cannot be divided by {by}")


@function(package=True)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels as pixels: (..., C * r * r, H, W) to (..., C, H * r, W * r).

    RuntimeError for channels that r * r does not divide. See also pixel_unshuffle.

    upscale_factor  r, what height and width are multiplied by, 1 or more

    >>> nn.functional.pixel_shuffle(torch.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    r = upscale_factor
    _need_dims(input)
    _positive("upscale_factor", r)
    *batch, channels, height, width = input.shape
    _divides("channels", channels, r * r)
    split = input.reshape(*batch, channels // (r * r), r, r, height, width)
    n = len(batch)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    result = split.permute(order).reshape(
        *batch, channels // (r * r), height * r, width * r
    )
    return _C._named(result, "PixelShuffleBackward0")


@function(package=True)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels as channels: (..., C, H * r, W * r) to (..., C * r * r, H, W).

    RuntimeError for a height or width that r does not divide. See also pixel_shuffle.

    downscale_factor  r, what height and width are divided by, 1 or more

    >>> nn.functional.pixel_unshuffle(torch.arange(4.0).reshape(1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    r = downscale_factor
    _need_dims(input)
    _positive("downscale_factor", r)
    *batch, channels, height, width = input.shape
    _divides("rows", height, r)
    _divides("columns", width, r)
    split = input.reshape(*batch, channels, height // r, r, width // r, r)
    n = len(batch)
    order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
    result = split.permute(order).reshape(
        *batch, channels * r * r, height // r, width // r
    )
    return _C._named(result, "PixelUnshuffleBackward0")


@function()
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (N, C, ...), one of each of the groups in turn.

    groups  how many groups there are; RuntimeError unless it divides the channels

    >>> nn.functional.channel_shuffle(torch.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    _need_dims(input)
    _positive("groups", groups)
    batch, channels, *rest = input.shape
    _divides("channels", channels, groups)
    split = input.reshape(batch, groups, channels // groups, *rest)
    result = split.transpose(1, 2).reshape(input.shape)
    return _C._named(result, "ChannelShuffleBackward0")


@function()
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """channel_shuffle by another name.

    groups  how many groups the channels are in; RuntimeError unless it divides them

    >>> x = torch.arange(4.0).reshape(1, 4, 1)
    >>> nn.functional.native_channel_shuffle(x, 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    return channel_shuffle(input, groups)


# --- samples ---


def _clip(x: Any, size: int) -> Any:
    """x from 0 to size - 1, without a gradient from there on; a NaN is 0."""
    inside = (x > 0) & (x < size - 1)
    return _C.where(inside, x, x.detach().nan_to_num(0.0).clamp(0, size - 1))


def _reflect(x: Any, low: float, high: float) -> Any:
    """x mirrored at low and high as often as is needed."""
    span = high - low
    if not span:
        return _C.zeros_like(x)
    away = (x - low).abs()
    turns = (away.detach() / span).floor()
    extra = away - turns * span
    return low + _C.where(turns % 2 == 0, extra, span - extra)


def _padded(x: Any, size: int, padding: str, align: bool) -> Any:
    """Places outside of 0 to size - 1, brought back as the mode of padding says."""
    if padding == "reflection":
        x = _reflect(x, 0, size - 1) if align else _reflect(x, -0.5, size - 0.5)
    return x if padding == "zeros" else _clip(x, size)


def _cubic(t: Any) -> list[Any]:
    """The weights of four elements for position t after the second one (Keys, 1981)."""
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _taps(x: Any, size: int, mode: str, padding: str, align: bool) -> list[Any]:
    """(index, weight) of the elements that a position x of one dimension is made of."""
    x = ((x + 1) * (size - 1) if align else (x + 1) * size - 1) / 2
    if mode == "bicubic":
        below = x.detach().floor()
        weights = _cubic(x - below)
        places = [_padded(below + k, size, padding, align) for k in range(-1, 3)]
    else:
        x = _padded(x, size, padding, align)
        below = x.detach().floor()
        places = [below, below + 1]
        weights = [below + 1 - x, x - below]
        if mode == "nearest":
            places = [x.detach().round()]
            weights = [_C.ones_like(x)]
            if x.requires_grad:  # its gradient is zeros, as in PyTorch
                weights = [weights[0] + 0 * x.nan_to_num(0.0, 0.0, 0.0)]
    taps = []
    for place, weight in zip(places, weights, strict=True):
        inside = (place >= 0) & (place <= size - 1)
        index = place.nan_to_num(0.0).clamp(0, size - 1).long()
        taps.append((index, _C.where(inside, weight, 0 * weight)))
    return taps


def _check_grid(input: Any, grid: Any, mode: str, padding_mode: str) -> None:
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"mode is {mode!r}; give 'bilinear', 'nearest' or 'bicubic'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"padding_mode is {padding_mode!r}; give 'zeros', 'border' or 'reflection'"
        )
    ndim = input.dim() - 2
    if ndim not in (2, 3) or grid.dim() != ndim + 2 or grid.shape[-1] != ndim:
        raise RuntimeError(
            f"the input has shape {[*input.shape]} and the grid "
            f"{[*grid.shape]}; give (N, C, H, W) and (N, h, w, 2), or (N, C, D, H, W) "
            "and (N, d, h, w, 3)"
        )
    if input.shape[0] != grid.shape[0] or 0 in input.shape[2:]:
        raise RuntimeError(
            f"the input has shape {[*input.shape]} and the grid "
            f"{[*grid.shape]}; give batches of one size, and no empty images"
        )
    if mode == "bicubic" and ndim != 2:
        raise RuntimeError("'bicubic' is for inputs of 4 dimensions")
    if not input.is_floating_point():
        raise NotImplementedError(
            f"not defined for tensors of type {input.dtype}; convert it first, "
            "e.g. with .float()"
        )
    if input.dtype != grid.dtype:
        raise RuntimeError(
            f"the input is of {input.dtype} and the grid of {grid.dtype}; "
            "convert one of them with .to()"
        )


@function()
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: Text = "bilinear",
    padding_mode: Text = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample input (N, C, H, W) at the positions grid (N, h, w, 2): (N, C, h, w).

    Or input (N, C, D, H, W) and grid (N, d, h, w, 3). RuntimeError for other shapes and
    types.

    grid           positions, each x, y (and z), from -1 to 1, of input's type
    mode           'bilinear', 'nearest' or 'bicubic', between pixels; ValueError for
                   another
    padding_mode   what is outside: 'zeros', the 'border' or a 'reflection'
    align_corners  whether -1 and 1 are the centers of the first and the last pixel,
                   else their outer borders, with a warning if it is left out

    >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> nn.functional.grid_sample(x, torch.zeros(1, 1, 1, 2), align_corners=True)
    tensor([[[[2.5000]]]])
    """
    input, grid = _C._autocast_float_on_cpu(input, grid)
    if input.dtype != grid.dtype:
        input, grid = _C._autocast_float_on_gpu(input, grid)
    _check_grid(input, grid, mode, padding_mode)
    align = _corners("grid_sample", align_corners)
    half = input.dtype in (_C.float16, _C.bfloat16)
    x, places = (input.float(), grid.float()) if half else (input, grid)
    ndim = input.dim() - 2
    sizes = input.shape[2:]
    # The grid has x first, which is the last dimension.
    taps = [
        _taps(places[..., ndim - 1 - d], sizes[d], mode, padding_mode, align)
        for d in range(ndim)
    ]
    planes = x.flatten(2)
    result: Any = 0
    for corner in itertools.product(*taps):
        index, weight = corner[0]
        for d in range(1, ndim):
            index = index * sizes[d] + corner[d][0]
            weight = weight * corner[d][1]
        flat = index.flatten(1).unsqueeze(1).expand(-1, x.shape[1], -1)
        result = result + planes.gather(2, flat) * weight.flatten(1).unsqueeze(1)
    result = result.reshape(*x.shape[:2], *grid.shape[1:-1]).to(input.dtype)
    return _C._named(result, f"GridSampler{ndim}DBackward0")


def _corners(name: str, align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            f"{name}: align_corners is not given, so it is False; give it", stacklevel=3
        )
    return bool(align_corners)


@function()
def affine_grid(
    theta: Tensor, size: Sizes, align_corners: bool | None = None
) -> Tensor:
    """The grid for grid_sample where each position is theta @ (x, y, 1).

    Its shape is (N, H, W, 2), or (N, D, H, W, 3). ValueError, RuntimeError or
    NotImplementedError for shapes that do not fit.

    theta          matrices, (N, 2, 3), or (N, 3, 4) for volumes
    size           (N, C, H, W) or (N, C, D, H, W), of the images that grid_sample is to
                   give
    align_corners  as for grid_sample

    >>> theta = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    if not theta.is_floating_point():
        raise ValueError(f"theta is of {theta.dtype}; give floats")
    ndim = len(size) - 2
    if ndim not in (2, 3):
        raise NotImplementedError(
            f"size is {tuple(size)}; give (N, C, H, W) or (N, C, D, H, W)"
        )
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (ndim, ndim + 1):
        raise ValueError(
            f"theta has shape {[*theta.shape]}; for size {tuple(size)} "
            f"give (N, {ndim}, {ndim + 1})"
        )
    if min(size) < 1:
        raise ValueError(f"size is {tuple(size)}; give sizes of at least 1")
    if theta.shape[0] != size[0]:
        raise RuntimeError(
            f"{theta.shape[0]} matrices for a batch of {size[0]}; give "
            "one for each image"
        )
    align = _corners("affine_grid", align_corners)
    spatial = [*size[2:]]
    columns = []
    for d in range(ndim - 1, -1, -1):
        n = spatial[d]
        line = _C.linspace(-1, 1, n, dtype=theta.dtype, device=theta.device)
        line = line * 0 if n == 1 else line if align else line * ((n - 1) / n)
        shape = [1] * ndim
        shape[d] = n
        columns.append(line.reshape(shape).expand(spatial))
    columns.append(_C.ones_like(columns[0]))
    base = _C.stack(columns, -1).reshape(-1, ndim + 1)
    grid = (base @ theta.transpose(1, 2)).reshape(size[0], *spatial, ndim)
    return _C._named(grid, "AffineGridGeneratorBackward0")
