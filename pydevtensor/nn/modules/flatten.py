"""Layers that change shapes."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.nn.modules._function_layer import FunctionLayer
from pydevtensor.nn.modules._layer import explain
from pydevtensor.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(FunctionLayer, calls=_C.flatten, takes="start_dim=1, end_dim"):
    """Merges dimensions into one.

    start_dim  the first of them; 1 leaves the batch alone
    end_dim    the last of them

    >>> nn.Flatten()(torch.ones(5, 2, 3)).shape
    torch.Size([5, 6])
    """


class Unflatten(Module):
    """Splits a dimension into several.

    dim               which one
    unflattened_size  their sizes; one may be -1, which is inferred

    >>> nn.Unflatten(1, (2, 3))(torch.ones(4, 6)).shape
    torch.Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {i}"
                )
        self.dim = dim
        self.unflattened_size: Any = unflattened_size

    def forward(self, input: Any) -> Any:
        try:
            return input.unflatten(self.dim, self.unflattened_size)
        except Exception as error:
            explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
