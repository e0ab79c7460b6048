"""fully_shard(): gives each rank a share of a module's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._tree import map_leaves
from pydevtensor.distributed.device_mesh import DeviceMesh, init_device_mesh
from pydevtensor.distributed.fsdp._shards import (
    RowShards,
    ShardedTensor,
    Unit,
    own_parameters,
)
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parameter import Parameter

Tensor = _C.Tensor


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The types of elements that a sharded module computes and sends in.

    param_dtype          parameters are gathered and used in; None: their own
    reduce_dtype         gradients are sent in; None: param_dtype
    output_dtype         floating results of forward() become; None: as they are
    cast_forward_inputs  whether floating inputs become param_dtype

    >>> torch.distributed.fsdp.MixedPrecisionPolicy(torch.bfloat16).param_dtype
    torch.bfloat16
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


def cast(values: Any, dtype: Any) -> Any:
    """Values in which floating tensors have a type; None: as they are."""

    def one(value: Any) -> Any:
        floats = isinstance(value, Tensor) and value.is_floating_point()
        return value.to(dtype) if floats else value

    return map_leaves(one, values) if dtype else values


class FSDPModule(Unit):
    """A module that fully_shard() was called with: its class is also this one.

    >>> issubclass(torch.distributed.fsdp.FSDPModule, nn.Module)
    False
    """

    _policy: MixedPrecisionPolicy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result, with all rows of its parameters meanwhile."""
        if self._policy.cast_forward_inputs:
            args, kwargs = cast((args, kwargs), self._policy.param_dtype)
        run = super().__call__  # type: ignore[misc]
        found = self._whole_in(run, args, kwargs)
        return cast(found, self._policy.output_dtype)

    def unshard(self, async_op: bool = False) -> None:
        """Gather all rows of the module's own parameters, until reshard().

        async_op: NotImplementedError if True. All ranks call it.
        """
        if async_op:
            raise NotImplementedError(
                "unshard(): async_op=True; leave it out, the rows are there when it "
                "returns"
            )
        if not self._shown:
            self._shards.begin(keeps=True)
            self._shown = True

    def reshard(self) -> None:
        """Let go of other ranks' rows."""
        self._shown = False
        self._shards.hide()

    def _all(self, recurse: bool) -> list[FSDPModule]:
        module: Any = self
        return sharded_modules(module) if recurse else [self]

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward() reduces gradients; else it adds up those of all rows.

        requires_gradient_sync: whether. recurse: also in sharded modules inside.
        """
        for each in self._all(recurse):
            each._shards.reduces = requires_gradient_sync

    def set_reshard_after_forward(
        self, reshard_after_forward: bool, recurse: bool = True
    ) -> None:
        """Whether rows of other ranks are let go between the forward and the backward
        pass, and gathered again.

        reshard_after_forward: whether. recurse: also in sharded modules inside.
        """
        for each in self._all(recurse):
            each._reshards = reshard_after_forward


def sharded_modules(module: Module) -> list[FSDPModule]:
    """The module and those in it that are sharded."""
    return [each for each in module.modules() if isinstance(each, FSDPModule)]


def _check(module: Any, parameters: list[tuple[Parameter, Any]], mesh: Any) -> None:
    if isinstance(module, FSDPModule):
        raise ValueError(f"fully_shard(): {type(module).__name__} is sharded already")
    if not isinstance(module, Module) or type(module).forward is Module.forward:
        raise ValueError(
            f"fully_shard(): module is a {type(module).__name__}, which has no "
            "forward(); shard the modules in it"
        )
    if mesh.ndim > 2:
        raise ValueError(
            f"fully_shard(): mesh has {mesh.ndim} dimensions; give one, or two: of "
            "replicas, and of shards"
        )
    for p, owners in parameters:
        if not p.ndim:
            raise ValueError(
                f"fully_shard(): the parameter {owners[0][1]} has no dimension to "
                "divide; make it a 1-D tensor of one element"
            )


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    ignored_params: Any = None,
) -> Any:
    """Give each rank a share of the rows of a module's parameters; returns the module.

    module                 has equal parameters on all ranks, in memory or on a GPU
    mesh                   the ranks; of two dimensions: replicas, and shards; None: all
    reshard_after_forward  let other ranks' rows go after forward(), and gather them
                           again in backward(); None: unless no sharded module calls it
    mp_policy              the types of elements that it computes and sends in
    ignored_params         parameters that stay whole, on each rank

    Parameters in sharded modules inside are theirs: shard those first. The parameters
    become Tensors of this rank's rows: make the optimizer afterwards. They have
    full_tensor() and to_local(). ValueError for a parameter of no dimension and for a
    module that is sharded, or has no forward().

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> model = dist.fsdp.fully_shard(nn.Linear(2, 1))
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> model.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """
    parameters = own_parameters(module, ignored_params or ())
    if mesh is None:
        device = parameters[0][0].device.type if parameters else "cpu"
        mesh = init_device_mesh(device, (dist.get_world_size(),))
    _check(module, parameters, mesh)
    policy = mp_policy or MixedPrecisionPolicy()
    kind = type(module)
    # The class is made anew: methods of FSDPModule come before its own.
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {})
    module._shards = RowShards(
        parameters, mesh, policy.param_dtype, policy.reduce_dtype
    )
    module._policy, module._reshards = policy, reshard_after_forward
    module._shown = False
    module._shards.hide()
    module.register_state_dict_post_hook(_name_rows)
    return module


def _name_rows(module: Any, state: Any, prefix: str, metadata: Any) -> None:
    """Lets rows in a state_dict say which they are."""
    names = {id(each): name for name, each in module.named_modules()}
    for shard, owners in zip(module._shards.leaves, module._shards.owners, strict=True):
        for owner, name in owners:
            path = names.get(id(owner), "")
            key = f"{prefix}{path}{'.' if path else ''}{name}"
            if key in state and not isinstance(state[key], ShardedTensor):
                state[key] = ShardedTensor.of(state[key], shard._sharding)
