"""Losses of distances between vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.nn._functional._reduction import (
    loss_function,
    need_same_dims,
    reduce_loss,
)
from pydevtensor.nn._functional.distance import pairwise_distance

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor, Text


@loss_function()
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: Text = "mean"
) -> Tensor:
    """input, a distance, where target is 1; max(0, margin - input) where it is -1.

    target  1 for inputs that are to be small, -1 for those that are to be large
    margin  a distance of target -1 costs nothing from here on

    >>> x, t = torch.tensor([0.25, 0.25]), torch.tensor([1.0, -1.0])
    >>> nn.functional.hinge_embedding_loss(x, t)
    tensor(0.5000)
    """
    input, target = _C._autocast_float(input, target)
    zero = _C.zeros_like(input)
    far = _C.where(target != 1, (margin - input).clamp_min(0), zero)
    near = _C.where(target != -1, input, zero)
    return reduce_loss("", far + near, reduction)


@loss_function()
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: Text = "mean",
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1.

    cos is the cosine of the angle between two vectors. Raises RuntimeError for other
    shapes.

    input1, input2  the vectors, (N, D) or (D)
    target          1 for vectors that are to be alike, -1 for others, (N) or ()
    margin          a pair of target -1 costs nothing up to this cosine, -1 to 1

    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])
    >>> nn.functional.cosine_embedding_loss(x, y, torch.tensor([1.0]))
    tensor(0.2929)
    """
    if target.ndim > 1 or {input1.ndim, input2.ndim} != {target.ndim + 1}:
        raise RuntimeError(
            f"the target has shape {[*target.shape]} and the "
            f"inputs {[*input1.shape]} and {[*input2.shape]}; give (N) and (N, D), or "
            "() and (D)"
        )
    input1, input2, target = _C._autocast_float(input1, input2, target)
    epsilon = 1e-12
    dot = (input1 * input2).sum(-1)
    cos = dot / ((_sum_square(input1, epsilon) * _sum_square(input2, epsilon)).sqrt())
    zero = _C.zeros_like(cos)
    near = _C.where(target == 1, 1 - cos, zero)
    far = _C.where(target == -1, (cos - margin).clamp_min(0), zero)
    return reduce_loss("", near + far, reduction)


def _sum_square(x: Any, epsilon: float) -> Any:
    return x.square().sum(-1) + epsilon


@loss_function()
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: Text = "mean",
) -> Tensor:
    """max(0, margin - target * (input1 - input2)).

    Raises RuntimeError where the numbers of dimensions differ.

    input1, input2  the numbers to compare
    target          1 where input1 is to be larger, -1 where input2 is
    margin          how much larger the number has to be to cost nothing

    >>> x, y, t = torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])
    >>> nn.functional.margin_ranking_loss(x, y, t)
    tensor(2.)
    """
    need_same_dims(input1=input1, input2=input2, target=target)
    input1, input2, target = _C._autocast_float(input1, input2, target)
    loss = (-target * (input1 - input2) + margin).clamp_min(0)
    return reduce_loss("", loss, reduction)


@loss_function()
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: Text = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d pairwise_distance.

    See also triplet_margin_with_distance_loss(), for another distance.

    anchor    vectors, (N, D) or (D)
    positive  vectors that are to be near anchor's
    negative  vectors that are to be far from anchor's; RuntimeError where the numbers
              of dimensions differ
    margin    how much nearer positive is to be than negative; ValueError for 0 or less
    p         degree of the distance's norm; 2 is the Euclidean one
    eps       added to each difference, against division by 0 in the gradient
    swap      take d(positive, negative) where that is less than d(anchor, negative)

    >>> a, b = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> nn.functional.triplet_margin_loss(a, b, a)
    tensor(6.0000)
    """

    def distance(x: Any, y: Any) -> Any:
        return pairwise_distance(x, y, p, eps)

    return _triplet(
        _C._autocast_float(anchor, positive, negative),
        distance,
        margin,
        swap,
        reduction,
    )


@function()
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: Text = "mean",
) -> Tensor:
    """triplet_margin_loss with another distance, a function of two tensors.

    anchor             tensors that the others are compared with
    positive           what is to be near anchor
    negative           what is to be far from anchor; RuntimeError where the numbers of
                       dimensions differ
    distance_function  takes two tensors and gives their distances; None:
                       pairwise_distance
    margin             how much nearer positive is to be than negative; ValueError for 0
                       or less
    swap               take the distance of positive and negative where that is less
                       than anchor's and negative's
    reduction          'mean', 'sum', or 'none' for one loss each

    >>> a, b = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> def largest(x, y):
    ...     return (x - y).abs().amax(1)
    >>> nn.functional.triplet_margin_with_distance_loss(
    ...     a, b, a, distance_function=largest)
    tensor(5.)
    """
    return _triplet(
        (anchor, positive, negative),
        distance_function or pairwise_distance,
        margin,
        swap,
        reduction,
    )


def _triplet(
    three: Any, distance: Any, margin: float, swap: bool, reduction: str
) -> Any:
    anchor, positive, negative = three
    if margin <= 0:
        raise ValueError(f"margin is {margin}; give more than 0")
    need_same_dims(anchor=anchor, positive=positive, negative=negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    return reduce_loss("", (near - far + margin).clamp_min(0), reduction)
