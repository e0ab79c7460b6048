"""How a tensor is divided among the ranks along a dimension of a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """A rank's part of a tensor: a Shard of it, a copy, or a term of a sum.

    >>> torch.distributed.tensor.Shard(0).is_shard(dim=0)
    True
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is a Shard, and of dimension dim if that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each rank has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether it is a Partial, and with reduce_op if that is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part, cut along the dimension dim as torch.chunk() cuts.

    >>> torch.distributed.tensor.Shard(1)
    Shard(dim=1)
    """

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor.

    >>> torch.distributed.tensor.Replicate()
    Replicate()
    """


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has one operand of a reduction, whose result is the tensor.

    reduce_op  'sum', 'avg', 'min', 'max' or 'product'

    >>> torch.distributed.tensor.Partial()
    Partial(sum)
    """

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"


@dataclass(frozen=True, repr=False)
class NormPartial(Partial):
    """Each rank has the norm of a part, and the tensor is the norm of them all."""

    norm_type: float = 2

    def __repr__(self) -> str:
        return f"_NormPartial({self.norm_type})"


def placed(name: str, *given: Any) -> Placement:
    """The placement of a class by its name."""
    kinds = {kind.__name__: kind for kind in (Shard, Replicate, Partial, NormPartial)}
    if name not in kinds:
        raise ValueError(f"no placement is a {name!r}")
    return kinds[name](*given)
