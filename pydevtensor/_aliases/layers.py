"""Functions of nn.functional that are functions of the package too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.nn import functional
from pydevtensor.nn._functional import dropout as _dropout

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def _dropped(function, inplace, /, input: Tensor, p: float, train: bool):
    # nn.functional's functions raise ValueError.
    if not 0 <= p <= 1:
        raise RuntimeError(f"the probability p is {p}; give 0 to 1")
    return function(input, p, train, inplace)


@function(like="nn._functional.activation.rrelu_")
def rrelu(*args: Any, **named: Any) -> Tensor:
    """leaky_relu with a slope of each element, drawn from lower to upper in training.

    Otherwise all slopes are the mean of both. RuntimeError where lower is greater than
    upper.

    >>> torch.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    return functional.rrelu(*args, **named)


@function(like="_dropped", given=(functional.dropout, False))
def dropout() -> Tensor:
    """Zero elements with probability p and divide the others by 1 - p, if train.

    >>> torch.dropout(torch.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """


@function(like="_dropped", given=(functional.dropout, True))
def dropout_() -> Tensor:
    """In-place dropout().

    >>> x = torch.ones(3)
    >>> torch.dropout_(x, 0.5, True) is x
    True
    """


@function(like="_dropped", given=(_dropout.feature_dropout, True))
def feature_dropout_() -> Tensor:
    """In-place feature_dropout().

    >>> x = torch.ones(1, 2)
    >>> torch.feature_dropout_(x, 0.5, True) is x
    True
    """


@function(like="_dropped", given=(functional.alpha_dropout, True))
def alpha_dropout_() -> Tensor:
    """In-place alpha_dropout().

    >>> x = torch.ones(3)
    >>> torch.alpha_dropout_(x, 0.5, True) is x
    True
    """


@function(like="_dropped", given=(functional.feature_alpha_dropout, True))
def feature_alpha_dropout_() -> Tensor:
    """In-place feature_alpha_dropout().

    >>> x = torch.ones(1, 2)
    >>> torch.feature_alpha_dropout_(x, 0.5, True) is x
    True
    """


@function(like="_dropped", given=(_dropout.feature_dropout, False))
def feature_dropout() -> Tensor:
    """dropout of whole channels of (N, C, ...).

    p: the probability of a channel to be zeroed, if train is true. RuntimeError for a p
    outside 0 to 1.

    >>> torch.feature_dropout(torch.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """


@function(like="_dropped", given=(functional.alpha_dropout, False))
def alpha_dropout() -> Tensor:
    """Set elements to selu's negative limit with probability p, if train.

    >>> torch.alpha_dropout(torch.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """


@function(like="_dropped", given=(functional.feature_alpha_dropout, False))
def feature_alpha_dropout() -> Tensor:
    """alpha_dropout of whole channels of (N, C, ...).

    p: the probability of a channel to be dropped, if train is true. RuntimeError for a
    p outside 0 to 1.

    >>> torch.feature_alpha_dropout(torch.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """


@function(
    like="nn._functional.normalization.group_norm",
    order="input num_groups weight bias eps cudnn_enabled",
)
def group_norm(*, cudnn_enabled: bool = True, **named: Any) -> Tensor:
    """Normalize each group of channels of each sample, then scale and shift channels.

    RuntimeError where num_groups does not divide the channels.

    num_groups     how many groups the channels, dimension 1, are divided into
    weight, bias   one number for each channel, or None
    eps            added to the variance, against a division by 0
    cudnn_enabled  has no effect

    >>> torch.group_norm(torch.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    return functional.group_norm(**named)


@function(
    like="nn._functional.normalization.instance_norm",
    order="input weight bias running_mean running_var use_input_stats momentum eps "
    "cudnn_enabled",
)
def instance_norm(*, cudnn_enabled: bool = True, **named: Any) -> Tensor:
    """Normalize each channel of each sample, then multiply by weight and add bias.

    running_mean, running_var  one number for each channel, or None
    use_input_stats            normalize by the input's statistics, which update the
                               running ones; else by the running ones
    momentum                   the share of the input's statistics in an update
    eps                        added to the variance, against a division by 0
    cudnn_enabled              has no effect

    >>> x = torch.tensor([[[1.0, 3.0]]])
    >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[[-1.0000,  1.0000]]])
    """
    return functional.instance_norm(**named)


@function()
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d of an input (length, N, C) with a weight (kernel, C, out).

    bias: a vector of out elements. pad: zeros at both ends. RuntimeError for other
    shapes.

    >>> x = torch.arange(3.0).reshape(3, 1, 1)
    >>> torch.conv_tbc(x, torch.ones(2, 1, 1), torch.zeros(1)).flatten()
    tensor([1., 3.])
    """
    if input.dim() != 3 or weight.dim() != 3:
        raise RuntimeError(
            f"the input has shape {[*input.shape]} and the weight {[*weight.shape]}; "
            "give (length, N, C) and (kernel, C, out)"
        )
    x, kernel = input.permute(1, 2, 0), weight.permute(2, 1, 0)
    return _C.conv1d(x, kernel, bias, padding=pad).permute(2, 0, 1)
