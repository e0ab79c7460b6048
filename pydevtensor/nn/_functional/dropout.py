"""Random zeros."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C

__all__ = ["dropout"]


def check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    """Zero elements with probability p and divide the others by 1 - p, in training.

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
    mask = _C.empty_like(input, dtype=_C.bool).bernoulli_(1 - p)
    return _C._dropout(input, mask, 1 - p)
