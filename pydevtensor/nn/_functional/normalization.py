"""Normalization of rows, channels and vectors."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C

__all__ = ["batch_norm", "layer_norm", "normalize"]


def layer_norm(
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Normalize over the last dimensions, then multiply by weight and add bias.

    normalized_shape is their shape and that of weight and bias. Raises RuntimeError if
    input's shape does not end with it.

    >>> nn.functional.layer_norm(torch.tensor([[1.0, 2.0, 3.0]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247]])
    """
    return _C.layer_norm(input, normalized_shape, weight, bias, eps)


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalize each channel (dimension 1), then multiply by weight and add bias.

    In training with the batch's statistics, with which the running ones are updated by
    momentum (the variance is the unbiased one); else with the running ones. weight,
    bias and the running statistics have shape (C,).

    >>> mean, var = torch.tensor([2.0]), torch.tensor([4.0])
    >>> nn.functional.batch_norm(torch.tensor([[4.0]]), mean, var)
    tensor([[1.0000]])
    """
    if training:
        if (running_mean is None) != (running_var is None):
            raise ValueError(
                "batch_norm: one of running_mean and running_var is None; give both, "
                "or neither"
            )
        if input.ndim > 1 and input.numel() == input.shape[1] != 0:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{input.shape}; use eval(), or larger batches"
            )
    return _C.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """input divided by its p-norm along dim, or by eps if that is larger.

    >>> nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    norm = input.norm(p, dim, keepdim=True)
    return input / _C.maximum(norm, _C.full_like(norm, eps))
