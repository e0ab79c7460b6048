"""Tensors whose rows are divided among ranks, and parameters gathered together.

This is the engine of fully_shard() and of FullyShardedDataParallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any
from weakref import ref

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._tree import flatten
from pydevtensor.autograd import Function, no_grad
from pydevtensor.distributed.device_mesh import DeviceMesh
from pydevtensor.distributed.fsdp._ahead import Ahead, enter, leave
from pydevtensor.distributed.tensor._dtensor import parameter_kind, tell_ranks
from pydevtensor.distributed.tensor._layout import Sharding
from pydevtensor.nn.parameter import Parameter

Tensor = _C.Tensor


class Share(Parameter):
    """This rank's part of a parameter.

    _ranks_of_norm: the ranks with the other parts, for clip_grad_norm_(); or None.
    """

    _ranks_of_norm: Any

    def _tell_ranks(self, flags: Iterable[Tensor]) -> None:
        tell_ranks(flags, self._ranks_of_norm)


ShardedParameter = parameter_kind(Parameter)


def part_of(leaf: Any) -> Tensor:
    """This rank's part of a parameter, of the same memory, without gradients."""
    with _C.DisableTorchFunctionSubclass():
        found: Tensor = leaf.detach()
    return found


class Sent:
    """Tensors that are being sent. finish: waits, and returns them."""

    def __init__(self, finish: Callable[[], list[Any]]) -> None:
        self._finish: Callable[[], list[Any]] | None = finish
        self._tensors: list[Any] = []

    def take(self) -> list[Any]:
        """Wait for the tensors."""
        finish, self._finish = self._finish, None
        if finish is not None:
            self._tensors = finish()
        return self._tensors


class Fetched(Sent):
    """Gathered parameters. versions: those of this rank's parts at the beginning."""

    def __init__(self, versions: list[int], finish: Callable[[], list[Any]]) -> None:
        super().__init__(finish)
        self.versions = versions

    def take(self) -> list[Tensor]:
        """The parameters, in the memory into which they were gathered."""
        return [tensor.detach() for tensor in super().take()]


