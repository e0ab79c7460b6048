"""States of models and optimizers, by the names of parameters, whole or by shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._names import publish as _publish
from pydevtensor._tree import map_leaves
from pydevtensor.autograd import no_grad
from pydevtensor.distributed.fsdp._shards import ShardedTensor
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parallel import DistributedDataParallel
from pydevtensor.optim.optimizer import Optimizer

__all__ = ["StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict"]
__all__ += ["get_state_dict", "set_model_state_dict", "set_optimizer_state_dict"]
__all__ += ["set_state_dict"]

Tensor = _C.Tensor
Optimizers = Optimizer | Iterable[Optimizer]


@dataclass
class StateDictOptions:
    """Options of the functions of this module.

    full_state_dict  whole tensors, instead of this rank's rows
    cpu_offload      tensors of the CPU; with full_state_dict, on rank 0 alone: the
                     other ranks get an empty dict
    strict           whether a name too many or too few is an error

    >>> torch.distributed.checkpoint.state_dict.StateDictOptions().strict
    True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    strict: bool = True


def _given(values: Any, options: StateDictOptions) -> Any:
    """The values as options ask for them."""

    def one(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        sharding = getattr(value, "_sharding", None)
        if options.full_state_dict and sharding is not None:
            value, sharding = sharding.gather(value), None
        if options.cpu_offload:
            value = value.cpu()
        return ShardedTensor.of(value, sharding) if sharding else value

    found = map_leaves(one, values)
    alone = options.full_state_dict and options.cpu_offload and dist.is_initialized()
    return {} if alone and dist.get_rank() else found


def _bare(model: Module) -> Any:
    is_copy = isinstance(model, DistributedDataParallel)
    return model.module if is_copy else model


def _rows_of(value: Any, like: Any) -> Any:
    """This rank's rows, where `like` has those and value all."""
    sharding = getattr(like, "_sharding", None)
    if sharding is None or not isinstance(value, Tensor):
        return value
    if getattr(value, "_sharding", None) is not None:
        return value
    if tuple(value.shape) != sharding.shape:
        return value  # of one element, or wrong: the module says so
    return value[sharding.rows()]


@no_grad()
def get_model_state_dict(
    model: Module, *, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state_dict() of a model, without DistributedDataParallel's prefix.

    options: StateDictOptions. With full_state_dict all ranks call it.

    >>> names = torch.distributed.checkpoint.state_dict
    >>> [*names.get_model_state_dict(nn.Linear(2, 1))]
    ['weight', 'bias']
    """
    state = dict(_bare(model).state_dict())
    found: dict[str, Any] = _given(state, options or StateDictOptions())
    return found


def set_model_state_dict(
    model: Module,
    model_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> Any:
    """Load what get_model_state_dict() gave, whole tensors or rows, into a model.

    model_state_dict: that, on every rank. options: StateDictOptions. Returns the
    missing and unexpected names, as load_state_dict() does.

    >>> net, names = nn.Linear(2, 1), torch.distributed.checkpoint.state_dict
    >>> names.set_model_state_dict(net, names.get_model_state_dict(net))
    <All keys matched successfully>
    """
    bare = _bare(model)
    own = bare.state_dict()
    state = {
        name: _rows_of(value, own.get(name)) for name, value in model_state_dict.items()
    }
    return bare.load_state_dict(state, strict=(options or StateDictOptions()).strict)


def _names(model: Module) -> dict[Tensor, str]:
    return {p: name for name, p in _bare(model).named_parameters()}


def _each(optimizers: Optimizers) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else [*optimizers]


def _make_states(optimizer: Optimizer) -> None:
    """Lets an optimizer have states, by a step that changes no parameter."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if optimizer.state or any(p.grad is not None for p in parameters):
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    for p in parameters:
        if p.requires_grad:
            p.grad = _C.zeros_like(p.detach())
    optimizer.step()
    optimizer.zero_grad()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


@no_grad()
def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The states of an optimizer, or of several, by the names of a model's parameters.

    optimizers: of parameters of model. An optimizer without states gets some, of zeros,
    so that a checkpoint can be read into them. options: StateDictOptions. With
    full_state_dict all ranks call it.

    >>> net, names = nn.Linear(2, 1), torch.distributed.checkpoint.state_dict
    >>> optimizer = torch.optim.Adam(net.parameters())
    >>> [*names.get_optimizer_state_dict(net, optimizer)['state']['bias']]
    ['step', 'exp_avg', 'exp_avg_sq']
    """
    names = _names(model)
    states: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _each(optimizers):
        _make_states(optimizer)
        for group in optimizer.param_groups:
            options_of = {k: v for k, v in group.items() if k != "params"}
            groups.append({**options_of, "params": [names[p] for p in group["params"]]})
            for p in group["params"]:
                if kept := optimizer.state.get(p):
                    states[names[p]] = {
                        key: _as_parameter(value, p) for key, value in kept.items()
                    }
    found = {"state": states, "param_groups": groups}
    result: dict[str, Any] = _given(found, options or StateDictOptions())
    return result


def _as_parameter(value: Any, parameter: Tensor) -> Any:
    """A state that has the shape of a sharded parameter is sharded, too."""
    sharding = getattr(parameter, "_sharding", None)
    if sharding is None or not isinstance(value, Tensor):
        return value
    if value.shape != parameter.shape:
        return value
    return ShardedTensor.of(value, sharding)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizers,
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load what get_optimizer_state_dict() gave, whole tensors or rows.

    model, optimizers: as there. optim_state_dict: that, on every rank. options:
    changes nothing here. KeyError for a parameter that it has no group of.

    >>> net, names = nn.Linear(2, 1), torch.distributed.checkpoint.state_dict
    >>> optimizer = torch.optim.Adam(net.parameters())
    >>> state = names.get_optimizer_state_dict(net, optimizer)
    >>> names.set_optimizer_state_dict(net, optimizer, state)
    """
    names = _names(model)
    by_name = {
        name: group
        for group in optim_state_dict["param_groups"]
        for name in group["params"]
    }
    for optimizer in _each(optimizers):
        packed = optimizer.state_dict()
        packed["state"] = {}
        for group, mine in zip(
            packed["param_groups"], optimizer.param_groups, strict=True
        ):
            for number, p in zip(group["params"], mine["params"], strict=True):
                name = names[p]
                loaded = by_name[name]
                group.update(
                    {k: v for k, v in loaded.items() if k in group and k != "params"}
                )
                if name in optim_state_dict["state"]:
                    packed["state"][number] = {
                        key: _state_rows(value, p)
                        for key, value in optim_state_dict["state"][name].items()
                    }
        optimizer.load_state_dict(packed)


def _state_rows(value: Any, parameter: Tensor) -> Any:
    found = _rows_of(value, parameter)
    return found.detach() if isinstance(found, Tensor) else found


def get_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """get_model_state_dict() and get_optimizer_state_dict().

    model, optimizers and options are theirs.

    >>> net, names = nn.Linear(2, 1), torch.distributed.checkpoint.state_dict
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> [*names.get_state_dict(net, optimizer)[1]]
    ['state', 'param_groups']
    """
    get: Callable[..., dict[str, Any]] = get_optimizer_state_dict
    return get_model_state_dict(model, options=options), get(
        model, optimizers, options=options
    )


def set_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """set_model_state_dict() and set_optimizer_state_dict().

    model, optimizers, model_state_dict, optim_state_dict and options are theirs.

    >>> net, names = nn.Linear(2, 1), torch.distributed.checkpoint.state_dict
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> model, optim = names.get_state_dict(net, optimizer)
    >>> names.set_state_dict(
    ...     net, optimizer, model_state_dict=model, optim_state_dict=optim)
    <All keys matched successfully>
    """
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


_publish(__name__)
