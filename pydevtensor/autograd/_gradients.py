"""Gradients of parameters that are changed in place."""

from __future__ import annotations

from typing import Any


def entries(parameter: Any) -> Any:
    """The values of a parameter's sparse gradient, in which a position is once now."""
    parameter.grad = parameter.grad.coalesce()
    return parameter.grad.values()
