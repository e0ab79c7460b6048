"""Shuffles and samples of nn.functional that are the package's as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor._functions import function
from pydevtensor.nn import functional as F

if TYPE_CHECKING:
    from pydevtensor._functions.types import Sizes, Tensor


@function(aliases=("native_channel_shuffle",))
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (N, C, ...), one of each of the groups in turn.

    >>> torch.channel_shuffle(torch.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    return F.channel_shuffle(input, groups)


@function(aliases=("grid_sampler_2d", "grid_sampler_3d"))
def grid_sampler(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor:
    """nn.functional.grid_sample with numbers for the modes.

    interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic. padding_mode: 0 zeros, 1
    border, 2 reflection.

    grid           where to sample: x and y, from -1 to 1, in its last dimension
    align_corners  -1 and 1 are the centers of the outermost pixels, else their edges

    >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> torch.grid_sampler(x, torch.zeros(1, 1, 1, 2), 0, 0, True)
    tensor([[[[2.5000]]]])
    """
    modes, paddings = (
        ("bilinear", "nearest", "bicubic"),
        ("zeros", "border", "reflection"),
    )
    if interpolation_mode not in range(3) or padding_mode not in range(3):
        raise RuntimeError(
            f"the modes are {interpolation_mode} and {padding_mode}; give 0, 1 or 2"
        )
    mode, padding = modes[interpolation_mode], paddings[padding_mode]
    return F.grid_sample(input, grid, mode, padding, align_corners)


@function()
def affine_grid_generator(theta: Tensor, size: Sizes, align_corners: bool) -> Tensor:
    """As nn.functional.affine_grid(), with all of its arguments.

    >>> theta = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> torch.affine_grid_generator(theta, (1, 1, 1, 2), True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    return F.affine_grid(theta, size, align_corners)
