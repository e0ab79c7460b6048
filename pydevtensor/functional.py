"""Functions that torch.functional has too."""

from pydevtensor._C import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    cdist,
    chain_matmul,
    einsum,
    meshgrid,
    norm,
    split,
    tensordot,
    typename,
    unique,
    unique_consecutive,
    unravel_index,
)
from pydevtensor._names import publish as _publish

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "einsum",
    "meshgrid",
    "norm",
    "split",
    "tensordot",
    "typename",
    "unique",
    "unique_consecutive",
    "unravel_index",
]

_publish(__name__)
