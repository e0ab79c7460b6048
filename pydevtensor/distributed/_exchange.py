"""The tensors that a rank gives and takes in a call of all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydevtensor import _C
from pydevtensor.distributed._shared_engine import Buffers, Call

if TYPE_CHECKING:
    from pydevtensor.distributed._groups import ProcessGroup

__all__: list[str] = []

Tensor = _C.Tensor


class Host:
    """A contiguous tensor of the CPU: the tensor itself if it is one, else a copy."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        here = tensor.device.type == "cpu" and tensor.is_contiguous()
        self.memory = tensor if here else tensor.detach().cpu().contiguous()

    def put_back(self) -> None:
        if self.memory is not self.tensor:
            self.tensor.detach().copy_(self.memory)


class Exchange:
    """The tensors that a rank gives and takes, as in dt_group_exchange.

    There are `segments` inputs, and an output for each rank, or one for a reduction.
    The same list for both means in place. root: the only rank that gives or takes.
    whole: the tensor of which one of the lists has the parts.
    """

    def __init__(
        self,
        inputs: Sequence[Tensor | None] | None,
        outputs: Sequence[Tensor | None] | None,
        segments: int = 1,
        reduction: str | None = None,
        root: int = 0,
        whole: Tensor | None = None,
    ) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.segments, self.reduction = segments, reduction
        self.root, self.whole = root, whole

    def tensors(self) -> list[Tensor | None]:
        return [*(self.inputs or ()), *(self.outputs or ())]

    def run(self, group: ProcessGroup, call: Call) -> None:
        op = "SUM" if self.reduction == "AVG" else self.reduction
        given = _hosts(self.inputs)
        taken = given if self.outputs is self.inputs else _hosts(self.outputs)
        both = _memory(given)
        outputs = both if taken is given else _memory(taken)
        group._engine.run(call, Buffers(both, outputs, self.segments, op))
        for each in filter(None, taken or ()):
            if self.reduction == "AVG":
                sums = each.memory.detach()
                integers = not (sums.is_floating_point() or sums.is_complex())
                sums.div_(group.size(), rounding_mode="trunc" if integers else None)
            each.put_back()


def _hosts(tensors: Sequence[Tensor | None] | None) -> list[Host | None] | None:
    if tensors is None:
        return None
    return [None if t is None else Host(t) for t in tensors]


def _memory(hosts: list[Host | None] | None) -> tuple[Tensor | None, ...] | None:
    return None if hosts is None else tuple(h.memory if h else None for h in hosts)
