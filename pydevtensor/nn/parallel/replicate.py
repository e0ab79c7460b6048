"""Copies of a module on several GPUs, whose gradients return to the module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.cuda import comm
from pydevtensor.nn.modules.module import Module

__all__ = ["replicate"]


def _on_each(values: list[Any], devices: Sequence[Any]) -> Iterator[dict[int, Any]]:
    """For each device the copies of the values, by the id of the value."""
    made = comm.broadcast_coalesced(values, devices) if values else [[]] * len(devices)
    for copies in made:
        yield {id(v): copy for v, copy in zip(values, copies, strict=True)}


def _copy(module: Module, values: dict[int, Any], made: dict[int, Module]) -> Module:
    """The module with other parameters and buffers, and so its children."""
    if id(module) in made:
        return made[id(module)]
    copy = made[id(module)] = module.__new__(type(module))
    copy.__dict__.update(module.__dict__)
    for registry in ("_parameters", "_buffers"):
        fresh = {k: values.get(id(v)) for k, v in getattr(module, registry).items()}
        copy.__dict__[registry] = fresh
    copy.__dict__["_modules"] = {
        name: child if child is None else _copy(child, values, made)
        for name, child in module._modules.items()
    }
    return copy


def replicate(
    network: Module, devices: Sequence[Any], detach: bool = False
) -> list[Module]:
    """Copies of a module, one on each GPU, for one forward pass.

    The copies' parameters are results of copying the module's, so that the backward
    pass adds their gradients to the module's; with detach they are cut off. On the
    module's own GPU they are the parameters themselves, and so are its buffers.

    network  the module
    devices  a GPU for each copy, numbers or devices
    detach   cut the copies' parameters off, so that the module gets no gradients

    >>> net = nn.Linear(2, 1).cuda()
    >>> [copy.weight.device.index for copy in nn.parallel.replicate(net, [0, 1])]
    [0, 1]
    """
    parameters = [*network.parameters()]
    given = [p.detach() for p in parameters] if detach else parameters
    parts = [*_on_each(given, devices)]
    with no_grad():
        buffers = [*_on_each([*network.buffers()], devices)]
    ids = {id(g): id(p) for g, p in zip(given, parameters, strict=True)}
    return [
        _copy(network, {ids[key]: v for key, v in part.items()} | buffer, {})
        for part, buffer in zip(parts, buffers, strict=True)
    ]


_publish(__name__)
