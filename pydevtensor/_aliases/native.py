"""Normalizations and dropout that give what their backward passes need, too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.nn import functional

if TYPE_CHECKING:
    from pydevtensor._functions.types import Sizes, Tensor


def _moments(x: Tensor, dims: list[int], eps: float) -> tuple[Tensor, Tensor]:
    """The mean over dims, which stay, and 1 over the deviation."""
    half = x.dtype in (_C.float16, _C.bfloat16)
    var, mean = _C.var_mean(x.float() if half else x, dims, correction=0, keepdim=True)
    scale = (var + eps).rsqrt()
    if half and x.device.type == "cpu":
        return mean.to(x.dtype), scale.to(x.dtype)
    return mean, scale


@function()
def native_layer_norm(
    input: Tensor,
    normalized_shape: Sizes,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """As layer_norm(), with means and 1 over deviations, which have no gradient.

    >>> x = torch.tensor([[1.0, 3.0]])
    >>> torch.native_layer_norm(x, (2,), None, None, 0.0)
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    made = functional.layer_norm(input, normalized_shape, weight, bias, eps)
    dims = [*range(input.ndim - len(normalized_shape), input.ndim)]
    return made, *_moments(input.detach(), dims, eps)


@function()
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """As group_norm(), with the mean of each group and 1 over its deviation.

    weight, bias  for each channel a factor and a summand; or None
    N, C, HxW     the sizes of input, the last ones multiplied
    group         the number of groups
    eps           added to the variances

    >>> x = torch.tensor([[[1.0, 3.0]]])
    >>> torch.native_group_norm(x, None, None, 1, 1, 2, 1, 0.0)
    (tensor([[[-1.,  1.]]]), tensor([[2.]]), tensor([[1.]]))
    """
    if math.prod((N, C, HxW)) != input.numel():
        raise RuntimeError(
            f"input has {input.numel()} elements, and N, C and HxW are {N}, {C} and "
            f"{HxW}; give its sizes"
        )
    made = functional.group_norm(input, group, weight, bias, eps)
    mean, scale = _moments(input.reshape(N, group, C // group * HxW), [2], eps)
    return made, mean.squeeze(2), scale.squeeze(2)


@function()
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """As functional.batch_norm(), with the means of channels and 1 over the deviations.

    These have no elements where training is False.

    >>> x = torch.tensor([[1.0], [3.0]])
    >>> torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)
    (tensor([[-1.],
            [ 1.]]), tensor([2.]), tensor([1.]))
    """
    made = functional.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    if not training:
        return made, input.new_empty(0), input.new_empty(0)
    dims = [d for d in range(input.ndim) if d != 1]
    mean, scale = _moments(input.detach(), dims, eps)
    return made, mean.flatten(), scale.flatten()


@function()
def native_dropout(
    input: Tensor, p: float, train: bool | None
) -> tuple[Tensor, Tensor]:
    """As dropout(), and where it kept elements; train=None is True.

    >>> torch.native_dropout(torch.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    if train is False or not input.numel():
        return input.clone(), _C.ones_like(input, dtype=_C.bool)
    if not 0 <= p <= 1:
        raise RuntimeError(f"the probability p is {p}; give 0 to 1")
    kept = _C.empty_like(input).bernoulli_(1 - p).to(_C.bool)
    return input * kept * (0.0 if p == 1 else 1 / (1 - p)), kept
