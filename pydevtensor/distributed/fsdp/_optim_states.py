"""States of optimizers by the names of parameters: whole, or each rank's part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor._tree import map_leaves
from pydevtensor.autograd import no_grad
from pydevtensor.distributed.fsdp._flat_shards import FlatShards
from pydevtensor.distributed.fsdp._shards import Unit
from pydevtensor.distributed.tensor import DTensor
from pydevtensor.distributed.tensor._dtensor import rows_as
from pydevtensor.nn.modules.module import Module
from pydevtensor.optim.optimizer import Optimizer

Tensor = _C.Tensor


@no_grad()
def given(values: Any, full: bool, on_cpu: bool) -> Any:
    """The values; full: with whole tensors; on_cpu: copied to the CPU."""

    def one(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if full and isinstance(value, DTensor):
            value = value.full_tensor()
        return value.cpu() if on_cpu else value

    return map_leaves(one, values)


def rows_of(value: Any, like: Any) -> Any:
    """A DTensor of this rank's rows of a value, if `like` is one of rows and the value
    is whole; else the value."""
    if not isinstance(like, DTensor) or not isinstance(value, Tensor):
        return value
    sharding = like._sharding
    if isinstance(value, DTensor) or sharding is None or value.shape != like.shape:
        return value  # or of one element, or a wrong shape, which the module reports
    return rows_as(value[sharding.rows()], sharding)


def _names(model: Module) -> tuple[dict[Tensor, list[str]], dict[Tensor, Any]]:
    """The names of the parameters that an optimizer can have, and the flat shards that
    have some of them, with their positions there."""
    flat: dict[Tensor, Any] = {}
    names: dict[Tensor, list[str]] = {}
    for path, unit in model.named_modules():
        shards = getattr(unit, "_shards", None) if isinstance(unit, Unit) else None
        if not isinstance(shards, FlatShards):
            continue
        prefix = clean(f"{path}." if path else "")
        for j, leaf in enumerate(shards.leaves):
            flat[leaf] = (shards, j)
            paths = [unit._paths[i] for i in shards.of_leaf(j)]
            names[leaf] = [prefix + each[0] for each in paths]
    for name, p in model.named_parameters():
        names.setdefault(p, [clean(name)])
    return names, flat


def clean(name: str) -> str:
    """A parameter's path without FullyShardedDataParallel's own names."""
    return name.replace("_fsdp_wrapped_module.", "")


@no_grad()
def collect(model: Module, optimizers: Sequence[Optimizer]) -> dict[str, Any]:
    """The states and groups of optimizers; those of sharded parameters as rows."""
    names, flat = _names(model)
    groups: list[dict[str, Any]] = []
    states: dict[str, Any] = {}
    units: dict[FlatShards, list[Any]] = {}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            options = {k: v for k, v in group.items() if k != "params"}
            params = [name for p in group["params"] for name in names[p]]
            groups.append({**options, "params": params})
            for p in group["params"]:
                kept = optimizer.state.get(p)
                if kept and p in flat:
                    shards, j = flat[p]
                    units.setdefault(shards, [{} for _ in shards.leaves])[j] = kept
                elif kept:
                    states[names[p][0]] = dict(kept)
    for shards, kept in units.items():
        of = [names[leaf] for leaf in shards.leaves]
        for key in dict.fromkeys(key for each in kept for key in each):
            for name, value in _of_unit(shards, of, [each.get(key) for each in kept]):
                states.setdefault(name, {})[key] = value
    return {"state": states, "param_groups": groups}


def _of_unit(shards: FlatShards, names: Any, values: list[Any]) -> Any:
    """One state of all leaves of a unit, by the names of its parameters."""
    is_part = [
        isinstance(v, Tensor) and v.ndim == 1 and v.shape == leaf.shape
        for v, leaf in zip(values, shards.leaves, strict=True)
    ]
    whole: list[Any] = []
    if any(is_part):
        some = values[is_part.index(True)]
        whole = shards.whole(
            [
                v if yes else _C.zeros_like(leaf, dtype=some.dtype).detach()
                for v, leaf, yes in zip(values, shards.leaves, is_part, strict=True)
            ]
        )
    for j, value in enumerate(values):
        for i, name in zip(shards.of_leaf(j), names[j], strict=True):
            if is_part[j] and shards.shapes[i]:
                sharding = shards.rows(i)
                rows = whole[i][sharding.rows()].clone()
                yield name, rows_as(rows, sharding)
            elif value is not None:
                yield name, whole[i] if is_part[j] else value


@no_grad()
def spread(
    model: Module, optimizer: Optimizer, collected: dict[str, Any]
) -> dict[str, Any]:
    """The argument of optimizer.load_state_dict(), from the result of collect()."""
    names, flat = _names(model)
    of_name = {n: group for group in collected["param_groups"] for n in group["params"]}
    packed = optimizer.state_dict()
    packed["state"] = {}
    for group, mine in zip(packed["param_groups"], optimizer.param_groups, strict=True):
        for number, p in zip(group["params"], mine["params"], strict=True):
            loaded = of_name[names[p][0]]
            group.update(
                {k: v for k, v in loaded.items() if k in group and k != "params"}
            )
            came = [collected["state"].get(name) for name in names[p]]
            if None not in came:
                packed["state"][number] = {
                    key: _own(key, [each[key] for each in came], p, flat.get(p))
                    for key in came[0]
                }
    return packed


def _own(key: str, values: list[Any], parameter: Tensor, leaf: Any) -> Any:
    """This rank's part of a state. leaf: the flat shards and the index of the leaf that
    has a part of the parameter, or None."""
    if leaf is None:
        found = rows_of(values[0], parameter)
        return found.detach() if isinstance(found, Tensor) else found
    shards, j = leaf
    whole = given(values, True, False)
    shapes = [shards.shapes[i] for i in shards.of_leaf(j)]
    # The count of steps has the shape of a parameter without dimensions.
    if key != "step" and all(
        isinstance(v, Tensor) and tuple(v.shape) == shape
        for v, shape in zip(whole, shapes, strict=True)
    ):
        return shards.part(j, whole)
    return whole[0]
