"""A module of which every rank has a copy, with the mean of all ranks' gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._names import publish as _publish
from pydevtensor._tree import flatten, map_leaves
from pydevtensor.autograd import enable_grad
from pydevtensor.futures import Future
from pydevtensor.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]

Tensor = _C.Tensor
_MIB = 1 << 20
_FIRST_BUCKET = 1 * _MIB  # small, so that sending begins early


class _Bucket:
    """Gradients that are sent together, in one flat tensor."""

    def __init__(self, parameters: list[Tensor]) -> None:
        self.parameters = parameters
        sizes = [p.numel() for p in parameters]
        like = parameters[0]
        self.flat = _C.zeros(sum(sizes), dtype=like.dtype, device=like.device)
        pieces = self.flat.split(sizes)
        self.views = [v.view(p.shape) for v, p in zip(pieces, parameters, strict=True)]
        self.missing = 0  # gradients that have not come in this backward pass
        self.sent: Future[Any] | None = None

    def fill(self, index: int, as_view: bool, divisor: int) -> None:
        """Takes the gradient of a parameter, or zeros without one."""
        parameter, view = self.parameters[index], self.views[index]
        gradient = parameter.grad
        if gradient is None:
            view.zero_()
        elif gradient.is_sparse:
            raise NotImplementedError(
                "DistributedDataParallel adds up dense gradients, and one is sparse; "
                "make the embedding with sparse=False"
            )
        else:
            if gradient.data_ptr() != view.data_ptr():
                view.copy_(gradient.detach())
            view.div_(divisor)
            if as_view:
                parameter.grad = view

    def deliver(self, used: Sequence[bool], as_view: bool) -> None:
        """Gives each parameter its gradient; those that no rank used keep theirs."""
        for parameter, view, is_used in zip(
            self.parameters, self.views, used, strict=True
        ):
            if not is_used:
                continue
            if parameter.grad is None:
                parameter.grad = view if as_view else view.clone()
            elif parameter.grad.data_ptr() != view.data_ptr():
                parameter.grad.detach().copy_(view)


def _buckets(parameters: Sequence[Tensor], limit: int) -> list[_Bucket]:
    """Parameters by buckets, from the last to the first: in about this order their
    gradients come."""
    found: list[list[Tensor]] = []
    open_ones: dict[Any, list[Tensor]] = {}
    bytes_of: dict[Any, int] = {}
    for parameter in reversed(parameters):
        kind = parameter.dtype, parameter.device
        size = parameter.numel() * parameter.element_size()
        most = min(limit, _FIRST_BUCKET) if len(found) == 1 else limit
        if kind not in open_ones or bytes_of[kind] + size > most:
            open_ones[kind], bytes_of[kind] = [], 0
            found.append(open_ones[kind])
        open_ones[kind].append(parameter)
        bytes_of[kind] += size
    return [_Bucket(each) for each in found]


def _accumulator(leaf: Tensor) -> Any:
    """The node that a graph has for a leaf."""
    with enable_grad():
        node: Any = leaf.view_as(leaf).grad_fn
        return node.next_functions[0][0]


def _used_in(outputs: Any, parameters: Sequence[Tensor]) -> set[int]:
    """The ids of the parameters that the graph of the outputs leads to."""
    waiting = [
        each.grad_fn or _accumulator(each)
        for each in flatten(outputs)[0]
        if isinstance(each, Tensor) and each.requires_grad
    ]
    seen = set(waiting)
    while waiting:
        for node, _ in waiting.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                waiting.append(node)
    return {id(p) for p in parameters if _accumulator(p) in seen}


def give(rank: int, tensors: list[Tensor], group: Any) -> None:
    """Give a rank's tensors to a group's others, in a flat tensor for each type."""
    kinds: dict[Any, list[Tensor]] = {}
    for each in tensors:
        kinds.setdefault((each.dtype, each.device), []).append(each.detach())
    for alike in kinds.values():
        flat = _C.cat([t.reshape(-1) for t in alike])
        dist.broadcast(flat, group=group, group_src=rank)
        for t, piece in zip(alike, flat.split([t.numel() for t in alike]), strict=True):
            t.copy_(piece.view(t.shape))


class DistributedDataParallel(Module):
    """Trains a module on all ranks at once, each with a part of every batch.

    module         has equal parameters on all ranks: rank 0 gives its own to the others
    device_ids     [GPU] of this rank, to which inputs move; None for the CPU
    process_group  the ranks; None: all
    bucket_cap_mb  MiB of gradients that are sent together, 25 by default
    broadcast_buffers  give rank 0's buffers to the others before each forward()
    find_unused_parameters  for a module that does not use all parameters in each pass
    gradient_as_bucket_view  gradients are views of what is sent, which saves memory
    static_graph   the parameters that are used are the same in each pass
    output_device, dim, check_reduction  change nothing: a rank uses one GPU
    init_sync      whether rank 0 gives its parameters and buffers at first

    In backward(), gradients become the mean of those of all ranks; they are sent while
    the pass goes on. RuntimeError where ranks have different parameters, and where
    gradients of the pass before did not come.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        parameters = [p for p in module.parameters() if p.requires_grad]
        if not parameters:
            raise RuntimeError(
                "DistributedDataParallel: no parameter of the module requires a "
                "gradient; use the module itself"
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                f"DistributedDataParallel: device_ids is {device_ids!r}; give one GPU: "
                "a rank uses one"
            )
        self.module = module
        self.device = parameters[0].device
        self.device_ids = device_ids
        self.dim, self.output_device = dim, output_device
        self.process_group = process_group or dist.group.WORLD
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self._size = dist.get_world_size(process_group)
        self._divisor = self._size
        self._joining = False
        self._hook: Callable[[Any, dist.GradBucket], Future[Tensor]] | None = None
        self._hook_state: Any = None
        limit = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MIB)
        self._buckets = _buckets(parameters, limit)
        self._place = {
            id(p): (b, i)
            for b, bucket in enumerate(self._buckets)
            for i, p in enumerate(bucket.parameters)
        }
        self._waits = False  # for gradients of a backward pass
        self._has_warned = False  # of gradients that are not sent
        self._came = False  # some of them
        self._sent = 0  # buckets
        self._used: set[int] = set()
        self._compare_ranks()
        if init_sync:
            give(0, [*module.parameters(), *module.buffers()], process_group)
        for bucket in self._buckets:
            for parameter in bucket.parameters:
                parameter.register_post_accumulate_grad_hook(self._gradient_came)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            "DistributedDataParallel cannot be copied or pickled; copy its module"
        )

    # --- equal modules ---

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Facts that programs ask for, which are few here."""
        return {"can_set_static_graph": False, "static_graph": self.static_graph}

    def _compare_ranks(self) -> None:
        """RuntimeError where another rank's parameters differ from this one's."""
        mine = [
            (name, [*p.shape], str(p.dtype))
            for name, p in self.module.named_parameters()
        ]
        line = f" at {found}" if (found := _C._source_line()) else ""
        of_ranks: list[Any] = [None] * self._size
        dist.all_gather_object(of_ranks, (mine, line), self.process_group)
        for rank, (theirs, their_line) in enumerate(of_ranks):
            if theirs == mine:
                continue
            pairs = zip(mine, theirs, strict=False)
            here, there = next(
                ((f"parameter {a}", f"{b}") for a, b in pairs if a != b),
                (f"{len(mine)} parameters", f"{len(theirs)}"),
            )
            raise RuntimeError(
                f"DistributedDataParallel: rank {dist.get_rank(self.process_group)} "
                f"has {here}{line}, and rank {rank} has {there}{their_line}; make the "
                "same module on all ranks"
            )

    # --- passes ---

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's output for this rank's inputs."""
        syncs = self.require_backward_grad_sync
        sends = syncs and _C.is_grad_enabled()
        giver = self._count_active(1, syncs, sends)[0] if self._joining else 0
        if sends:
            self._check_last_pass()
        if syncs:
            self._give_buffers(giver)
        if self.device_ids:
            device = _C.device("cuda", _C._device_index(self.device_ids[0]))
            inputs, kwargs = map_leaves(
                lambda v: v.to(device) if isinstance(v, Tensor) else v, (inputs, kwargs)
            )
        outputs = self.module(*inputs, **kwargs)
        if sends:
            self._begin(outputs)
        return outputs

    def _give_buffers(self, rank: int) -> None:
        if self.broadcast_buffers and (buffers := [*self.module.buffers()]):
            give(rank, buffers, self.process_group)

    def _check_last_pass(self) -> None:
        if not self._waits or not self._came:
            return
        missing = [
            name
            for name, p in self.module.named_parameters()
            if id(p) in self._place and id(p) not in self._used
        ]
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration: no gradient "
            f"came for {', '.join(missing[:5])}. Make the loss depend on all "
            "parameters, or give find_unused_parameters=True"
        )

    def _begin(self, outputs: Any) -> None:
        """Waits for the gradients of a backward pass through outputs."""
        for bucket in self._buckets:
            bucket.missing, bucket.sent = len(bucket.parameters), None
        self._sent, self._waits, self._came = 0, True, False
        known = self.static_graph and self._used
        if self.find_unused_parameters or self.static_graph:
            if not known:
                parameters = [p for b in self._buckets for p in b.parameters]
                self._used = _used_in(outputs, parameters)
            for b, bucket in enumerate(self._buckets):
                for i, parameter in enumerate(bucket.parameters):
                    if id(parameter) not in self._used:
                        self._take(b, i)
            self._send_full()
        else:
            self._used = set()

    def _gradient_came(self, parameter: Tensor) -> None:
        if not self.require_backward_grad_sync:
            return
        if not self._waits:
            self._warn_of_own_gradients()
            return
        b, i = self._place[id(parameter)]
        self._came = True
        if not self.static_graph and not self.find_unused_parameters:
            self._used.add(id(parameter))
        self._take(b, i)
        self._send_full()
        if self._sent == len(self._buckets):
            self._finish()

    def _warn_of_own_gradients(self) -> None:
        """Once: PyTorch is silent, and the ranks' parameters drift apart."""
        if self._size > 1 and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "DistributedDataParallel: a gradient has come from a loss that was not "
                "computed by calling this module, or in a second backward() of one "
                "loss: it stays this rank's own. Call the module itself, and not its "
                ".module, or use no_sync() where that is meant",
                stacklevel=3,
            )

    def _take(self, b: int, i: int) -> None:
        divisor = 1 if self._hook else self._divisor
        self._buckets[b].fill(i, self.gradient_as_bucket_view, divisor)
        self._buckets[b].missing -= 1

    def _send_full(self) -> None:
        """Sends what is full, in the same order on all ranks."""
        while self._sent < len(self._buckets) and not self._buckets[self._sent].missing:
            self._send(self._sent)
            self._sent += 1

    def _send(self, b: int) -> None:
        bucket = self._buckets[b]
        if self._hook is None:
            work = dist.all_reduce(bucket.flat, group=self.process_group, async_op=True)
            bucket.sent = work.get_future() if work else None
            return
        is_last = b == len(self._buckets) - 1
        given = dist.GradBucket(
            b, bucket.flat, bucket.views, bucket.parameters, is_last
        )
        bucket.sent = self._hook(self._hook_state, given)
        if not isinstance(bucket.sent, Future):
            raise RuntimeError(
                f"the hook for communication has returned {bucket.sent!r:.60} "
                f"({type(bucket.sent).__name__}); return a torch.futures.Future of a "
                "Tensor, as all_reduce(..., async_op=True).get_future() gives"
            )

    def _receive(self, bucket: _Bucket) -> None:
        """Waits until the bucket has the mean of all ranks."""
        found = bucket.sent.wait() if bucket.sent else None
        if self._hook is None:
            return
        if not isinstance(found, Tensor) or found.numel() != bucket.flat.numel():
            raise RuntimeError(
                f"the future of the hook for communication has {found!r:.60}; give a "
                f"Tensor of {bucket.flat.numel()} elements, as bucket.buffer() is"
            )
        if found.data_ptr() != bucket.flat.data_ptr():
            bucket.flat.copy_(found.view(-1))

    def _finish(self) -> None:
        used = self._used_anywhere()
        for bucket in self._buckets:
            self._receive(bucket)
            bucket.deliver(
                [used[id(p)] for p in bucket.parameters], self.gradient_as_bucket_view
            )
        self._waits = False

    def _used_anywhere(self) -> dict[int, bool]:
        """Which parameters some rank has used in this pass."""
        if not self.find_unused_parameters and not self.static_graph:
            return dict.fromkeys(self._place, True)
        used = _C.tensor([id_ in self._used for id_ in self._place], dtype=_C.uint8)
        dist.all_reduce(used, dist.ReduceOp.MAX, self.process_group)
        return dict(zip(self._place, map(bool, used.tolist()), strict=True))

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate this rank's own gradients in the block; the next backward() after
        it sends their sum."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(
        self, state: Any, hook: Callable[[Any, dist.GradBucket], Future[Tensor]]
    ) -> None:
        """Let a function send gradients, once, before the first pass.

        state  what the function gets first, such as a group of ranks
        hook   called as hook(state, bucket) with a torch.distributed.GradBucket of this
               rank's gradients, which are not divided by the number of ranks; returns a
               torch.futures.Future of what they become, a Tensor of their number. Those
               of torch.distributed.algorithms.ddp_comm_hooks.default_hooks send the
               mean, in fewer bits

        TypeError for what cannot be called, RuntimeError for a second hook.
        """
        if not callable(hook):
            raise TypeError(
                f"register_comm_hook(): hook is {hook!r} ({type(hook).__name__}); give "
                "a function of a state and a GradBucket"
            )
        if self._hook is not None:
            raise RuntimeError(
                "register_comm_hook can only be called once, and there is a hook; make "
                "one function that does both"
            )
        self._hook, self._hook_state = hook, state

    # --- ranks with fewer batches ---

    @contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """Let ranks have different numbers of batches in the block.

        A rank that is through takes part in the calls of the others with gradients of
        zero. divide_by_initial_world_size: the mean is over all ranks; False: over
        those that still have batches. throw_on_early_termination: RuntimeError on all
        ranks as soon as one is through. enable: False: the block does nothing.
        """
        if not enable:
            yield
            return
        self._joining = True
        self._throws = throw_on_early_termination
        self._divides_by_all = divide_by_initial_world_size
        try:
            yield
            self._shadow()
        finally:
            self._joining, self._divisor = False, self._size

    def _count_active(self, *state: int) -> tuple[int, int, bool, bool]:
        """The first rank that has batches; how many have; whether they sync, and send.

        state: this rank's, 0 or 1 for each of the last three.
        """
        found = [_C.zeros(3, dtype=_C.int64) for _ in range(self._size)]
        dist.all_gather(found, _C.tensor([*map(int, state)]), self.process_group)
        states = [each.tolist() for each in found]
        ranks = [rank for rank, (active, *_) in enumerate(states) if active]
        if self._throws and len(ranks) < self._size:
            raise RuntimeError("join(): another rank has no more batches")
        if not self._divides_by_all and ranks:
            self._divisor = len(ranks)
        syncs, sends = (any(each[i] for each in states) for i in (1, 2))
        return (ranks or [0])[0], len(ranks), syncs, sends

    def _shadow(self) -> None:
        """Takes part in the calls of ranks that still have batches, and ends with the
        parameters and buffers of the last of them."""
        last = dist.get_rank(self.process_group)
        while True:
            first, count, syncs, sends = self._count_active(0, 0, 0)
            if not count:
                break
            last = first
            if syncs:
                self._give_buffers(first)
            if sends:
                for b, bucket in enumerate(self._buckets):
                    bucket.flat.zero_()
                    self._send(b)
                for bucket in self._buckets:
                    self._receive(bucket)
                self._used = set()
                self._used_anywhere()
        # The first of those that had batches to the end, which know of themselves.
        found = _C.tensor([last])
        dist.all_reduce(found, dist.ReduceOp.MIN, self.process_group)
        tensors = [*self.module.parameters(), *self.module.buffers()]
        give(int(found.item()), tensors, self.process_group)


_publish(__name__)
