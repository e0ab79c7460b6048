"""Gradients of parameters that are changed in place."""

from __future__ import annotations

from typing import Any


def entries(parameter: Any) -> Any:
    """The tensor to change for a parameter's gradient; None where it has none.

    A sparse gradient gives its values, after those of a position are added up.
    """
    gradient = parameter.grad
    if gradient is None or not gradient.is_sparse:
        return gradient
    parameter.grad = gradient.coalesce()
    return parameter.grad.values()
