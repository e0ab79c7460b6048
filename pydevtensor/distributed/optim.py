"""Optimizers whose states are divided among ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._names import publish as _publish
from pydevtensor._tree import map_leaves
from pydevtensor.optim.optimizer import Optimizer, ParamsT

__all__ = ["ZeroRedundancyOptimizer"]

Tensor = _C.Tensor


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer of which each rank updates a share of the parameters.

    So each rank has the states of its share alone. The gradients have to be equal on
    all ranks, as DistributedDataParallel makes them; step() gives the new parameters to
    all.

    params           as for any optimizer: all parameters, the same on all ranks
    optimizer_class  the optimizer's class, such as torch.optim.Adam
    process_group    the ranks; None: all
    parameters_as_bucket_view  a rank's parameters become views of one tensor, which
                     saves a copy when they are given to the others
    overlap_with_ddp NotImplementedError if True: step() follows backward()
    defaults         options of optimizer_class, such as lr

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> Optimizer = dist.optim.ZeroRedundancyOptimizer
    >>> w = nn.Parameter(torch.ones(2))
    >>> optimizer = Optimizer([w], torch.optim.SGD, lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5, 0.5]
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: ParamsT,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp=True; leave it out, and "
                "call step() after backward()"
            )
        self.process_group = process_group or dist.group.WORLD
        self._rank = dist.get_rank(process_group)
        self._size = dist.get_world_size(process_group)
        self._as_views = parameters_as_bucket_view
        self._class, self._options = optimizer_class, defaults
        self._owners: dict[Tensor, int] = {}  # the rank that updates a parameter
        self._loads = [0] * self._size  # elements of each rank
        self._whole: dict[str, Any] | None = None  # the states of all ranks
        self._flat: dict[Any, tuple[Tensor, list[Tensor]]] = {}
        super().__init__(params, {})
        mine = [{**group, "params": self._mine(group)} for group in self.param_groups]
        self.optim = optimizer_class(mine, **defaults)
        self.defaults = self.optim.defaults
        self._take_options()

    # --- shares ---

    def add_param_group(self, param_group: dict[Any, Any]) -> None:
        """Add a group: a dict with "params" and options to replace the defaults.

        param_group  such a dict, the same on all ranks
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        # The largest first, each to the rank that has least so far.
        for p in sorted(group["params"], key=lambda p: -p.numel()):
            owner = self._loads.index(min(self._loads))
            self._owners[p] = owner
            self._loads[owner] += p.numel()
        if hasattr(self, "optim"):
            self.optim.add_param_group({**group, "params": self._mine(group)})
            self._take_options()
        self._make_views()

    def _mine(self, group: dict[Any, Any]) -> list[Tensor]:
        return [p for p in group["params"] if self._owners[p] == self._rank]

    def _take_options(self) -> None:
        """Shows the options that the class has set in its groups."""
        for shown, used in zip(self.param_groups, self.optim.param_groups, strict=True):
            shown.update({k: v for k, v in used.items() if k not in _LISTS})
        self.state = self.optim.state

    def _give_options(self) -> None:
        """Lets the class use what a program, or a schedule, has written here."""
        for shown, used in zip(self.param_groups, self.optim.param_groups, strict=True):
            used.update({k: v for k, v in shown.items() if k not in _LISTS})

    def _make_views(self) -> None:
        """By owner and kind of memory, what is sent together: a flat tensor, and the
        parameters."""
        kinds: dict[Any, list[Tensor]] = {}
        for p, owner in self._owners.items():
            kinds.setdefault((owner, p.dtype, p.device), []).append(p)
        self._flat = {}
        for kind, parameters in kinds.items():
            size = sum(p.numel() for p in parameters) if self._as_views else 0
            flat = _C.empty(size, dtype=kind[1], device=kind[2])
            self._flat[kind] = flat, parameters
            for p, view in zip(parameters, _parts(flat, parameters), strict=False):
                view.copy_(p.detach())
                p.data = view

    # --- steps ---

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this rank's share, and give all ranks the parameters.

        closure  computes the loss again, with gradients, and returns it
        kwargs   what the class's step() takes more
        """
        self._give_options()
        loss = self.optim.step(closure, **kwargs)
        self._take_options()
        for (owner, *_), (views, parameters) in self._flat.items():
            flat = views
            if not self._as_views:
                flat = _C.cat([p.detach().reshape(-1) for p in parameters])
            dist.broadcast(flat, group=self.process_group, group_src=owner)
            if not self._as_views and owner != self._rank:
                for p, part in zip(parameters, _parts(flat, parameters), strict=True):
                    p.detach().copy_(part)
        return loss

    # --- states ---

    def _places(self, rank: int) -> list[int]:
        """The indices among all parameters of a rank's, in the order of its groups."""
        every = [p for group in self.param_groups for p in group["params"]]
        return [i for i, p in enumerate(every) if self._owners[p] == rank]

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the states of all ranks to one, whose state_dict() can be called then.

        to  that rank in the group. All ranks call this.
        """
        self._give_options()
        own = map_leaves(
            lambda v: v.cpu() if isinstance(v, Tensor) else v,
            self.optim.state_dict()["state"],
        )
        found: list[Any] | None = [None] * self._size if to == self._rank else None
        dist.gather_object(own, found, group=self.process_group, group_dst=to)
        if found is None:
            self._whole = None
            return
        states = {}
        for rank, state in enumerate(found):
            places = self._places(rank)
            states.update({places[i]: kept for i, kept in state.items()})
        self._whole = {i: states[i] for i in sorted(states)}

    def state_dict(self) -> dict[str, Any]:
        """The states of all ranks, as the class alone would have them.

        RuntimeError before consolidate_state_dict(), and on other ranks than it names.
        """
        if self._whole is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank: call "
                f"consolidate_state_dict(to={self._rank}) on all ranks first"
            )
        return super().state_dict()

    def _packed(self) -> dict[str, Any]:
        return {"state": self._whole, "param_groups": super()._packed()["param_groups"]}

    def _unpack(self, state_dict: dict[str, Any]) -> None:
        empty: dict[str, Any] = {"state": {}}
        super()._unpack({**state_dict, **empty})
        mine = {number: i for i, number in enumerate(self._places(self._rank))}
        state = {
            mine[number]: kept
            for number, kept in state_dict["state"].items()
            if number in mine
        }
        self.optim.load_state_dict({**self.optim.state_dict(), "state": state})
        self._give_options()
        self._take_options()


_LISTS = ("params", "param_names")  # what a group has beside options


def _parts(flat: Tensor, parameters: list[Tensor]) -> list[Tensor]:
    """The parts of a flat tensor, in the shapes of parameters; none of an empty one."""
    if not flat.numel():
        return []
    pieces = flat.split([p.numel() for p in parameters])
    return [v.view(p.shape) for v, p in zip(pieces, parameters, strict=True)]


_publish(__name__)
