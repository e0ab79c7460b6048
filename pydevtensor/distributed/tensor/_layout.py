"""The part of a tensor that each rank of a mesh has: cuts tensors, and joins parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor.distributed.device_mesh import DeviceMesh
from pydevtensor.distributed.tensor._placements import (
    Partial,
    Placement,
    Replicate,
    Shard,
)

Tensor = _C.Tensor
REDUCTIONS = {"sum": "SUM", "avg": "AVG", "min": "MIN", "max": "MAX"}
REDUCTIONS["product"] = "PRODUCT"


@dataclass(frozen=True)
class Layout:
    """A tensor's shape, and a placement for each dimension of a mesh.

    The first dimension of the mesh cuts the tensor, the next one the parts. strides:
    those that the whole tensor would have; None: in the order of its dimensions.
    """

    shape: tuple[int, ...]
    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    strides: tuple[int, ...] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, shape: Iterable[int], mesh: Any, placements: Any) -> Layout:
        """Raises ValueError unless there is a placement for each dimension of the mesh,
        and the tensor has the dimensions that they divide."""
        shape, given = tuple(shape), placements
        if not isinstance(mesh, DeviceMesh):
            raise ValueError(
                f"device_mesh is {mesh!r} ({type(mesh).__name__}); give a DeviceMesh, "
                "as init_device_mesh() makes it"
            )
        if mesh.get_coordinate() is None:
            raise ValueError(f"this rank, {mesh.get_rank()}, is not in {mesh!r}")
        if given is None:
            given = [Replicate()] * mesh.ndim
        if len(given) != mesh.ndim:
            raise ValueError(
                f"placements has {len(given)} placements, and the mesh {mesh.ndim} "
                "dimensions; give one for each"
            )
        found: list[Placement] = []
        for each in given:
            if isinstance(each, Shard):
                if not -len(shape) <= each.dim < len(shape):
                    raise ValueError(
                        f"{each} is for a tensor of shape {[*shape]}; give one of its "
                        "dimensions"
                    )
                each = Shard(each.dim % len(shape))
            if not isinstance(each, (Shard, Replicate, Partial)):
                raise ValueError(
                    f"a placement is {each!r} ({type(each).__name__}); give "
                    "Shard(dim), Replicate() or Partial()"
                )
            found.append(each)
        return cls(shape, mesh, tuple(found))

    def cut(self, whole: Tensor) -> Tensor:
        """This rank's part of the whole tensor, in the whole's memory."""
        for i, each in enumerate(self.placements):
            if isinstance(each, Shard):
                begin, end = self._span(i, whole.shape[each.dim])
                whole = whole.narrow(each.dim, begin, end - begin)
        return whole

    def whole(self, own: Tensor) -> Tensor:
        """The whole tensor, from each rank's part. All ranks of the mesh call it."""
        lengths, shape = [], [*self.shape]
        for i, each in enumerate(self.placements):
            dim = each.dim if isinstance(each, Shard) else 0
            lengths.append(shape[dim] if shape else 0)
            if isinstance(each, Shard):
                shape[dim] = len(range(*self._span(i, shape[dim])))
        for i in reversed(range(self.mesh.ndim)):
            each, group = self.placements[i], self.mesh.get_group(i)
            if isinstance(each, Shard):
                own = _gather(own, each.dim, lengths[i], group)
            elif isinstance(each, Partial):
                own = _combined(own, each, group)
        return own

    def like(self, dtype: Any = None) -> Tensor:
        """A tensor of the device meta that is like the whole tensor."""
        if self.strides is None:
            return _C.empty(self.shape, dtype=dtype, device="meta")
        return _C.empty_strided(self.shape, self.strides, dtype=dtype, device="meta")

    def part_shape(self) -> tuple[int, ...]:
        """The shape of this rank's part."""
        return tuple(self.cut(self.like()).shape)

    def some_empty(self) -> bool:
        """Whether some rank's part has no elements."""
        shape = [*self.shape]
        for i, each in enumerate(self.placements):
            if isinstance(each, Shard):
                size = self.mesh.size(i)
                begin, end = _span(shape[each.dim], size, size - 1)
                shape[each.dim] = end - begin
        return 0 in shape

    def gradient(self) -> Layout:
        """The layout of the gradient: replicated where the tensor is Partial."""
        if not any(isinstance(each, Partial) for each in self.placements):
            return self
        placements = (
            Replicate() if isinstance(each, Partial) else each
            for each in self.placements
        )
        return replace(self, placements=tuple(placements))

    def sharding(self) -> Sharding | None:
        """How rows are divided; None if each rank has all. NotImplementedError for
        placements that are neither copies nor, along the mesh's last dimension, rows.
        """
        *copies, last = self.placements
        whole = all(isinstance(each, Replicate) for each in copies)
        if whole and isinstance(last, Replicate):
            return None
        if not whole or last != Shard(0):
            raise NotImplementedError(
                f"a DTensor with placements {self.placements} is neither whole on each "
                "rank nor divided by rows along the last dimension of the mesh; "
                "redistribute() it"
            )
        return Sharding(self.shape, self.mesh.get_group(-1), self.mesh)

    def ranks_with_parts(self) -> Any:
        """The group of ranks that have the other parts; None if each has all.
        NotImplementedError where they are of several dimensions of the mesh."""
        dims = [
            i for i, p in enumerate(self.placements) if not isinstance(p, Replicate)
        ]
        if len(dims) > 1 or any(isinstance(p, Partial) for p in self.placements):
            raise NotImplementedError(
                f"the norm of a DTensor with placements {self.placements} is not "
                "supported; redistribute() it"
            )
        return self.mesh.get_group(dims[0]) if dims else None

    def _span(self, mesh_dim: int, length: int) -> tuple[int, int]:
        """This rank's part of a length, its begin and end."""
        return _span(
            length, self.mesh.size(mesh_dim), self.mesh.get_local_rank(mesh_dim)
        )


