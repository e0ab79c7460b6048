"""Gradients of parameters that are changed in place."""

from __future__ import annotations

from typing import Any


def writable(parameter: Any) -> Any:
    """The tensor to change in place to change a parameter's gradient, which it has.

    A sparse gradient is coalesced before, since its positions may be there twice.
    """
    if not parameter.grad.is_sparse:
        return parameter.grad
    parameter.grad = parameter.grad.coalesce()
    return parameter.grad.values()
