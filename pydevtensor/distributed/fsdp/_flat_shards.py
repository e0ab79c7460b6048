"""Parameters that are one flat tensor, of which each rank has a part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor.autograd import no_grad
from pydevtensor.distributed.device_mesh import DeviceMesh
from pydevtensor.distributed.fsdp._shards import Sharding, Shards, Share
from pydevtensor.nn.parameter import Parameter

Tensor = _C.Tensor


class FlatParameter(Share):
    """This rank's part of one or more parameters, of one dimension.

    data, requires_grad: those of Parameter.

    >>> issubclass(torch.distributed.fsdp.FlatParameter, nn.Parameter)
    True
    """


class FlatShards(Shards):
    """Parameters of one type, one after another, cut into equal parts for the ranks.

    originals: a leaf is this rank's part of one parameter, and may have no elements;
    else there is one leaf. home: the leaf. device: where parameters are used.
    """

    def __init__(
        self,
        parameters: Sequence[tuple[Parameter, list[tuple[Any, str]]]],
        mesh: DeviceMesh,
        shards: bool,
        param_dtype: Any,
        reduce_dtype: Any,
        originals: bool,
        home: Any,
    ) -> None:
        super().__init__(parameters, mesh, shards, param_dtype, reduce_dtype)
        tensors = [p for p, _ in parameters]
        _check(tensors, originals)
        self.originals = originals
        self.shapes = [tuple(t.shape) for t in tensors]
        self.counts = [t.numel() for t in tensors]
        self.share = -(-sum(self.counts) // self.size)  # elements of each rank
        first = self.share * (self.group.rank() if self.group is not None else 0)
        # The elements that each leaf has of its parameters.
        last = first + self.share
        self.ranges = [(first, last)] if tensors else []
        if originals:
            ends = [*accumulate(self.counts)]
            self.ranges = [
                (min(max(first - end + n, 0), n), min(max(last - end + n, 0), n))
                for n, end in zip(self.counts, ends, strict=True)
            ]
        self.device = tensors[0].device if tensors else None
        needs = [t.requires_grad for t in tensors]
        self.frozen = [i for i, needed in enumerate(needs) if not needed]
        self.recalled = [0] if tensors else []
        self.leaves = []
        for j, part in enumerate(self.parts([t.detach() for t in tensors])):
            leaf = _C._make_subclass(FlatParameter, part.to(home), needs[j])
            leaf._ranks_of_norm = self.group
            self.leaves.append(leaf)

    def hide(self) -> None:
        """Set the leaves as the modules' parameters; or none, if there is one leaf."""
        self.show(self.leaves if self.originals else [None] * len(self.owners))

    def of_leaf(self, j: int) -> Sequence[int]:
        """The parameters that a leaf has a part of."""
        return [j] if self.originals else range(len(self.counts))

    def part(self, j: int, tensors: Sequence[Tensor]) -> Tensor:
        """A leaf's part of tensors of the shapes of its parameters."""
        first, last = self.ranges[j]
        flat = _C.cat([t.detach().reshape(-1) for t in tensors])
        found = flat.new_zeros(last - first)
        found[: max(flat.numel() - first, 0)].copy_(flat[first:last])
        return found

    def parts(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The leaves' parts of tensors of the parameters' shapes."""
        return [
            self.part(j, [tensors[i] for i in self.of_leaf(j)])
            for j in range(len(self.ranges))
        ]

    @no_grad()
    def whole(self, parts: Sequence[Tensor], dtype: Any = None) -> list[Tensor]:
        """Tensors of the parameters' shapes, in one memory, from the ranks' parts."""
        return self._whole(parts, dtype, False)()

    def _whole(
        self, parts: Sequence[Tensor], dtype: Any, is_async: bool
    ) -> Callable[[], list[Tensor]]:
        if not parts:
            return list
        pad = self.share - sum(part.numel() for part in parts)
        own = _C.cat([*parts, parts[0].new_zeros(pad)]).detach()
        own = own.to(self.device, dtype)
        if self.group is None:
            return partial(self._views, own)
        flat = own.new_empty(self.size * self.share)
        work = dist.all_gather_into_tensor(flat, own, self.group, is_async)
        return partial(self._views, flat, work)

    def _views(self, flat: Tensor, work: Any = None) -> list[Tensor]:
        if work is not None:
            work.wait()
        parts = flat[: sum(self.counts)].split(self.counts)
        return [p.view(shape) for p, shape in zip(parts, self.shapes, strict=True)]

    @no_grad()
    def start(self, is_async: bool) -> Callable[[], list[Tensor]]:
        """See Shards. The parameters share one memory."""
        return self._whole(self.leaves, self.param_dtype, is_async)

    def scatter(self, gradients: list[Any]) -> Callable[[], list[Any]]:
        """See Shards. A leaf's part is its elements."""
        dtype = self.reduce_dtype or self.param_dtype or self.leaves[0].dtype
        flat = _C.zeros(self.size * self.share, dtype=dtype, device=self.device)
        for view, gradient in zip(self._views(flat), gradients, strict=True):
            if gradient is not None:
                view.copy_(gradient)
        return partial(self._own_parts, self.start_mean(flat))

    @no_grad()
    def _own_parts(self, finish: Callable[[], Tensor]) -> list[Any]:
        own, leaf = finish(), self.leaves[0]
        if self.replicas is not None:
            dist.all_reduce(own, group=self.replicas)
        own = own.to(leaf.device, leaf.dtype)
        counts = [last - first for first, last in self.ranges]
        parts = own[: sum(counts)].split(counts)
        return [
            part if leaf.requires_grad else None
            for part, leaf in zip(parts, self.leaves, strict=True)
        ]

    def rows(self, i: int) -> Sharding:
        """How the rows of a parameter are divided in a checkpoint."""
        return Sharding(self.shapes[i], self.mesh.get_group(-1), self.mesh)


def _check(tensors: list[Parameter], originals: bool) -> None:
    dtypes = [*dict.fromkeys(str(t.dtype) for t in tensors)]
    if len(dtypes) > 1:
        raise ValueError(
            f"Must flatten tensors with uniform dtype but got {' and '.join(dtypes)}; "
            "wrap modules of another type by themselves"
        )
    if not originals and len({t.requires_grad for t in tensors}) > 1:
        raise ValueError(
            "Must flatten tensors with uniform `requires_grad` when "
            "`use_orig_params=False`; give use_orig_params=True"
        )