class Shards:
    """Parameters that are gathered, and whose gradients are reduced, together.

    A subclass defines how they are divided. leaves: this rank's parts, which the
    optimizer updates. parameters: each with the modules and names that have it.
    shards: False if all ranks have whole parameters. group: the ranks with the other
    parts; None: there are none. replicas: those with the same parts. param_dtype,
    reduce_dtype: the types in which parameters and gradients are sent; None: their own.

    Parameters that were gathered ahead are used if this rank's part has not been
    written since. A program that writes it through .data has to reshard() before.
    """

    leaves: list[Any]
    frozen: list[int]  # parameters that require no gradient
    # Indices of parameters that do not share the memory of an earlier one.
    recalled: list[int]

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
        self.reduces = True  # whether backward() reduces gradients
        self.size = self.group.size() if self.group is not None else 1
        self.copies = self.replicas.size() if self.replicas is not None else 1
        # Gradients to reduce in a later pass.
        self.waiting: list[Any] = [None] * len(parameters)
        self.back: list[Tensor] = []  # all rows, gathered again for a backward pass
        self.fetched: Fetched | None = None
        self.factor: float | None = None  # divides gradients; None: by the ranks
        self.frees = True  # whether the end of backward() frees the whole parameters
        self.ahead = Ahead()
        self.recalls = True  # whether backward() gathers them ahead
        self._brings: list[Any] = []  # called by operations that have saved parameters
        self.entered: list[Any] | None = None  # the result of enter_graph()

    def start(self, is_async: bool) -> Callable[[], list[Tensor]]:
        """Begin to gather. Returns a function that waits, and returns the whole
        parameters in the type in which they are used."""
        raise NotImplementedError

    def fetch(self, is_async: bool = True) -> None:
        """Begin to gather, unless that is done or under way."""
        versions = [leaf._version for leaf in self.leaves]
        if self.fetched is None or self.fetched.versions != versions:
            self.drop()
            self.fetched = Fetched(versions, self.start(is_async))

    def drop(self) -> None:
        """Free the fetched parameters, after the gathering has ended."""
        fetched, self.fetched = self.fetched, None
        if fetched is not None:
            fetched.take()

    def gather(self, retains: bool = False) -> list[Tensor]:
        """The whole parameters. retains: they stay fetched."""
        self.fetch(is_async=False)
        assert self.fetched is not None
        found, self.versions = self.fetched.take(), self.fetched.versions
        self.fetched = Fetched(self.versions, lambda: found) if retains else None
        return found

    def scatter(self, gradients: list[Any]) -> Callable[[], list[Any]]:
        """Begin to send gradients. Returns a function that waits, and returns each
        leaf's part of the mean of all ranks' gradients."""
        raise NotImplementedError

    def enter_graph(self) -> list[Any]:
        """The leaves in the graph, and the nodes that receive their gradients."""
        coming: list[Sent] = []
        return [coming, *_Enter.apply(coming, *self.leaves)]

    def hide(self) -> None:
        """Set the leaves as the modules' parameters."""
        self.show(self.leaves)

    def show(self, tensors: Iterable[Any]) -> None:
        """Set these tensors as the modules' parameters."""
        for owners, tensor in zip(self.owners, tensors, strict=True):
            for owner, name in owners:
                owner._parameters[name] = tensor

    def begin(self, keeps: bool, retains: bool = False) -> int:
        """Set the whole parameters in the modules. keeps: keep their memory for the
        backward pass; else operations save a function that gathers them again. retains:
        keep it for the next pass, too. Returns the number of recalls that began."""
        self.back = []
        entered, self.entered = self.entered or self.enter_graph(), None
        tensors = _Gather.apply(self, retains, *entered)
        self.show(tensors)
        self._brings.clear()
        if keeps or not _C.is_grad_enabled():
            if keeps and not self.frees:
                self.back = [t.detach() for t in tensors]
            return 0
        for i in self.recalled:
            bring = partial(self._bring, i)
            self._brings.append(ref(bring))
            _C._begin_recall(tensors[i], bring)
        return len(self.recalled)

    def _bring(self, i: int) -> Tensor:
        if not self.back:
            self._brings.clear()
            self.back = self.gather()
        return self.back[i]

    def awaits(self) -> bool:
        """Whether the backward pass has yet to gather them, since operations have saved
        them."""
        return self.recalls and any(bring() is not None for bring in self._brings)

    def before_backward(self, gradient: Tensor) -> None:
        """Fetch the parameters that the backward pass needs now, and its next ones."""
        if self.awaits():
            self.fetch()
        if self.ahead.in_backward == "before":
            self.ahead.for_backward()

    @no_grad()
    def reduce(self, gradients: Sequence[Any]) -> Sent | None:
        """Begin to send gradients of whole parameters. Returns None if they are kept
        for a later pass."""
        if self.ahead.in_backward == "after":
            self.ahead.for_backward()
        back, self.back = self.back, []
        if self.frees:
            self.drop()
        elif back:
            self.fetched = Fetched(self.versions, lambda: back)
        for i, gradient in enumerate(gradients):
            if gradient is not None and self.waiting[i] is not None:
                gradient = self.waiting[i] + gradient
            self.waiting[i] = self.waiting[i] if gradient is None else gradient
        if not self.reduces:
            return None
        came, self.waiting = self.waiting, [None] * len(self.owners)
        return self.ahead.sends(lambda: Sent(self.scatter(came)))

    def start_mean(self, flat: Tensor) -> Callable[[], Tensor]:
        """Begin to send a tensor, which is overwritten. Returns a function that waits,
        and returns this rank's part of the mean over the ranks with the other parts."""
        own, work = flat.div_(self.factor or self.size * self.copies), None
        if self.group is not None:
            own = flat.new_empty(flat.numel() // self.size)
            work = dist.reduce_scatter_tensor(
                own, flat.view(-1), group=self.group, async_op=True
            )

        def finish() -> Tensor:
            if work is not None:
                work.wait()
            return own

        return finish


class RowShards(Shards):
    """Parameters of which each rank has some rows, as ShardedParameters."""

    def __init__(
        self,
        parameters: Sequence[tuple[Parameter, list[tuple[Any, str]]]],
        mesh: DeviceMesh,
        param_dtype: Any,
        reduce_dtype: Any,
        device: Any,
        home: Any,
        pins: bool,
    ) -> None:
        super().__init__(parameters, mesh, True, param_dtype, reduce_dtype)
        self.leaves = []
        self._away = device if device != home else None
        self.all_reduces = True  # sum gradients over the ranks with the same rows
        self.partial: dict[Any, Tensor] = {}  # gradients that wait for that, by type
        self._sent: list[int] = []  # elements that a rank sends
        for parameter, _ in parameters:
            sharding = Sharding(tuple(parameter.shape), self.group, mesh)
            rows = parameter.detach()[sharding.rows()].to(home, copy=True)
            rows = rows.pin_memory() if pins and rows.numel() else rows
            shard = _C._make_subclass(ShardedParameter, rows, parameter.requires_grad)
            shard._layout = sharding.layout
            self._sent.append(sharding.most * sharding.row)
            self.leaves.append(shard)
        self.frozen = [i for i, s in enumerate(self.leaves) if not s.requires_grad]
        self.recalled = [*range(len(self.leaves))]

    @property
    def device(self) -> Any:
        """Where parameters are gathered."""
        return self.leaves[0].device if self._away is None else self._away

    def _kinds(self, dtype: Any) -> dict[Any, list[int]]:
        """The parameters by the type in which they are sent: dtype, or their own."""
        kinds: dict[Any, list[int]] = {}
        for i, shard in enumerate(self.leaves):
            sent = dtype if shard.dtype.is_floating_point and dtype else shard.dtype
            kinds.setdefault(sent, []).append(i)
        return kinds

    def _counts(self, members: list[int]) -> list[int]:
        """The elements that a rank sends of each parameter."""
        return [self._sent[i] for i in members]

    @no_grad()
    def start(self, is_async: bool) -> Callable[[], list[Tensor]]:
        """See Shards. Each parameter gets memory of its own."""
        came = []
        for dtype, members in self._kinds(self.param_dtype).items():
            shards = [self.leaves[i] for i in members]
            counts = self._counts(members)
            own = _C.zeros(sum(counts), dtype=dtype, device=shards[0].device)
            for part, shard in zip(own.split(counts), shards, strict=True):
                own_rows = part_of(shard)
                part[: own_rows.numel()].copy_(own_rows.reshape(-1))
            own = own.to(self.device)
            flat = own.new_empty(self.size * own.numel())
            work = dist.all_gather_into_tensor(flat, own, self.group, is_async)
            came.append((members, flat, work))
        return partial(self._finish, came)

    @no_grad()
    def _finish(self, came: list[tuple[list[int], Tensor, Any]]) -> list[Tensor]:
        found: list[Any] = [None] * len(self.leaves)
        for members, flat, work in came:
            if work is not None:
                work.wait()
            parts = flat.view(self.size, -1).split(self._counts(members), dim=1)
            for i, part in zip(members, parts, strict=True):
                shape = self.leaves[i].shape
                whole = part.contiguous().view(-1, *shape[1:]) if part.numel() else None
                found[i] = flat.new_empty(shape) if whole is None else whole[: shape[0]]
        return found

    def scatter(self, gradients: list[Any]) -> Callable[[], list[Any]]:
        """See Shards. A leaf's part is its rows."""
        sent = []
        for dtype, members in self._kinds(
            self.reduce_dtype or self.param_dtype
        ).items():
            members = [i for i in members if i not in self.frozen]
            if not members:
                continue
            counts = self._counts(members)
            flat = _C.zeros((self.size, sum(counts)), dtype=dtype, device=self.device)
            for i, part in zip(members, flat.split(counts, dim=1), strict=True):
                if gradients[i] is not None:
                    _fill(part, gradients[i].reshape(-1))
            sent.append((dtype, members, self.start_mean(flat)))
        return partial(self._own_rows, sent, self.all_reduces)

    @no_grad()
    def _own_rows(self, sent: list[Any], all_reduces: bool) -> list[Any]:
        found: list[Any] = [None] * len(self.leaves)
        for dtype, members, finish in sent:
            own = finish()
            if dtype in self.partial:
                own += self.partial.pop(dtype)
            if self.replicas is not None and not all_reduces:
                self.partial[dtype] = own
                continue
            if self.replicas is not None:
                dist.all_reduce(own, group=self.replicas)
            own = own.to(self.leaves[members[0]].device)
            for i, part in zip(members, own.split(self._counts(members)), strict=True):
                rows = part_of(self.leaves[i])
                found[i] = part[: rows.numel()].view(rows.shape)
                found[i] = found[i].to(rows.dtype, copy=True)
        return found


def _fill(rows: Tensor, flat: Tensor) -> None:
    """Copy a flat tensor into rows, which may have more elements."""
    width = rows.shape[1]
    full = flat.numel() // width if width else 0
    rows[:full].copy_(flat[: full * width].view(full, width))
    if rest := flat.numel() - full * width:
        rows[full, :rest].copy_(flat[full * width :])


class _Enter(Function):
    """The leaves. In the backward pass _Gather begins to send their gradients, and this
    node waits for them. It is made early, so that the pass runs it late."""

    @staticmethod
    def forward(ctx: Any, coming: list[Sent], *leaves: Tensor) -> Any:
        ctx.coming, ctx.count = coming, len(leaves)
        ctx.set_materialize_grads(False)
        found = [part_of(leaf) for leaf in leaves]
        ctx.mark_non_differentiable(
            *[
                f
                for f, leaf in zip(found, leaves, strict=True)
                if not leaf.requires_grad
            ]
        )
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        found = ctx.coming.pop().take() if ctx.coming else [None] * ctx.count
        return (None, *found)


class _Gather(Function):
    """Whole parameters. Their gradients become those of this rank's rows."""

    @staticmethod
    def forward(
        ctx: Any, shards: Shards, retains: bool, coming: list[Sent], *leaves: Tensor
    ) -> Any:
        ctx.shards, ctx.coming = shards, coming
        ctx.set_materialize_grads(False)
        found = shards.gather(retains)
        ctx.mark_non_differentiable(*[found[i] for i in shards.frozen])
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        leaves = ctx.shards.leaves
        sent = ctx.shards.reduce(gradients)
        if sent is None:
            return (None, None, None, *[None] * len(leaves))
        ctx.coming.append(sent)
        # _Enter returns the gradients; these tensors only have their shapes.
        return (None, None, None, *[part_of(leaf) for leaf in leaves])


class Unit:
    """A module whose parameters, without those of units inside, are one Shards."""

    _shards: Shards
    _reshards: bool | None  # reshard after forward(); None: unless it is the outermost
    _shown: bool  # whether it has whole parameters until reshard()
    _retains = False  # keep whole parameters for the next pass, if not resharded

    def _whole_in(self, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run forward(*args, **kwargs) with whole parameters."""
        if self._shown:
            return forward(*args, **kwargs)
        reshards = bool(_inside) if self._reshards is None else self._reshards
        shards = self._shards
        root = _inside[0]._shards if _inside else shards
        enter(shards, root)
        later = shards.ahead.those_after() if shards is root else []
        for each in later if _C.is_grad_enabled() else []:
            each.entered = each.enter_graph()
        count = shards.begin(not reshards, self._retains and not reshards)
        shards.ahead.for_forward(root)
        _inside.append(self)
        try:
            found = forward(*args, **kwargs)
        finally:
            _inside.remove(self)
            _C._end_recalls(count)
            shards.hide()
            for each in later:
                each.entered = None  # was not called
        leave(shards, root)
        for each in flatten(found)[0] if _C.is_grad_enabled() else ():
            if isinstance(each, Tensor) and each.grad_fn is not None:
                each.register_hook(shards.before_backward)
        return found


_inside: list[Unit] = []  # the units whose forward() is running


def running_unit() -> Unit | None:
    """The innermost unit whose forward() is running."""
    return _inside[-1] if _inside else None


def is_outermost() -> bool:
    """Whether no unit's forward() is running."""
    return not _inside


def own_modules(module: Any) -> Iterator[Any]:
    """The module and the modules inside, without units inside and their modules."""
    waiting, seen = [module], {module}
    while waiting:
        each = waiting.pop(0)
        yield each
        inner = [m for m in each.children() if not isinstance(m, Unit)]
        waiting += [m for m in inner if m not in seen]
        seen.update(inner)


def own_parameters(module: Any, ignored: Iterable[Any]) -> list[Any]:
    """The parameters of a module that no unit inside has, each with the modules and
    names that have it. ValueError if one is tied to a parameter of a unit."""
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
