"""Gradients and parameters of many tensors at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydevtensor import _C
from pydevtensor.autograd import no_grad


def _gradients(parameters: Any) -> list:
    if isinstance(parameters, _C.Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def _norm_of(gradients: list, norm_type: float) -> Any:
    if not gradients:
        return _C.tensor(0.0)
    home = gradients[0].device
    norms = [g.norm(norm_type).to(home) for g in gradients]
    if norm_type == float("inf"):
        total = norms[0]
        for norm in norms[1:]:
            total = _C.maximum(total, norm)
        return total
    total = norms[0] ** norm_type
    for norm in norms[1:]:
        total = total + norm**norm_type
    return total ** (1.0 / norm_type)


@no_grad()
def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:
    """Scales all gradients so that their joint norm is at most max_norm; gives it."""
    gradients = _gradients(parameters)
    total = _norm_of(gradients, float(norm_type))
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is "
            "non-finite, so it cannot be clipped"
        )
    factor = max_norm / (total + 1e-6)
    factor = _C.minimum(factor, _C.ones_like(factor))
    for gradient in gradients:
        gradient.mul_(factor.to(gradient.device))
    return total


@no_grad()
def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Clamps every element of the gradients to -clip_value ... clip_value."""
    for gradient in _gradients(parameters):
        gradient.clamp_(-float(clip_value), float(clip_value))


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Puts the parts of a vector into parameters, one after the other."""
    at = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[at : at + count].reshape(parameter.shape).detach()
        at += count
