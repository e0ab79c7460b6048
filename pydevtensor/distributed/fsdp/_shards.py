"""Tensors of which each rank has some rows, and parameters gathered together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor.autograd import Function, no_grad
from pydevtensor.distributed.device_mesh import DeviceMesh
from pydevtensor.nn.parameter import Parameter

Tensor = _C.Tensor


@dataclass(frozen=True)
class Sharding:
    """How the rows of a tensor of a shape are divided among the ranks of a group.

    Each rank has as many, but for the last ones. mesh: of the group, and maybe of ranks
    that have the same rows.
    """

    shape: tuple[int, ...]
    group: Any
    mesh: DeviceMesh

    @property
    def most(self) -> int:
        """The rows of the first rank."""
        return -(-self.shape[0] // self.group.size())

    @property
    def row(self) -> int:
        """The elements of a row."""
        count = 1
        for each in self.shape[1:]:
            count *= each
        return count

    def rows(self, rank: int | None = None) -> slice:
        """The rows of a rank; of this one without it."""
        first = (self.group.rank() if rank is None else rank) * self.most
        return slice(min(first, self.shape[0]), min(first + self.most, self.shape[0]))

    def gather(self, own: Tensor) -> Tensor:
        """All rows. All ranks of the group call it."""
        own = own.detach()
        part = own.new_zeros((self.most, *self.shape[1:]))
        part[: own.shape[0]].copy_(own)
        whole = own.new_empty((self.most * self.group.size(), *self.shape[1:]))
        dist.all_gather_into_tensor(whole, part, group=self.group)
        return whole[: self.shape[0]]


class ShardedTensor(_C.Tensor):
    """This rank's rows of a tensor, as a Tensor of these rows."""

    _sharding: Sharding

    @staticmethod
    def of(rows: Tensor, sharding: Sharding) -> ShardedTensor:
        """The rows, with the memory that they have."""
        made: ShardedTensor = _C._make_subclass(ShardedTensor, rows.detach())
        made._sharding = sharding
        return made

    def full_tensor(self) -> Tensor:
        """All rows. All ranks of the group call it."""
        return self._sharding.gather(self)

    def to_local(self) -> Tensor:
        """This rank's rows, a plain Tensor of the same memory."""
        return self.detach()

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that have the rows."""
        return self._sharding.mesh


class ShardedParameter(ShardedTensor, Parameter):
    """This rank's rows of a parameter."""

    @property
    def _ranks_of_norm(self) -> Any:
        """Those that have the other rows, for clip_grad_norm_()."""
        return self._sharding.group


@dataclass
class _Place:
    """A parameter's shard, and the modules that have it under a name."""

    shard: ShardedParameter
    owners: list[tuple[Any, str]]


