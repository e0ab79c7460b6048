"""Tensors of which each rank has some rows, and parameters gathered together.

This is the engine of fully_shard() and of FullyShardedDataParallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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


class Share(Parameter):
    """This rank's part of a parameter.

    _ranks_of_norm: those that have the other parts, for clip_grad_norm_(); or None.
    """

    _ranks_of_norm: Any

    def _tell_ranks(self, flags: Iterable[Tensor]) -> None:
        """Flags that are set on one of these ranks are set on all: for GradScaler."""
        for flag in flags:
            dist.all_reduce(flag, dist.ReduceOp.MAX, self._ranks_of_norm)


class ShardedParameter(ShardedTensor, Share):
    """This rank's rows of a parameter."""

    @property
    def _ranks_of_norm(self) -> Any:
        """Those that have the other rows."""
        return self._sharding.group


class Shards:
    """Parameters that are gathered, and whose gradients are reduced, together.

    A subclass says how they are divided. leaves: this rank's part of them, which the
    optimizer updates. parameters: each with the modules and names that have it.
    shards: False, where all ranks have them whole. group: the ranks that have the other
    parts; None: there are none. replicas: those that have the same parts. param_dtype,
    reduce_dtype: the types in which parameters and gradients are sent; None: their own.
    """

    leaves: list[Any]
    frozen: list[int]  # parameters that require no gradient
    recalled: list[int]  # parameters in memory of their own, or the first in one memory

    def __init__(
        self,
        parameters: Sequence[tuple[Any, list[tuple[Any, str]]]],
        mesh: DeviceMesh,
        shards: bool,
        param_dtype: Any,
        reduce_dtype: Any,
    ) -> None:
        self.owners, self.mesh = [each for _, each in parameters], mesh
        for parameter, _ in parameters:
            parameter._divided = True
        self.group = mesh.get_group(mesh.ndim - 1) if shards else None
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 or not shards else None
        self.param_dtype, self.reduce_dtype = param_dtype, reduce_dtype
        self.reduces = True  # gradients, in backward()
        self.size = self.group.size() if self.group is not None else 1
        self.copies = self.replicas.size() if self.replicas is not None else 1
        self.waiting: list[Any] = [None] * len(parameters)  # gradients to be reduced
        self.back: list[Tensor] = []  # all rows, gathered again for a backward pass

    def gather(self) -> list[Tensor]:
        """The parameters, whole, in the type in which they are used."""
        raise NotImplementedError

    def scatter(self, gradients: list[Any]) -> list[Any]:
        """For each leaf, its part of the mean of all ranks' gradients."""
        raise NotImplementedError

    def hide(self) -> None:
        """Lets the modules have the leaves."""
        self.show(self.leaves)

    def show(self, tensors: Iterable[Any]) -> None:
        """Lets the modules have these tensors."""
        for owners, tensor in zip(self.owners, tensors, strict=True):
            for owner, name in owners:
                owner._parameters[name] = tensor

    def begin(self, keeps: bool) -> int:
        """Shows the whole parameters to the modules. keeps: their memory, for the
        backward pass; else operations save how to get them again. How many recalls have
        begun."""
        self.back = []
        tensors = _Gather.apply(self, *self.leaves)
        self.show(tensors)
        if keeps or not _C.is_grad_enabled():
            return 0
        for i in self.recalled:
            _C._begin_recall(tensors[i], partial(self._bring, i))
        return len(self.recalled)

    def _bring(self, i: int) -> Tensor:
        if not self.back:
            self.back = self.gather()
        return self.back[i]

    @no_grad()
    def reduce(self, gradients: Sequence[Any]) -> list[Any]:
        """For each leaf its gradient, from those of whole parameters; None where they
        wait for the next pass."""
        self.back = []
        for i, gradient in enumerate(gradients):
            if gradient is not None and self.waiting[i] is not None:
                gradient = self.waiting[i] + gradient
            self.waiting[i] = self.waiting[i] if gradient is None else gradient
        if not self.reduces:
            return [None] * len(self.leaves)
        came, self.waiting = self.waiting, [None] * len(self.owners)
        return self.scatter(came)

    def mean(self, flat: Tensor) -> Tensor:
        """This rank's part of the mean of a tensor of all ranks, which it changes."""
        own = flat.div_(self.size * self.copies)
        if self.group is not None:
            own = flat.new_empty(flat.numel() // self.size)
            dist.reduce_scatter_tensor(own, flat.view(-1), group=self.group)
        if self.replicas is not None:
            dist.all_reduce(own, group=self.replicas)
        return own


class RowShards(Shards):
    """Parameters of which each rank has some rows, as ShardedParameters."""

    def __init__(
        self,
        parameters: Sequence[tuple[Parameter, list[tuple[Any, str]]]],
        mesh: DeviceMesh,
        param_dtype: Any,
        reduce_dtype: Any,
    ) -> None:
        super().__init__(parameters, mesh, True, param_dtype, reduce_dtype)
        self.leaves = []
        for parameter, _ in parameters:
            sharding = Sharding(tuple(parameter.shape), self.group, mesh)
            rows = parameter.detach()[sharding.rows()].clone()
            shard = _C._make_subclass(ShardedParameter, rows, parameter.requires_grad)
            shard._sharding = sharding
            self.leaves.append(shard)
        self.frozen = [i for i, s in enumerate(self.leaves) if not s.requires_grad]
        self.recalled = [*range(len(self.leaves))]

    def _kinds(self, dtype: Any) -> dict[Any, list[int]]:
        """The parameters by the type in which they are sent: dtype, or their own."""
        kinds: dict[Any, list[int]] = {}
        for i, shard in enumerate(self.leaves):
            sent = dtype if shard.is_floating_point() and dtype else shard.dtype
            kinds.setdefault(sent, []).append(i)
        return kinds

    @no_grad()
    def gather(self) -> list[Tensor]:
        """Each in memory of its own."""
        found: list[Any] = [None] * len(self.leaves)
        for dtype, members in self._kinds(self.param_dtype).items():
            shards = [self.leaves[i] for i in members]
            counts = [s._sharding.most * s._sharding.row for s in shards]
            own = _C.zeros(sum(counts), dtype=dtype, device=shards[0].device)
            for part, shard in zip(own.split(counts), shards, strict=True):
                part[: shard.numel()].copy_(shard.detach().reshape(-1))
            flat = own.new_empty(self.size * own.numel())
            dist.all_gather_into_tensor(flat, own, group=self.group)
            parts = flat.view(self.size, -1).split(counts, dim=1)
            for i, part, shard in zip(members, parts, shards, strict=True):
                shape = shard._sharding.shape
                whole = part.contiguous().view(-1, *shape[1:]) if part.numel() else None
                found[i] = (
                    shard.new_empty(shape) if whole is None else whole[: shape[0]]
                )
        return found

    def scatter(self, gradients: list[Any]) -> list[Any]:
        """Its rows."""
        found: list[Any] = [None] * len(self.leaves)
        for dtype, members in self._kinds(
            self.reduce_dtype or self.param_dtype
        ).items():
            members = [i for i in members if i not in self.frozen]
            if not members:
                continue
            shardings = [self.leaves[i]._sharding for i in members]
            counts = [s.most * s.row for s in shardings]
            device = self.leaves[members[0]].device
            flat = _C.zeros((self.size, sum(counts)), dtype=dtype, device=device)
            for i, part in zip(members, flat.split(counts, dim=1), strict=True):
                if gradients[i] is not None:
                    _fill(part, gradients[i].reshape(-1))
            own = self.mean(flat)
            for i, part in zip(members, own.split(counts), strict=True):
                shard = self.leaves[i]
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
        ctx.mark_non_differentiable(*[found[i] for i in shards.frozen])
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.shards.reduce(gradients))


