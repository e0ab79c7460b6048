"""Helpers of both forms of weight and spectral normalization."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.nn.modules.conv import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)

WHOLE = -1  # the dimension that stands for the norm of all


def norm_except(v: Any, dim: int) -> Any:
    """The 2-norms of the slices along dim, of shape (1, ..., n, ..., 1); or of all."""
    if dim == WHOLE:
        return v.norm()
    v.size(dim)  # IndexError for one that v does not have
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return v.norm(2, others, keepdim=True) if others else v.abs()


def normalized(v: Any, g: Any, dim: int) -> Any:
    """v with the norms g: Salimans and Kingma, Weight normalization (2016)."""
    return v * (g / norm_except(v, dim))


def rows(weight: Any, dim: int) -> Any:
    """weight as a matrix whose rows go along dim."""
    others = [d for d in range(weight.dim()) if d != dim]
    return weight.permute(dim, *others).flatten(1)


def outputs_dim(module: Any) -> int:
    """The dimension of a layer's weight that counts its outputs."""
    transposed = ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
    return 1 if isinstance(module, transposed) else 0


def to_unit(vector: Any, eps: float, out: Any = None) -> Any:
    """vector divided by its norm, or by eps if that is larger."""
    norm = vector.norm()
    return _C.div(vector, _C.maximum(norm, _C.full_like(norm, eps)), out=out)


def check_steps(count: int) -> None:
    """Raise ValueError for less than one step of spectral_norm()'s power iteration."""
    if count <= 0:
        raise ValueError(
            f"spectral_norm(): n_power_iterations is {count}; give 1 or more"
        )