class Shards:
    """Parameters that are gathered, and whose gradients are reduced, together.

    parameters: each with the modules and names that have it. mesh: the ranks, of two
    dimensions where some have the same rows. param_dtype, reduce_dtype: the types in
    which parameters and gradients are sent; None: their own.
    """

    def __init__(
        self,
        parameters: Sequence[tuple[Parameter, list[tuple[Any, str]]]],
        mesh: DeviceMesh,
        param_dtype: Any,
        reduce_dtype: Any,
    ) -> None:
        self.group = mesh.get_group(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.param_dtype, self.reduce_dtype = param_dtype, reduce_dtype
        self.reduces = True  # gradients, in backward()
        self.places: list[_Place] = []
        self.shared: list[Any] = []  # gradients of all rows that wait to be reduced
        self.back: list[Tensor] = []  # all rows, gathered again for a backward pass
        for parameter, owners in parameters:
            sharding = Sharding(tuple(parameter.shape), self.group, mesh)
            rows = parameter.detach()[sharding.rows()].clone()
            shard = _C._make_subclass(ShardedParameter, rows, parameter.requires_grad)
            shard._sharding = sharding
            self.places.append(_Place(shard, owners))
        self.shared = [None] * len(self.places)
        self.show([place.shard for place in self.places])

    def show(self, tensors: Iterable[Any]) -> None:
        """Lets the modules have these tensors."""
        for place, tensor in zip(self.places, tensors, strict=True):
            for owner, name in place.owners:
                owner._parameters[name] = tensor

    def hide(self) -> None:
        """Lets the modules have the shards."""
        self.show([place.shard for place in self.places])

    def _kinds(self, dtype: Any) -> dict[Any, list[int]]:
        """The parameters by the type in which they are sent: dtype, or their own."""
        kinds: dict[Any, list[int]] = {}
        for i, place in enumerate(self.places):
            own = place.shard.dtype
            kinds.setdefault(dtype if own.is_floating_point and dtype else own, [])
            kinds[dtype if own.is_floating_point and dtype else own].append(i)
        return kinds

    @no_grad()
    def gather(self) -> list[Tensor]:
        """All rows of all parameters, each in memory of its own."""
        size = self.group.size()
        found: list[Any] = [None] * len(self.places)
        for dtype, members in self._kinds(self.param_dtype).items():
            shards = [self.places[i].shard for i in members]
            counts = [s._sharding.most * s._sharding.row for s in shards]
            own = _C.zeros(sum(counts), dtype=dtype, device=shards[0].device)
            for part, shard in zip(own.split(counts), shards, strict=True):
                part[: shard.numel()].copy_(shard.detach().reshape(-1))
            flat = _C.empty(size * own.numel(), dtype=dtype, device=own.device)
            dist.all_gather_into_tensor(flat, own, group=self.group)
            parts = flat.view(size, -1).split(counts, dim=1)
            for i, part, shard in zip(members, parts, shards, strict=True):
                shape = shard._sharding.shape
                whole = part.contiguous().view(-1, *shape[1:]) if part.numel() else None
                found[i] = (
                    shard.new_empty(shape) if whole is None else whole[: shape[0]]
                )
        return found

    def begin(self, keeps: bool) -> int:
        """Shows all rows to the modules. keeps: their memory, for the backward pass;
        else operations save how to get them again. How many recalls have begun."""
        self.back = []
        shards = [place.shard for place in self.places]
        tensors = _Gather.apply(self, *shards)
        self.show(tensors)
        if keeps or not _C.is_grad_enabled():
            return 0
        for i, tensor in enumerate(tensors):
            _C._begin_recall(tensor, partial(self._bring, i))
        return len(tensors)

    def _bring(self, i: int) -> Tensor:
        if not self.back:
            self.back = self.gather()
        return self.back[i]

    @no_grad()
    def reduce(self, gradients: Sequence[Any]) -> list[Any]:
        """The means over all ranks of this rank's rows of gradients of all rows."""
        self.back = []
        for i, gradient in enumerate(gradients):
            if gradient is not None and self.shared[i] is not None:
                gradient = self.shared[i] + gradient
            self.shared[i] = self.shared[i] if gradient is None else gradient
        found: list[Any] = [None] * len(self.places)
        if not self.reduces:
            return found
        gradients, self.shared = self.shared, [None] * len(self.places)
        size = self.group.size()
        total = size * (self.replicas.size() if self.replicas else 1)
        for dtype, members in self._kinds(
            self.reduce_dtype or self.param_dtype
        ).items():
            members = [i for i in members if self.places[i].shard.requires_grad]
            if not members:
                continue
            shardings = [self.places[i].shard._sharding for i in members]
            counts = [s.most * s.row for s in shardings]
            device = self.places[members[0]].shard.device
            flat = _C.zeros((size, sum(counts)), dtype=dtype, device=device)
            for i, part in zip(members, flat.split(counts, dim=1), strict=True):
                if gradients[i] is not None:
                    _fill(part, gradients[i].reshape(-1))
            flat.div_(total)
            own = _C.empty(sum(counts), dtype=dtype, device=device)
            dist.reduce_scatter_tensor(own, flat.view(-1), group=self.group)
            if self.replicas:
                dist.all_reduce(own, group=self.replicas)
            for i, part in zip(members, own.split(counts), strict=True):
                shard = self.places[i].shard
                rows = part[: shard.numel()].view(shard.shape)
                found[i] = rows.to(shard.dtype, copy=True)
        return found


def _fill(rows: Tensor, flat: Tensor) -> None:
    """Writes a flat tensor into rows, which has room for as many elements or more."""
    width = rows.shape[1]
    full = flat.numel() // width if width else 0
    rows[:full].copy_(flat[: full * width].view(full, width))
    if rest := flat.numel() - full * width:
        rows[full, :rest].copy_(flat[full * width :])


class _Gather(Function):
    """All rows of parameters, whose gradients become those of this rank's rows."""

    @staticmethod
    def forward(ctx: Any, shards: Shards, *parameters: Tensor) -> Any:
        ctx.shards = shards
        ctx.set_materialize_grads(False)
        found = shards.gather()
        frozen = [
            tensor
            for tensor, parameter in zip(found, parameters, strict=True)
            if not parameter.requires_grad
        ]
        ctx.mark_non_differentiable(*frozen)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.shards.reduce(gradients))
