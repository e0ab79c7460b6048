"""Losses of nn.functional, with a number for the reduction: 0 none, 1 mean, 2 sum.

By default nothing is reduced, as in PyTorch's implementation.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from pydevtensor._functions import function
from pydevtensor.nn import functional
from pydevtensor.nn._functional import class_loss, embedding_loss
from pydevtensor.nn._functional import ctc_loss as _ctc_loss

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def _name(reduction):
    # As in PyTorch, no other number reduces.
    return {1: "mean", 2: "sum"}.get(reduction, "none")


def _numbered(body, args, named):
    """A function of nn.functional, of arguments that have a number as reduction."""
    given = signature(body).bind(*args, **named).arguments
    return body(**given | {"reduction": _name(given.get("reduction", 0))})


@function(
    like="nn._functional.class_loss.binary_cross_entropy_with_logits",
    order="input target weight pos_weight reduction",
    numbered=True,
)
def binary_cross_entropy_with_logits(**named: Any) -> Tensor:
    """As nn.functional's function, with a number for the reduction.

    reduction: 1 gives the mean, 2 the sum, any other number one loss each.

    >>> torch.binary_cross_entropy_with_logits(torch.zeros(1), torch.ones(1))
    tensor([0.6931])
    """
    return _numbered(class_loss.binary_cross_entropy_with_logits, (), named)


@function(like="nn._functional.embedding_loss.cosine_embedding_loss", numbered=True)
def cosine_embedding_loss(*args: Any, **named: Any) -> Tensor:
    """As nn.functional.cosine_embedding_loss(), with a number for the reduction.

    reduction: 1 gives the mean, 2 the sum, any other number one loss each.

    >>> x, y = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])
    >>> torch.cosine_embedding_loss(x, y, torch.tensor([1.0]))
    tensor([0.2929])
    """
    return _numbered(embedding_loss.cosine_embedding_loss, args, named)


@function(like="nn._functional.ctc_loss.ctc_loss", numbered=True)
def ctc_loss(*args: Any, **named: Any) -> Tensor:
    """As nn.functional.ctc_loss(), with a number for the reduction.

    reduction: 1 gives the mean, 2 the sum, any other number one loss each.

    >>> x = torch.full((2, 1, 2), 0.5).log()
    >>> torch.ctc_loss(x, torch.tensor([[1]]), (2,), (1,))
    tensor([0.2877])
    """
    return _numbered(_ctc_loss.ctc_loss, args, named)


@function(like="nn._functional.embedding_loss.hinge_embedding_loss", numbered=True)
def hinge_embedding_loss(*args: Any, **named: Any) -> Tensor:
    """As nn.functional.hinge_embedding_loss(), with a number for the reduction.

    reduction: 1 gives the mean, 2 the sum, any other number one loss each.

    >>> x, t = torch.tensor([0.25, 0.25]), torch.tensor([1.0, -1.0])
    >>> torch.hinge_embedding_loss(x, t)
    tensor([0.2500, 0.7500])
    """
    return _numbered(embedding_loss.hinge_embedding_loss, args, named)


@function()
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """As nn.functional.kl_div(), with a number for the reduction.

    reduction: 1 gives the mean, 2 the sum, any other number one loss each.

    >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])
    >>> torch.kl_div(q.log(), p, 2)
    tensor(0.1438)
    """
    options = {"reduction": _name(reduction), "log_target": log_target}
    return functional.kl_div(input, target, **options)


@function(like="nn._functional.embedding_loss.margin_ranking_loss", numbered=True)
def margin_ranking_loss(*args: Any, **named: Any) -> Tensor:
    """As nn.functional.margin_ranking_loss(), with a number for the reduction.

    reduction: 1 gives the mean, 2 the sum, any other number one loss each.

    >>> x, y, t = torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])
    >>> torch.margin_ranking_loss(x, y, t)
    tensor([2.])
    """
    return _numbered(embedding_loss.margin_ranking_loss, args, named)


@function()
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool,
    full: bool,
    eps: float,
    reduction: int,
) -> Tensor:
    """As nn.functional.poisson_nll_loss(), with a number for the reduction.

    reduction: 1 gives the mean, 2 the sum, any other number one loss each.

    >>> x, t = torch.tensor([0.0]), torch.tensor([2.0])
    >>> torch.poisson_nll_loss(x, t, True, False, 1e-8, 1)
    tensor(1.)
    """
    return functional.poisson_nll_loss(
        input, target, log_input, full, None, eps, None, _name(reduction)
    )


@function(like="nn._functional.embedding_loss.triplet_margin_loss", numbered=True)
def triplet_margin_loss(*args: Any, **named: Any) -> Tensor:
    """As nn.functional.triplet_margin_loss(), with a number for the reduction.

    reduction: 1 gives the mean, 2 the sum, any other number one loss each.

    >>> a, b = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    >>> torch.triplet_margin_loss(a, b, a, reduction=1)
    tensor(6.0000)
    """
    return _numbered(embedding_loss.triplet_margin_loss, args, named)
