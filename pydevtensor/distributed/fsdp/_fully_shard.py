"""fully_shard(): gives each rank a share of a module's parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._tree import map_leaves
from pydevtensor.distributed.device_mesh import DeviceMesh, init_device_mesh
from pydevtensor.distributed.fsdp._shards import RowShards, Unit, own_parameters
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parameter import Parameter

Tensor = _C.Tensor


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The types of elements that a sharded module computes and sends in.

    param_dtype          the type in which parameters are gathered and used; None: their
                         own
    reduce_dtype         the type in which gradients are sent; None: param_dtype
    output_dtype         the type that floating results of forward() are converted to;
                         None: they are not converted
    cast_forward_inputs  whether floating inputs are converted to param_dtype

    >>> torch.distributed.fsdp.MixedPrecisionPolicy(torch.bfloat16).param_dtype
    torch.bfloat16
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Keeps a sharded module's own rows on the device of its parameters.

    >>> torch.distributed.fsdp.OffloadPolicy()
    OffloadPolicy()
    """


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Keeps a sharded module's own rows, their gradients and the optimizer's states in
    the host's memory. Rows are copied to the GPU to be gathered.

    pin_memory  whether the rows are in pinned memory

    >>> torch.distributed.fsdp.CPUOffloadPolicy()
    CPUOffloadPolicy(pin_memory=True)
    """

    pin_memory: bool = True


class UnshardHandle:
    """A wait for parameters, which FSDPModule.unshard(async_op=True) returns.

    >>> torch.distributed.fsdp.UnshardHandle().wait()
    """

    def wait(self) -> None:
        """Set the gathered parameters in the module. The current stream waits for
        them."""


class _Unsharding(UnshardHandle):
    def __init__(self, module: FSDPModule) -> None:
        self._module: FSDPModule | None = module

    def wait(self) -> None:
        module, self._module = self._module, None
        if module is not None:
            module._shards.begin(keeps=True, retains=True)


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
    _shards: RowShards

    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError(
            "FSDP does not support deepcopy: its ranks have groups; copy the module "
            "before fully_shard(), or make another and load its state_dict()"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module with all rows of its parameters."""
        return self._run(super().__call__, args, kwargs)  # type: ignore[misc]

    def _run(self, method: Any, args: Any, kwargs: Any) -> Any:
        if self._policy.cast_forward_inputs:
            args, kwargs = cast((args, kwargs), self._policy.param_dtype)
        found = self._whole_in(method, args, kwargs)
        return cast(found, self._policy.output_dtype)

    @property
    def _retains(self) -> bool:  # type: ignore[override]
        return self._reshards is False

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather all rows of the module's own parameters. The module has them until the
        end of its next forward(), or reshard(). All ranks have to call it.

        async_op: return a handle at once, to wait for; forward() waits by itself.
        """
        self._shards.fetch(is_async=async_op)
        handle = _Unsharding(self)
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Free other ranks' rows."""
        self._shards.hide()
        self._shards.drop()

    def _all(self, recurse: bool) -> list[RowShards]:
        module: Any = self
        found = sharded_modules(module) if recurse else [self]
        return [each._shards for each in found]

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward() reduces gradients; else it adds up those of all rows.

        requires_gradient_sync: whether. recurse: also in sharded modules inside.
        """
        for each in self._all(recurse):
            each.reduces = each.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(
        self, requires_all_reduce: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward() reduces gradients over the ranks that have the same rows;
        else it adds up those of the others, and rows have no gradient yet.

        requires_all_reduce: whether. recurse: also in sharded modules inside.
        """
        for each in self._all(recurse):
            each.all_reduces = requires_all_reduce

    def set_reshard_after_forward(
        self, reshard_after_forward: bool, recurse: bool = True
    ) -> None:
        """Whether rows of other ranks are freed between the forward and the backward
        pass, and gathered again. Without a backward pass, rows that were not freed are
        used in the next forward pass.

        reshard_after_forward: whether. recurse: also in sharded modules inside.
        ValueError unless it is a bool.
        """
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(
                f"reshard_after_forward is {reshard_after_forward!r} "
                f"({type(reshard_after_forward).__name__}); give True or False"
            )
        module: Any = self
        for each in sharded_modules(module) if recurse else [self]:
            each._reshards = reshard_after_forward

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Whether rows of other ranks are freed after the backward pass; else they are
        used in the next forward pass, unless an optimizer has changed rows meanwhile.

        reshard_after_backward: whether. recurse: also in sharded modules inside.
        """
        for each in self._all(recurse):
            each.frees = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Gather the parameters of other modules while this one's forward() runs.

        modules: those that are called next, in this order. They replace the one that
        the last pass called next. ValueError for a module that is not sharded.
        """
        self._shards.ahead.next = _shards_of(modules)

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Gather the parameters of other modules while this one's backward pass runs.

        modules: those needed next, in this order. They replace the one whose forward()
        ended before this one's. ValueError for a module that is not sharded.
        """
        self._shards.ahead.previous = _shards_of(modules)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide the sum of all ranks' gradients by a number, instead of by the ranks.

        factor: the number.
        """
        self._shards.factor = factor

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether the parameters are gathered ahead of the backward pass; else where an
        operation needs them.

        unshard_in_backward: whether.
        """
        self._shards.recalls = unshard_in_backward

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Changes nothing: each backward pass ends with its gradients reduced.

        is_last_backward: whether no other follows before the optimizer's step.
        """


