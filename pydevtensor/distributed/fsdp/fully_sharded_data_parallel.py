"""FullyShardedDataParallel: divides the flat parameters of modules among the ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._names import publish as _publish
from pydevtensor._signatures import like
from pydevtensor._tree import map_leaves
from pydevtensor.distributed.device_mesh import DeviceMesh, init_device_mesh
from pydevtensor.distributed.fsdp._flat_shards import FlatParameter, FlatShards
from pydevtensor.distributed.fsdp._fully_shard import cast
from pydevtensor.distributed.fsdp._optim_states import clean, collect, given, spread
from pydevtensor.distributed.fsdp._shards import (
    Unit,
    is_outermost,
    own_modules,
    own_parameters,
)
from pydevtensor.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from pydevtensor.distributed.fsdp.wrap import Wrapping
from pydevtensor.distributed.tensor._dtensor import rows_as
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parallel.distributed import give
from pydevtensor.nn.parameter import Parameter
from pydevtensor.nn.utils import clip_grad_norm_
from pydevtensor.optim.optimizer import Optimizer

__all__ = ["FlatParameter", "FullyShardedDataParallel"]

Tensor = _C.Tensor
_WRAPPED = "_fsdp_wrapped_module"
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_KEEP = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
_AHEAD: dict[BackwardPrefetch | None, Any] = {
    BackwardPrefetch.BACKWARD_PRE: "before",
    BackwardPrefetch.BACKWARD_POST: "after",
    None: "never",
}
_CONFIGS: dict[StateDictType, tuple[Any, Any]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (
        ShardedStateDictConfig,
        ShardedOptimStateDictConfig,
    ),
}


def _left_out(skipped: list[Any]) -> tuple[set[Module], set[Tensor]]:
    """The modules and the parameters that ignored_modules and ignored_states name."""
    given = [each for each in skipped if isinstance(each, Module)]
    modules = {m for each in given for m in each.modules()}
    parameters: set[Tensor] = {p for m in modules for p in m.parameters()}
    return modules, parameters | {p for p in skipped if isinstance(p, Tensor)}


def _device(device_id: Any) -> _C.device:
    return _C.device(f"cuda:{device_id}" if isinstance(device_id, int) else device_id)


def _paths(module: Module, owners: Any) -> list[list[str]]:
    """The paths below the module of each parameter, of which tied ones have several."""
    paths: dict[Any, list[str]] = {}
    for path, each in module.named_modules(remove_duplicate=False):
        paths.setdefault(each, []).append(f"{path}." if path else "")
    return [
        [path + name for owner, name in each for path in paths[owner]]
        for each in owners
    ]


def _mesh(strategy: Any, group: Any, given: DeviceMesh | None) -> DeviceMesh:
    """The ranks. TypeError and ValueError for what does not fit."""
    if not isinstance(strategy, ShardingStrategy):
        raise TypeError(
            f"FullyShardedDataParallel: sharding_strategy is {strategy!r}; give one of "
            f"{', '.join(map(str, ShardingStrategy))}"
        )
    if group is not None and given is not None:
        raise ValueError(
            "FullyShardedDataParallel: give either process_group or device_mesh"
        )
    if isinstance(group, dist.ProcessGroup):
        given = DeviceMesh.from_group(group, "cpu")
    found = given or init_device_mesh("cpu", (dist.get_world_size(),))
    wanted = 2 if strategy in _HYBRID else 1
    if isinstance(group, tuple) or found.ndim != wanted:
        shape = "(copies, shards)" if wanted == 2 else "(ranks,)"
        raise ValueError(
            f"FullyShardedDataParallel: {strategy} needs a device_mesh of {wanted} "
            f"dimension{'s' * (wanted - 1)}; give device_mesh=init_device_mesh('cuda', "
            f"{shape})"
        )
    return found


class FullyShardedDataParallel(Unit, Module):
    """Trains a module on all ranks at once, each with a part of its parameters.

    module             has equal parameters on all ranks, of one type
    process_group      the ranks; None: all
    sharding_strategy  of ShardingStrategy: FULL_SHARD without it
    cpu_offload        CPUOffload(True) keeps this rank's part in the host's memory
    auto_wrap_policy   which modules inside become units: torch.distributed.fsdp.wrap
    backward_prefetch  when the unit that backward() needs next is gathered
    forward_prefetch   whether the unit that is called next is gathered ahead, from the
                       second pass on
    limit_all_gathers  changes nothing
    mixed_precision    a MixedPrecision
    ignored_modules    modules that stay whole, on each rank
    ignored_states     parameters, or modules, that stay whole
    param_init_fn      called with each module inside that is on the device meta; None:
                       their reset_parameters() is called
    device_id          the GPU that the module moves to
    sync_module_states  whether all ranks begin with rank 0's parameters and buffers
    use_orig_params    whether parameters() has this rank's part of each parameter; else
                       one FlatParameter for each unit
    device_mesh        the ranks, instead of process_group; of two dimensions for
                       HYBRID_SHARD

    The parameters of a unit, a module that is wrapped, are gathered for its forward
    pass and again for its backward pass, at whose end each rank has its part of the
    mean of all ranks' gradients. Make the optimizer afterwards. ValueError for
    parameters of several types, for tied ones in two units and, without
    use_orig_params, where some require a gradient and some do not; TypeError and
    ValueError for options that do not fit.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> model = dist.fsdp.FullyShardedDataParallel(nn.Linear(2, 1))
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> [p.grad for p in model.parameters()]
    [tensor([3., 3., 3.])]
    >>> dist.destroy_process_group()
    """

    _shards: FlatShards

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Callable[..., Any] | None = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        mesh = _mesh(strategy, process_group, device_mesh)
        self._precision = mixed_precision or MixedPrecision()
        if self._precision.keep_low_precision_grads:
            raise NotImplementedError(
                "FullyShardedDataParallel: keep_low_precision_grads=True; leave it "
                "out: gradients have the parameter's type"
            )
        skipped = [*(ignored_modules or ()), *(ignored_states or ())]
        modules, ignored = _left_out(skipped)
        if auto_wrap_policy is not None:
            options = {
                "sharding_strategy": strategy,
                "cpu_offload": cpu_offload,
                "mixed_precision": mixed_precision,
                "ignored_states": skipped,
                "backward_prefetch": backward_prefetch,
                "forward_prefetch": forward_prefetch,
                "param_init_fn": param_init_fn,
                "device_id": device_id,
                "sync_module_states": sync_module_states,
                "use_orig_params": use_orig_params,
                "device_mesh": mesh,
            }
            Wrapping(auto_wrap_policy, type(self), modules, ignored, options).one(
                module, True
            )
        self._modules[_WRAPPED] = module
        self._device = None if device_id is None else _device(device_id)
        self._prepare(param_init_fn, mesh.get_group(-1) if sync_module_states else None)
        parameters = own_parameters(self, ignored)
        offloads = cpu_offload is not None and cpu_offload.offload_params
        self._shards = FlatShards(
            parameters,
            mesh,
            strategy is not ShardingStrategy.NO_SHARD,
            self._precision.param_dtype,
            self._precision.reduce_dtype,
            use_orig_params,
            "cpu" if offloads else None,
        )
        self._shards.ahead.in_backward = _AHEAD[backward_prefetch]
        self._shards.ahead.in_forward = forward_prefetch
        keeps = strategy in _KEEP or strategy is ShardingStrategy.NO_SHARD
        self._reshards = False if keeps else None
        self._shown = self._complete = False
        self._settings = StateDictSettings()
        self._paths = _paths(module, self._shards.owners)
        if not use_orig_params and parameters:
            module._parameters["_flat_param"] = self._shards.leaves[0]
        self._shards.hide()
        self.register_state_dict_post_hook(type(self)._after_state_dict)
        self.register_load_state_dict_pre_hook(type(self)._before_loading)

    def _prepare(self, init: Callable[[Module], None] | None, group: Any) -> None:
        """Gives memory, values and types to parameters and buffers outside of inner
        units."""
        tensors = []
        for each in own_modules(self):
            own = [*each.parameters(recurse=False), *each.buffers(recurse=False)]
            if any(t.is_meta for t in own):
                each.to_empty(device=self._device or "cpu", recurse=False)
                (init or _reset)(each)
            elif self._device is not None:
                for names in each._parameters, each._buffers:
                    for name, t in names.items():
                        if t is not None and names is each._parameters:
                            t.data = t.detach().to(self._device)
                        elif t is not None:
                            names[name] = t.to(self._device)
            for name, t in each._buffers.items():
                dtype = self._precision.buffer_dtype
                if t is not None and dtype and t.is_floating_point():
                    each._buffers[name] = t.to(dtype)
            tensors += [*each.parameters(recurse=False), *each.buffers(recurse=False)]
        if group is not None:
            give(0, tensors, group)

    # --- the module

    @property
    def module(self) -> Module:
        """The module that is wrapped."""
        found: Module = self._modules[_WRAPPED]
        return found

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if _WRAPPED not in self.__dict__.get("_modules", ()):
                raise
            return getattr(self.module, name)

    def __getitem__(self, key: Any) -> Any:
        return self.module[key]  # type: ignore[index]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's output for this rank's inputs."""
        outermost, precision = is_outermost(), self._precision
        if outermost and self._device is not None:
            args, kwargs = map_leaves(
                lambda v: v.to(self._device) if isinstance(v, Tensor) else v,
                (args, kwargs),
            )
        casts = precision.cast_forward_inputs
        if casts or (outermost and precision.cast_root_forward_inputs):
            args, kwargs = cast((args, kwargs), precision.param_dtype)
        return self._whole_in(self.module, args, kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Add up this rank's own gradients, of all parameters, in the block; the next
        backward() after it sends their sum."""
        units = self.fsdp_modules(self)
        before = [unit._shards.reduces for unit in units]
        for unit in units:
            unit._shards.reduces = False
        try:
            yield
        finally:
            for unit, reduces in zip(units, before, strict=True):
                unit._shards.reduces = reduces

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale all gradients so that their norm over all ranks is at most max_norm.

        Returns the norm before. norm_type: degree of the norm, also inf. All ranks call
        it on the outermost unit.
        """
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    def apply(self, fn: Callable[[Module], None]) -> Any:
        """fn(module) for each module inside, with whole parameters, and itself."""
        with self.summon_full_params(self):
            return super().apply(fn)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters with their paths, which are the module's own in the block of
        summon_full_params().

        args, kwargs: those of Module.
        """
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield clean(name) if self._complete else name, parameter

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Any]:
        """The units of a module. root_only: those that are in no other."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        inside = {m for unit in found for m in unit.modules() if m is not unit}
        return [unit for unit in found if not root_only or unit not in inside]

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Let the units of a module have their parameters whole in the block.

        recurse         also units inside other units
        writeback       whether changes of this rank's part stay after the block
        rank0_only      whether only rank 0 has whole parameters
        offload_to_cpu  whether whole parameters are on the CPU
        with_grads      whether they have whole gradients

        All ranks have to call it. NotImplementedError for rank0_only with writeback.
        """
        if rank0_only and writeback:
            raise NotImplementedError(
                "summon_full_params(): writeback=True and rank0_only=True is not "
                "supported: other ranks would not have the changes; give "
                "writeback=False"
            )
        device = "cpu" if offload_to_cpu else None
        shows = not rank0_only or dist.get_rank() == 0
        with ExitStack() as stack:
            for unit in FullyShardedDataParallel.fsdp_modules(module, not recurse):
                if not unit._complete:
                    stack.enter_context(
                        unit._whole(device, shows, writeback, with_grads)
                    )
            yield

    @contextmanager
    def _whole(
        self, device: Any, shows: bool, writes: bool, with_grads: bool
    ) -> Iterator[None]:
        shards = self._shards
        leaves, home = shards.leaves, self.module._parameters
        needs = [i not in shards.frozen for i in range(len(shards.owners))]
        tensors = [
            Parameter(t.to(device), requires_grad=needed)
            for t, needed in zip(shards.whole(leaves), needs, strict=True)
        ]
        if with_grads and any(leaf.grad is not None for leaf in leaves):
            found = [_C.zeros_like(p) if p.grad is None else p.grad for p in leaves]
            for p, gradient in zip(tensors, shards.whole(found), strict=True):
                p.grad = gradient.to(device) if p.requires_grad else None
        if not shows:
            yield
            return
        flat = home.pop("_flat_param", None)
        shards.show(tensors)
        self._shown = self._complete = True
        try:
            yield
        finally:
            self._shown = self._complete = False
            if flat is not None:
                home["_flat_param"] = flat
            shards.hide()
            if writes:
                for leaf, part in zip(leaves, shards.parts(tensors), strict=True):
                    leaf.detach().copy_(part)

    # --- states

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Choose the tensors that state_dict() and optim_state_dict() of the units of a
        module return.

        module: the module. state_dict_type: a StateDictType. state_dict_config,
        optim_state_dict_config: their options. Returns the settings before. TypeError
        for options of another type.
        """
        before = FullyShardedDataParallel.get_state_dict_type(module)
        kinds = _CONFIGS[state_dict_type]
        configs: list[Any] = [
            state_dict_config or kinds[0](),
            optim_state_dict_config or kinds[1](),
        ]
        for config, kind in zip(configs, kinds, strict=True):
            if not isinstance(config, kind):
                raise TypeError(
                    f"{state_dict_type} goes with a {kind.__name__}, not with a "
                    f"{type(config).__name__}; give one"
                )
        for unit in FullyShardedDataParallel.fsdp_modules(module):
            unit._settings = StateDictSettings(state_dict_type, configs[0], configs[1])
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """The settings of the units of a module."""
        units = FullyShardedDataParallel.fsdp_modules(module)
        return units[0]._settings if units else StateDictSettings()

    @staticmethod
    @contextmanager
    @like(set_state_dict_type)
    def state_dict_type(*args: Any, **named: Any) -> Iterator[None]:
        """set_state_dict_type() for the block.

        module, state_dict_type, state_dict_config, optim_state_dict_config: its own.
        """
        choose = FullyShardedDataParallel.set_state_dict_type
        before = choose(*args, **named)
        try:
            yield
        finally:
            choose(
                args[0] if args else named["module"],
                before.state_dict_type,
                before.state_dict_config,
                before.optim_state_dict_config,
            )

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Parameters and buffers by the module's own paths, as state_dict_type() says.

        args, kwargs: those of Module. All ranks call it.
        """
        local = self._settings.state_dict_type is StateDictType.LOCAL_STATE_DICT
        if local or self._shown:
            return super().state_dict(*args, **kwargs)
        flat = self.module._parameters.pop("_flat_param", None)
        self._shards.show(self._shards.whole(self._shards.leaves))
        try:
            return super().state_dict(*args, **kwargs)
        finally:
            if flat is not None:
                self.module._parameters["_flat_param"] = flat
            self._shards.hide()

    def _after_state_dict(self, state: Any, prefix: str, metadata: Any) -> None:
        """Renames this unit's entries of a state_dict, and applies the settings."""
        settings, path = self._settings, f"{prefix}{_WRAPPED}."
        for key in [key for key in state if key.startswith(path)]:
            state[prefix + key[len(path) :]] = state.pop(key)
        if settings.state_dict_type is StateDictType.SHARDED_STATE_DICT:
            for i, paths in enumerate(self._paths):
                sharding = self._shards.rows(i)
                for name in paths if sharding.shape else ():
                    rows = state[prefix + name][sharding.rows()].clone()
                    state[prefix + name] = rows_as(rows, sharding)
        config: Any = settings.state_dict_config
        for key in [key for key in state if key.startswith(prefix)]:
            if getattr(config, "rank0_only", False) and dist.get_rank():
                del state[key]
            elif config.offload_to_cpu and isinstance(state[key], Tensor):
                state[key] = given(state[key], False, True)

    def _before_loading(
        self,
        state: Any,
        prefix: str,
        metadata: Any,
        strict: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
    ) -> None:
        """Renames this unit's entries of a state_dict, and takes this rank's part."""
        path, shards = f"{prefix}{_WRAPPED}.", self._shards
        for key in [key for key in state if key.startswith(prefix)]:
            state[path + key[len(prefix) :]] = state.pop(key)
        local = self._settings.state_dict_type is StateDictType.LOCAL_STATE_DICT
        if local or self._shown or not shards.leaves:
            return
        if metadata.get("assign_to_params_buffers"):
            errors.append("assign=True would replace this rank's part; leave it out")
            return
        keys = [[path + name for name in paths] for paths in self._paths]
        missing += [
            clean(name) for names in keys for name in names if name not in state
        ]
        came = [[state.pop(name) for name in names if name in state] for names in keys]
        if not all(came):
            own = shards.whole(shards.leaves)
            came = [values or [o] for values, o in zip(came, own, strict=True)]
        came = given(came, True, False)
        for names, values, shape in zip(keys, came, shards.shapes, strict=True):
            for value in values:
                if tuple(value.shape) != shape:
                    errors.append(
                        f"size mismatch for {clean(names[0])}: copying a param with "
                        f"shape {value.shape} from checkpoint, the shape in current "
                        f"model is {_C.Size(shape)}"
                    )
                    return
        parts = shards.parts([values[-1] for values in came])
        if shards.originals:
            for names, part in zip(keys, parts, strict=True):
                state.update(dict.fromkeys(names, part))
        else:
            state[f"{path}_flat_param"] = parts[0]

    @staticmethod
    def optim_state_dict(
        model: Module,
        optim: Optimizer,
        optim_state_dict: dict[str, Any] | None = None,
        group: Any = None,
    ) -> dict[str, Any]:
        """The states of an optimizer of a model by the names of its parameters: whole
        tensors, or rows, as state_dict_type() says.

        model, optim: the model and its optimizer. optim_state_dict, group: change
        nothing. All ranks have to call it. NotImplementedError for LOCAL_STATE_DICT.
        """
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        if settings.state_dict_type is StateDictType.LOCAL_STATE_DICT:
            raise NotImplementedError(
                "optim_state_dict(): the type is LOCAL_STATE_DICT; use the optimizer's "
                "own state_dict(), or another type"
            )
        config: Any = settings.optim_state_dict_config
        full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        found = given(collect(model, [optim]), full, config.offload_to_cpu)
        return {} if getattr(config, "rank0_only", False) and dist.get_rank() else found

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Optimizer,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """The argument of optim.load_state_dict(), from what optim_state_dict() gave
        on any number of ranks.

        model, optim: the model and its optimizer. optim_state_dict: that, on every
        rank. load_directly: also load it. is_named_optimizer, group: change nothing.
        All ranks have to call it.
        """
        found = spread(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(found)
        return found


def _reset(module: Any) -> None:
    if not hasattr(module, "reset_parameters"):
        raise ValueError(
            f"FullyShardedDataParallel: {type(module).__name__} is on the device meta "
            "and has no reset_parameters(); give param_init_fn"
        )
    module.reset_parameters()


_publish(__name__)
