"""The gradients that DistributedDataParallel hands to a hook for communication."""

from __future__ import annotations

from collections.abc import Sequence

from pydevtensor import _C

__all__ = ["GradBucket"]

Tensor = _C.Tensor


class GradBucket:
    """Gradients that are sent together: DistributedDataParallel gives them to hooks.

    index: its position in the order in which buckets are sent. buffer: all gradients of
    this rank in one flat Tensor. gradients: its parts, in the shapes of parameters.
    is_last: whether no bucket follows in this pass.
    """

    def __init__(
        self,
        index: int,
        buffer: Tensor,
        gradients: Sequence[Tensor],
        parameters: Sequence[Tensor],
        is_last: bool,
    ) -> None:
        self._index, self._buffer, self._is_last = index, buffer, is_last
        self._gradients, self._parameters = [*gradients], [*parameters]

    def index(self) -> int:
        """Its position in the order in which buckets are sent, from 0."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients in one flat Tensor, which the hook may write to."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Give the hook, and hooks around it, another flat Tensor, buffer."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradients, parts of what buffer() was at first."""
        return self._gradients

    def parameters(self) -> list[Tensor]:
        """The parameters that the gradients are of."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether no bucket follows in this pass."""
        return self._is_last