def _span(length: int, size: int, rank: int) -> tuple[int, int]:
    most = -(-length // size)
    return min(rank * most, length), min((rank + 1) * most, length)


def _combined(own: Tensor, terms: Partial, group: Any) -> Tensor:
    """The result of the reduction of which each rank has an operand."""
    p = getattr(terms, "norm_type", None)
    own = own.clone() if p is None else own**p
    dist.all_reduce(own, REDUCTIONS[terms.reduce_op], group)
    return own if p is None else own ** (1 / p)


def _gather(own: Tensor, dim: int, length: int, group: Any) -> Tensor:
    """Joins the parts of all ranks along a dimension; the last ones may be smaller."""
    size = group.size()
    most = -(-length // size)
    shape = [*own.shape]
    shape[dim] = most
    part = own.new_zeros(shape)
    part.narrow(dim, 0, own.shape[dim]).copy_(own)
    padded = own.new_empty([size, *shape])
    dist.all_gather_into_tensor(padded, part, group)
    parts = [
        each.narrow(dim, 0, end - begin)
        for rank, each in enumerate(padded.unbind())
        for begin, end in [_span(length, size, rank)]
    ]
    return _C.cat(parts, dim)


@dataclass(frozen=True)
class Sharding:
    """How the rows of a tensor are divided among the ranks of a group.

    Each rank has the same number of rows, except the last ones, which may have fewer.
    mesh: the ranks of the group, and in the dimensions before those with the same rows.
    """

    shape: tuple[int, ...]
    group: Any
    mesh: DeviceMesh

    @property
    def layout(self) -> Layout:
        """The same as a Layout."""
        copies = [Replicate()] * (self.mesh.ndim - 1)
        return Layout(self.shape, self.mesh, (*copies, Shard(0)))

    @property
    def most(self) -> int:
        """The number of rows of the first rank."""
        return -(-self.shape[0] // self.group.size())

    @property
    def row(self) -> int:
        """The number of elements in a row."""
        return prod(self.shape[1:])

    def rows(self, rank: int | None = None) -> slice:
        """The rows of a rank, as a slice; None: of this rank."""
        at = self.group.rank() if rank is None else rank
        return slice(*_span(self.shape[0], self.group.size(), at))