def _shards_of(modules: Any) -> list[Any]:
    for each in modules:
        if not isinstance(each, FSDPModule):
            raise ValueError(
                f"a {type(each).__name__} is given, which is not sharded; give modules "
                "that fully_shard() was called with"
            )
    return [each._shards for each in modules]


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let another method of a sharded module have its parameters whole, as forward()
    has.

    module: a module; one that is not sharded stays as it is. method_name: the method's.
    ValueError if there is none of that name.

    >>> dist = torch.distributed
    >>> dist.fsdp.register_fsdp_forward_method(nn.Linear(2, 1), 'extra_repr')
    """
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(
            f"{type(module).__name__} has no method {method_name}; give one that it has"
        )
    method = getattr(module, method_name)

    @wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        return module._run(method, args, kwargs)

    setattr(module, method_name, run)


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
    offload_policy: OffloadPolicy | None = None,
    ignored_params: Any = None,
) -> Any:
    """Give each rank a share of the rows of a module's parameters; returns the module.

    module                 has equal parameters on all ranks, in memory or on a GPU
    mesh                   the ranks; of two dimensions: replicas, and shards; None: all
    reshard_after_forward  free other ranks' rows after forward(), and gather them again
                           in backward(); None: unless no sharded module calls it
    mp_policy              the types of elements that it computes and sends in
    offload_policy         CPUOffloadPolicy(): this rank's rows are in the host's memory
    ignored_params         parameters that stay whole, on each rank

    Shard modules inside of it first: their parameters stay theirs. The parameters
    become DTensors: make the optimizer afterwards. ValueError for a parameter without
    dimensions and for a module that is sharded, or has no forward().

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> model = dist.fsdp.fully_shard(nn.Linear(2, 1))
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> model.weight.grad.full_tensor()
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """
    parameters = own_parameters(module, ignored_params or ())
    device = parameters[0][0].device if parameters else _C.device("cpu")
    if mesh is None:
        where = device.type
        if where == "meta":  # until to_empty()
            where = "cuda" if _C._device_count("cuda") else "cpu"
        mesh = init_device_mesh(where, (dist.get_world_size(),))
    _check(module, parameters, mesh)
    home, pins = device, False
    if isinstance(offload_policy, CPUOffloadPolicy):
        home = _C.device("cpu")
        if mesh.device_type == "cuda" and device.type == "cpu":
            device = _C.device("cuda", _C._device_index(None))
        pins = offload_policy.pin_memory and device.type == "cuda"
    policy = mp_policy or MixedPrecisionPolicy()
    kind = type(module)
    # The class is made anew: methods of FSDPModule come before its own.
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {})
    module._shards = RowShards(
        parameters,
        mesh,
        policy.param_dtype,
        policy.reduce_dtype,
        device,
        home,
        pins,
    )
    module._policy, module._reshards = policy, reshard_after_forward
    module._shown = False
    module._shards.hide()
    module.register_state_dict_pre_hook(_have_rows)
    module.register_load_state_dict_pre_hook(_have_rows)
    return module


def _have_rows(module: Any, *unused: Any) -> None:
    """States are of rows, also where the module has whole parameters now."""
    module.reshard()
