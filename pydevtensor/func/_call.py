"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydevtensor import _C


def _need_module(name: str, given: Any) -> None:
    """Raise TypeError for what is not a module. nn imports func, so look at it."""
    if not hasattr(given, "named_parameters"):
        kind = type(given).__name__
        raise TypeError(f"{name}(): {kind} is not a Module; give an nn.Module")


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[Any, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with other Tensors for its parameters and buffers.

    parameter_and_buffer_dicts: Tensors by path, or a sequence of such dicts; paths that
    they lack keep their values. With tie_weights, a parameter that has several paths is
    replaced in all. With strict, RuntimeError for paths that are missing or unknown.
    The module has its own parameters again afterwards.

    >>> net = nn.Linear(2, 1)
    >>> weights = {'weight': torch.ones(1, 2), 'bias': torch.zeros(1)}
    >>> torch.func.functional_call(net, weights, (torch.tensor([1.0, 2.0]),))
    tensor([3.])
    """
    given: dict[str, Any] = {}
    dicts = parameter_and_buffer_dicts
    for each in [dicts] if isinstance(dicts, dict) else dicts:
        if double := given.keys() & each.keys():
            raise ValueError(f"functional_call(): {sorted(double)} is given twice")
        given.update(each)
    _need_module("functional_call", module)
    places = dict(_places(module))
    if strict:
        missing = [path for path in places if path not in given]
        unknown = [path for path in given if path not in places]
        if missing or unknown:
            raise RuntimeError(
                f"functional_call(): with strict=True, missing are {missing} and "
                f"unknown {unknown}; give all the module's parameters and buffers"
            )
    if tie_weights:
        groups: dict[int, Any] = {
            id(registry[name]): given[path]
            for path, (registry, name) in places.items()
            if path in given
        }
        given = {
            path: groups[id(registry[name])]
            for path, (registry, name) in places.items()
            if id(registry[name]) in groups
        }
    if args is None:
        args = ()
    args = args if isinstance(args, tuple) else (args,)
    before = []
    try:
        for path, value in given.items():
            if path in places:
                registry, name = places[path]
                before.append((registry, name, registry[name]))
                registry[name] = value
        return module(*args, **(kwargs or {}))
    finally:
        for registry, name, value in reversed(before):
            registry[name] = value


def _places(module: Any) -> Any:
    """The registry and name of each parameter and buffer, by path."""
    for path, each in module.named_modules(remove_duplicate=False):
        for registry in (each._parameters, each._buffers):
            for name, value in registry.items():
                if value is not None:
                    yield f"{path}.{name}" if path else name, (registry, name)


def stack_module_state(models: Sequence[Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The parameters, and the buffers, of alike modules stacked: for vmap over them.

    models: a sequence of modules of one class; RuntimeError for none and for several
    classes.

    See also functional_call().

    >>> nets = [nn.Linear(2, 1) for _ in range(3)]
    >>> torch.func.stack_module_state(nets)[0]['weight'].shape
    torch.Size([3, 1, 2])
    """
    if not models:
        raise RuntimeError("stack_module_state(): models is empty; give one or more")
    for each in models:
        _need_module("stack_module_state", each)
    if any(type(each) is not type(models[0]) for each in models):
        raise RuntimeError(
            "stack_module_state(): the models are of several classes; give one class"
        )
    parts = ([dict(m.named_parameters()) for m in models],
             [dict(m.named_buffers()) for m in models])  # fmt: skip
    parameters, buffers = (
        {k: _C.stack([each[k].detach() for each in part]) for k in part[0]}
        for part in parts
    )
    for name, value in parameters.items():
        value.requires_grad_(parts[0][0][name].requires_grad)
    return parameters, buffers
