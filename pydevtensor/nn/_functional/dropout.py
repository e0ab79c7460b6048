"""Random zeros, of elements or of channels."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydevtensor._functions.types import Tensor, Truth


def check_probability(p: float) -> None:
    if isinstance(p, str) or not hasattr(p, "__float__"):
        raise TypeError(
            f"dropout probability is {p!r} ({type(p).__name__}); give a number from 0 "
            "to 1"
        )
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


@function()
def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: Truth = False
) -> Tensor:
    """Zero elements with probability p and divide the others by 1 - p, in training.

    p         probability of an element to be zeroed, 0 to 1, else ValueError
    training  whether it is training; if not, input is the result
    inplace   write the result into the input

    >>> nn.functional.dropout(torch.ones(3), p=0.5, training=False)
    tensor([1., 1., 1.])
    """
    check_probability(p)
    if not training or p == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    if inplace:
        return input.mul_(_C.empty_like(input).bernoulli_(1 - p).div_(1 - p))
    return _C._dropout(input, 1 - p)


def _channels(input: Any) -> Any:
    """An uninitialized element for each channel of each sample."""
    if input.ndim < 2:
        raise RuntimeError(
            f"the input of shape {[*input.shape]} has no channels; give (N, C, ...)"
        )
    return input.new_empty([*input.shape[:2]] + [1] * (input.ndim - 2))


def feature_dropout(
    input: Any, p: float, training: bool, inplace: Truth = False
) -> Any:
    """dropout of whole channels of (N, C, ...)."""
    check_probability(p)
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    noise = _channels(input).bernoulli_(1 - p).div_(1 - p)
    return input.mul_(noise) if inplace else input * noise


def _of_channels(
    batched: int,
    check: Callable[[int], None],
    /,
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: Truth = False,
) -> Tensor:
    """dropout of whole channels; batched: the dimensions with a batch, 0 for any.

    inplace   write the result into the input
    training  without it nothing changes
    p         probability of a channel to be zeroed, 0 to 1, else ValueError
    """
    check_probability(p)
    check(input.ndim)
    if not batched or input.ndim == batched:
        return feature_dropout(input, p, training, inplace)
    result = feature_dropout(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


def _check_rows(ndim: int) -> None:
    if ndim not in (2, 3):
        raise RuntimeError(f"the input has {ndim} dimensions; give (N, C, L) or (C, L)")


def _check_images(ndim: int) -> None:
    if ndim not in (3, 4):
        _warn(f"the input has {ndim} dimensions; give (N, C, H, W)")
    elif ndim == 3:
        _warn(
            "an input of 3 dimensions counts as (N, C, L); use dropout1d "
            "for that, and unsqueeze(0) for (C, H, W)"
        )


def _check_volumes(ndim: int) -> None:
    if ndim not in (4, 5):
        _warn(f"the input has {ndim} dimensions; give (N, C, D, H, W) or (C, D, H, W)")


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)  # the line of the program


@function(like="_of_channels", given=(3, _check_rows))
def dropout1d() -> Tensor:
    """dropout of whole channels of (N, C, L) or (C, L).

    Raises RuntimeError for another number of dimensions.

    >>> nn.functional.dropout1d(torch.ones(1, 2, 3), training=False).shape
    torch.Size([1, 2, 3])
    """


@function(like="_of_channels", given=(0, _check_images))
def dropout2d() -> Tensor:
    """dropout of whole channels of (N, C, H, W); (N, C, L) is taken too.

    Raises RuntimeError for an input without channels.

    >>> nn.functional.dropout2d(torch.ones(1, 2, 3, 3), training=False).shape
    torch.Size([1, 2, 3, 3])
    """


@function(like="_of_channels", given=(5, _check_volumes))
def dropout3d() -> Tensor:
    """dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    >>> nn.functional.dropout3d(torch.ones(1, 2, 3, 3, 3), training=False).shape
    torch.Size([1, 2, 3, 3, 3])
    """


# The negative limit of selu.
_ALPHA = 1.7580993408473766


def _alpha(input: Any, p: float, training: bool, inplace: bool, whole: bool) -> Any:
    check_probability(p)
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    noise = _channels(input) if whole else _C.empty_like(input)
    noise.bernoulli_(1 - p)
    scale = 1 / math.sqrt((_ALPHA**2 * p + 1) * (1 - p))
    shift = (noise - 1).mul_(_ALPHA * scale).add_(_ALPHA * scale * p)
    noise.mul_(scale)
    if inplace:
        return input.mul_(noise).add_(shift)
    return input * noise + shift


@function()
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: Truth = False
) -> Tensor:
    """Set elements to selu's negative limit with probability p, in training.

    The result is scaled and shifted to keep mean 0 and variance 1.

    p         probability of an element to be changed, 0 to 1, else ValueError
    training  whether it is training; if not, input is the result
    inplace   write the result into the input

    >>> nn.functional.alpha_dropout(torch.ones(3), p=0.5)
    tensor([1., 1., 1.])
    """
    return _alpha(input, p, training, inplace, False)


@function()
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: Truth = False
) -> Tensor:
    """alpha_dropout of whole channels of (N, C, ...).

    inplace   write the result into the input
    training  without it nothing changes
    p         probability of a channel to be changed, 0 to 1, else ValueError

    >>> nn.functional.feature_alpha_dropout(torch.ones(1, 2), p=0.5)
    tensor([[1., 1.]])
    """
    return _alpha(input, p, training, inplace, True)