class Unit:
    """A module whose parameters, but for those in units inside, are one Shards."""

    _shards: Shards
    _reshards: bool | None  # after forward(); None: unless it is the outermost
    _shown: bool  # has its parameters whole until further notice

    def _whole_in(self, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """forward(*args, **kwargs), with all parameters whole meanwhile."""
        if self._shown:
            return forward(*args, **kwargs)
        reshards = bool(_inside) if self._reshards is None else self._reshards
        count = self._shards.begin(keeps=not reshards)
        _inside.append(self)
        try:
            return forward(*args, **kwargs)
        finally:
            _inside.remove(self)
            _C._end_recalls(count)
            self._shards.hide()


_inside: list[Unit] = []  # whose forward() runs


def is_outermost() -> bool:
    """Whether no unit's forward() runs."""
    return not _inside


def own_modules(module: Any) -> Iterator[Any]:
    """The module and those in it, but for units in it and what is in those."""
    waiting, seen = [module], {module}
    while waiting:
        each = waiting.pop(0)
        yield each
        inner = [m for m in each.children() if not isinstance(m, Unit)]
        waiting += [m for m in inner if m not in seen]
        seen.update(inner)


def own_parameters(module: Any, ignored: Iterable[Any]) -> list[Any]:
    """The parameters of a module that no unit in it has, with the modules and names
    that have each. ValueError where one of them is tied to one that a unit has."""
    found: dict[int, Any] = {}
    outside = {id(p) for p in ignored}
    for each in own_modules(module):
        for name, p in each._parameters.items():
            if p is None or id(p) in outside or isinstance(p, ShardedParameter):
                continue
            if getattr(p, "_divided", False):
                raise ValueError(
                    f"the parameter {name} of {type(each).__name__} is tied to one of "
                    "a module that is sharded by itself; leave that module to the one "
                    "that both are in"
                )
            found.setdefault(id(p), (p, []))[1].append((each, name))
    return [*found.values()]
