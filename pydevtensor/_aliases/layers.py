"""Functions of nn.functional that are functions of the package too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.nn import functional
from pydevtensor.nn._functional import dropout as _dropout

if TYPE_CHECKING:
    from pydevtensor._functions.types import Sizes, Tensor


def _check_probability(p):
    # nn.functional's functions raise ValueError.
    if not 0 <= p <= 1:
        raise RuntimeError(f"the probability p is {p}; give 0 to 1")


@function()
def rrelu_(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
) -> Tensor:
    """In-place rrelu().

    >>> x = torch.tensor([-1.0, 2.0])
    >>> torch.rrelu_(x) is x
    True
    """
    return functional.rrelu_(input, lower, upper, training)


@function()
def rrelu(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
) -> Tensor:
    """leaky_relu with a slope of each element, drawn from lower to upper in training.

    Otherwise all slopes are the mean of both. RuntimeError where lower is greater than
    upper.

    >>> torch.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    return functional.rrelu(input, lower, upper, training)


@function()
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero elements with probability p and divide the others by 1 - p, if train.

    >>> torch.dropout(torch.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    return functional.dropout(input, p, train)


@function()
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place dropout().

    >>> x = torch.ones(3)
    >>> torch.dropout_(x, 0.5, True) is x
    True
    """
    _check_probability(p)
    return functional.dropout(input, p, train, True)


@function()
def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place feature_dropout().

    >>> x = torch.ones(1, 2)
    >>> torch.feature_dropout_(x, 0.5, True) is x
    True
    """
    _check_probability(p)
    return _dropout.feature_dropout(input, p, train, True)


@function()
def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place alpha_dropout().

    >>> x = torch.ones(3)
    >>> torch.alpha_dropout_(x, 0.5, True) is x
    True
    """
    _check_probability(p)
    return functional.alpha_dropout(input, p, train, True)


@function()
def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place feature_alpha_dropout().

    >>> x = torch.ones(1, 2)
    >>> torch.feature_alpha_dropout_(x, 0.5, True) is x
    True
    """
    _check_probability(p)
    return functional.feature_alpha_dropout(input, p, train, True)


@function()
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """dropout of whole channels of (N, C, ...).

    p: the probability of a channel to be zeroed, if train is true. RuntimeError for a p
    outside 0 to 1.

    >>> torch.feature_dropout(torch.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    _check_probability(p)
    return _dropout.feature_dropout(input, p, train)


@function()
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Set elements to selu's negative limit with probability p, if train.

    >>> torch.alpha_dropout(torch.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    return functional.alpha_dropout(input, p, train)


@function()
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """alpha_dropout of whole channels of (N, C, ...).

    p: the probability of a channel to be dropped, if train is true. RuntimeError for a
    p outside 0 to 1.

    >>> torch.feature_alpha_dropout(torch.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """
    _check_probability(p)
    return functional.feature_alpha_dropout(input, p, train)


@function()
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalize each group of channels of each sample, then scale and shift channels.

    RuntimeError where num_groups does not divide the channels.

    num_groups     how many groups the channels, dimension 1, are divided into
    weight, bias   one number for each channel, or None
    eps            added to the variance, against a division by 0
    cudnn_enabled  has no effect

    >>> torch.group_norm(torch.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
    """
    return functional.group_norm(input, num_groups, weight, bias, eps)


@function()
def instance_norm(
    input: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
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
    running = running_mean, running_var
    return functional.instance_norm(
        input, *running, weight, bias, use_input_stats, momentum, eps
    )


@function()
def rms_norm(
    input: Tensor,
    normalized_shape: Sizes,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root of the mean of squares over the last dimensions.

    normalized_shape  the sizes of these dimensions; RuntimeError where input's shape
                      does not end with them
    weight            multiplies the result; of that shape, or None
    eps               added to the mean, by default the type's least step from 1

    >>> torch.rms_norm(torch.tensor([[3.0, 4.0]]), (2,))
    tensor([[0.8485, 1.1314]])
    """
    return functional.rms_norm(input, normalized_shape, weight, eps)


@function()
def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08
) -> Tensor:
    """The cosine of the angle between the vectors of x1 and x2 along dim.

    The shapes broadcast. A length counts as at least eps, against a division by 0.

    >>> x, y = torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]])
    >>> torch.cosine_similarity(x, y)
    tensor([0.6000])
    """
    return functional.cosine_similarity(x1, x2, dim, eps)


@function()
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2, eps: float = 1e-06, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension; the shapes broadcast.

    keepdim: that dimension stays, with size 1.

    See also cdist(), for all pairs.

    >>> x, y = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> torch.pairwise_distance(x, y)
    tensor([5.0000])
    """
    return functional.pairwise_distance(x1, x2, p, eps, keepdim)


@function()
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norm distances between each two rows of a matrix, a vector.

    >>> torch.pdist(torch.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    return functional.pdist(input, p)


@function()
def bilinear(
    input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """input1 @ A @ input2 for each matrix A of weight (out, in1, in2), plus bias.

    input1 (..., in1), input2 (..., in2) and bias (out) give (..., out). RuntimeError
    for other shapes.

    >>> torch.bilinear(torch.ones(2, 3), torch.ones(2, 4), torch.ones(5, 3, 4)).shape
    torch.Size([2, 5])
    """
    return functional.bilinear(input1, input2, weight, bias)


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
