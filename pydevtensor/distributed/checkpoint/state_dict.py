"""States of models and optimizers, by the names of parameters, whole or by shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributed.fsdp import FullyShardedDataParallel as FSDP
from pydevtensor.distributed.fsdp import StateDictType
from pydevtensor.distributed.fsdp._optim_states import collect, given, rows_of, spread
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parallel import DistributedDataParallel
from pydevtensor.optim.optimizer import Optimizer

__all__ = ["StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict"]
__all__ += ["get_state_dict", "set_model_state_dict", "set_optimizer_state_dict"]
__all__ += ["set_state_dict"]

Optimizers = Optimizer | Iterable[Optimizer]


@dataclass
class StateDictOptions:
    """Options of the functions of this module.

    full_state_dict  whole tensors, instead of this rank's rows
    cpu_offload      tensors of the CPU; with full_state_dict, on rank 0 alone: the
                     other ranks get an empty dict
    strict           whether a name too many or too few is an error
    broadcast_from_rank0  set_model_state_dict() takes the whole tensors of rank 0, and
                     the other ranks' dicts do not matter

    >>> torch.distributed.checkpoint.state_dict.StateDictOptions().strict
    True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    strict: bool = True
    broadcast_from_rank0: bool = False


def _given(values: Any, options: StateDictOptions) -> Any:
    """The values as options ask for them."""
    found = given(values, options.full_state_dict, options.cpu_offload)
    alone = options.full_state_dict and options.cpu_offload and dist.is_initialized()
    return {} if alone and dist.get_rank() else found


def _bare(model: Module) -> Any:
    is_copy = isinstance(model, DistributedDataParallel)
    return model.module if is_copy else model


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
    bare = _bare(model)
    with FSDP.state_dict_type(bare, StateDictType.SHARDED_STATE_DICT):
        state = dict(bare.state_dict())
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
    options = options or StateDictOptions()
    bare = _bare(model)
    own = dict(bare.named_parameters(remove_duplicate=False))
    if options.broadcast_from_rank0 and dist.is_initialized():
        sent = [model_state_dict]
        dist.broadcast_object_list(sent, 0)
        model_state_dict = sent[0]
    state = {
        name: rows_of(value, own.get(name)) for name, value in model_state_dict.items()
    }
    with FSDP.state_dict_type(bare, StateDictType.SHARDED_STATE_DICT):
        return bare.load_state_dict(state, strict=options.strict)


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
    model: Module, optimizers: Optimizers, *, options: StateDictOptions | None = None
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
    each = _each(optimizers)
    for optimizer in each:
        _make_states(optimizer)
    found = collect(_bare(model), each)
    result: dict[str, Any] = _given(found, options or StateDictOptions())
    return result


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
    for optimizer in _each(optimizers):
        optimizer.load_state_dict(spread(_bare(model), optimizer, optim_state_dict))


def get_state_dict(
    model: Module, optimizers: Optimizers, *, options: StateDictOptions | None = None
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
