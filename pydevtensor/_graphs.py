"""The CUDA graphs that are being captured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydevtensor import _C

if TYPE_CHECKING:
    from pydevtensor.cuda.graphs import CUDAGraph

captured: list[CUDAGraph] = []


def current() -> CUDAGraph | None:
    """The graph that takes the work of the current device's current stream."""
    if not captured:
        return None
    index = _C._device_index(None)
    if not _C._graph_capturing(index):
        return None
    return next((graph for graph in captured if graph._index == index), None)
