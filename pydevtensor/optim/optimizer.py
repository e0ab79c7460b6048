"""Optimizer, the base class: parameter groups, the parameters' states, hooks.

An update rule is an op of csrc/ops/optim.def: one kernel that updates all parameters of
a group with the same device and dtype.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from pydevtensor import _C, _graphs
from pydevtensor.autograd import RemovableHandle, _add_hook, enable_grad

if TYPE_CHECKING:
    from pydevtensor.cuda.graphs import CUDAGraph

# The params argument: Tensors, pairs of a name and a Tensor, or groups.
ParamsT: TypeAlias = (
    Iterable[_C.Tensor] | Iterable[tuple[str, _C.Tensor]] | Iterable[dict[str, Any]]
)
_params_t = ParamsT
_Step = TypeVar("_Step", bound=Callable[..., Any])
_Hooks: TypeAlias = OrderedDict[object, Callable[..., Any]]
_before_all: _Hooks = OrderedDict()
_after_all: _Hooks = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a function before each step() of all optimizers.

    hook  as that of Optimizer.register_step_pre_hook()
    """
    return _add_hook(_before_all, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a function after each step() of all optimizers.

    hook  hook(optimizer, args, kwargs), where args starts with the optimizer

    >>> all = torch.optim.optimizer
    >>> handle = all.register_optimizer_step_post_hook(lambda *_: print('stepped'))
    >>> torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1).step()
    stepped
    >>> handle.remove()
    """
    return _add_hook(_after_all, hook)


def _names(text: str) -> list[str]:
    return text.strip("()").split(", ")


# By rule: the names of a parameter's states, of the numbers that the rule takes, and of
# those that it keeps for each parameter.
_RULES = {
    name: (_names(states)[:count], _names(numbers), _names(kept)[:kept_count])
    for name, count, states, numbers, kept_count, kept in _C._update_rules()
}


def _hooked(step: _Step) -> _Step:
    """step() with its hooks; sets _stepped for the schedules."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        # super().step(), and wrappers that derive a class and hold another optimizer
        if self._in_step or "_step_pre_hooks" not in self.__dict__:
            return step(self, *args, **kwargs)
        self._in_step = True
        try:
            if _before_all or self._step_pre_hooks:
                args, kwargs = _changed_by_hooks(self, args, kwargs)
            result = step(self, *args, **kwargs)
            if _after_all or self._step_post_hooks:
                for hook in [*self._step_post_hooks.values(), *_after_all.values()]:
                    hook(self, (self, *args), kwargs)
        finally:
            self._in_step = False
        self._stepped = True
        return result

    return cast(_Step, hooked)


def _changed_by_hooks(optimizer: Optimizer, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of step(), as the hooks before it have left them."""
    for hook in [*_before_all.values(), *optimizer._step_pre_hooks.values()]:
        changed = hook(optimizer, (optimizer, *args), kwargs)
        if changed is None:
            continue
        if not isinstance(changed, tuple) or len(changed) != 2:
            raise RuntimeError(
                "a step pre-hook must return None or a tuple of "
                f"(new_args, new_kwargs), but got {changed}"
            )
        (_, *args), kwargs = changed
    return args, kwargs


class _StateDictHooks:
    """The hooks around state_dict() and load_state_dict()."""

    def __init__(self) -> None:
        self.before_save: OrderedDict[object, Callable[..., Any]] = OrderedDict()
        self.after_save: OrderedDict[object, Callable[..., Any]] = OrderedDict()
        self.before_load: OrderedDict[object, Callable[..., Any]] = OrderedDict()
        self.after_load: OrderedDict[object, Callable[..., Any]] = OrderedDict()


def _passed_on(
    hooks: OrderedDict[Any, Any], optimizer: Optimizer, state: dict[Any, Any]
) -> dict[Any, Any]:
    """The state after each hook, which changes it or returns another one."""
    for hook in [*hooks.values()]:
        changed = hook(optimizer, state)
        state = state if changed is None else changed
    return state


class Optimizer:
    """Base of optimizers.

    A subclass defines step(). Raises ValueError for no parameters or a non-leaf one,
    TypeError for one that is not a Tensor.

    params    an iterable of Tensors, of pairs of a name and one, or of dicts with
              'params' and options of their own
    defaults  the options of groups that do not give them, a dict

    >>> net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    >>> slow = {'params': net[1].parameters(), 'lr': 0.01}
    >>> optimizer = torch.optim.SGD([{'params': net[0].parameters()}, slow], lr=0.1)
    >>> [group['lr'] for group in optimizer.param_groups]
    [0.1, 0.01]
    """

    _stepped = False  # whether step() was called, for the schedules
    _counted = True  # whether a parameter's state has the number of updates, "step"
    _keeps: tuple[str, ...] = ()  # other numbers in it, which stay on the host too
    _repeats = False  # whether a group contains a parameter twice
    _in_step = False
    _takes_rate = True  # whether the rule accepts lr as a Tensor on a GPU

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _hooked(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        if defaults.get("differentiable"):
            raise NotImplementedError(
                "differentiable=True: steps of an optimizer are not recorded; compute "
                "the update from the gradients that autograd.grad() returns"
            )
        if isinstance(params, _C.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of "
                "Tensors or dicts, but got a Tensor; give [tensor]"
            )
        if not hasattr(params, "__iter__"):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of "
                f"Tensors or dicts, but got {type(params).__name__}; give a module's "
                ".parameters()"
            )
        self.defaults = defaults
        self._make_hooks()
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[Any, Any]] = []
        groups: list[Any] = [*params]
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list; give the module's .parameters()"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        self._step_pre_hooks: OrderedDict[object, Callable[..., Any]] = OrderedDict()
        self._step_post_hooks: OrderedDict[object, Callable[..., Any]] = OrderedDict()
        self._state_dict_hooks = _StateDictHooks()

    def __getstate__(self) -> dict[str, Any]:
        # Most hooks are functions of this program, which another one does not have.
        return {k: v for k, v in self.__dict__.items() if not k.endswith("_hooks")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # load_state_dict() calls it too: subclasses may add what an old file lacks.
        self.__dict__.update(state)
        if "_state_dict_hooks" not in self.__dict__:
            self._make_hooks()

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])

    def add_param_group(self, param_group: dict[Any, Any]) -> None:
        """Add a group: a dict with "params" and options to replace the defaults.

        param_group  such a dict
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but "
                "the ordering of tensors in sets will change between runs; give a list"
            )
        parameters = [given] if isinstance(given, _C.Tensor) else [*given]
        names = [entry[0] for entry in parameters if isinstance(entry, tuple)]
        if names and len(names) != len(parameters):
            raise ValueError(
                "some params of the group have names and others do not; name all of "
                "them, as named_parameters() does, or none"
            )
        if names:
            parameters = [entry[1] for entry in parameters]
        known = {id(p) for group in self.param_groups for p in group["params"]}
        for parameter in parameters:
            if not isinstance(parameter, _C.Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{type(parameter).__name__}"
                )
            if not parameter.is_leaf:
                raise ValueError(
                    "can't optimize a non-leaf Tensor: it was computed, so its "
                    "gradient is not kept; give the leaf, or detach() it"
                )
            if id(parameter) in known:
                raise ValueError(
                    "some parameters appear in more than one parameter group"
                )
        if len({id(p) for p in parameters}) != len(parameters):
            self._repeats = True
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters, which "
                "are updated once per occurrence; give each parameter once",
                stacklevel=3,
            )
        group: dict[str, Any] = {"params": parameters}
        if names:
            group["param_names"] = names
        group.update({k: v for k, v in param_group.items() if k != "params"})
        for name, default in self.defaults.items():
            group.setdefault(name, default)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros.

        set_to_none  None takes less memory and time than zeros; step() then leaves a
                     parameter unchanged until it has a gradient again
        """
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                    continue
                gradient = parameter.grad
                if gradient is None:
                    continue
                if gradient.requires_grad:
                    gradient = parameter.grad = gradient.detach()
                gradient.zero_()

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function before each step().

        hook  hook(optimizer, args, kwargs), where args starts with the optimizer; it
              returns None or new (args, kwargs), else step() raises RuntimeError
        """
        return _add_hook(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function after each step().

        hook  hook(optimizer, args, kwargs), where args starts with the optimizer
        """
        return _add_hook(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer) before each state_dict().

        hook     the function
        prepend  call it before the existing hooks
        """
        return _add_hook(self._state_dict_hooks.before_save, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer, state_dict) at the end of each state_dict().

        The hook changes the state, or returns another one.

        prepend  call it before the existing hooks
        """
        return _add_hook(self._state_dict_hooks.after_save, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer, state_dict) before each load_state_dict().

        The hook gets a copy of the dict, not of what is in it. It changes that, or
        returns another state.

        prepend  call it before the existing hooks
        """
        return _add_hook(self._state_dict_hooks.before_load, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(optimizer) after each load_state_dict().

        prepend  call it before the existing hooks
        """
        return _add_hook(self._state_dict_hooks.after_load, hook, prepend)

    @_hooked
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        closure  computes the loss again, with gradients, and returns it, which step()
                 then returns too; TypeError for what cannot be called
        """
        loss = None
        if closure is not None and not callable(closure):
            raise TypeError(
                f"step(): closure is {closure!r:.60} ({type(closure).__name__}); give "
                "a function that computes the loss, or nothing"
            )
        if closure is not None:
            with enable_grad():
                loss = closure()
        before = _C._exchange_grad_enabled(False)
        try:
            for group in self.param_groups:
                for part in _without_repeats(group) if self._repeats else (group,):
                    self._update(part)
        finally:
            _C._exchange_grad_enabled(before)
        return loss

    def _rule(self, group: dict[Any, Any]) -> str:
        """The op of csrc/ops/optim.def that updates a group."""
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    def _numbers(self, group: dict[Any, Any]) -> dict[str, float]:
        """The rules' numbers that are not options of the group, by name."""
        return {"sign": -1.0 if group["maximize"] else 1.0}

    def _fresh(self, name: str, parameter: Any, group: dict[Any, Any]) -> Any:
        """The initial value of a parameter's state."""
        return _C.zeros_like(parameter)

    def _first(self, name: str, group: dict[Any, Any]) -> float:
        """The initial value of a number that the rule keeps for a parameter."""
        raise NotImplementedError(f"{type(self).__name__} keeps no {name}")

    def _update_rows(
        self, parameter: Any, gradient: Any, group: dict[Any, Any]
    ) -> None:
        """Updates a parameter whose gradient is a sparse tensor."""
        other = "SparseAdam" if "Adam" in type(self).__name__ else "SparseAdam or SGD"
        raise RuntimeError(
            f"{type(self).__name__} does not support sparse gradients; use {other}, or "
            "make the embedding with sparse=False"
        )

    def _not_captured(self, why: str) -> RuntimeError:
        name = type(self).__name__
        return RuntimeError(f"{name}.step(): a CUDA graph captures it, and {why}")

    def _update(self, group: dict[Any, Any]) -> None:
        graph = _graphs.current()
        if graph and not group.get("capturable", True):
            raise self._not_captured(
                "a group of parameters has capturable=False; create the optimizer with "
                "capturable=True"
            )
        rate, given = self._rate_there(group, graph), group
        if rate is not None:
            group = {**group, "lr": 1.0}
        rule, own = self._rule(group), self._numbers(group)
        names, number_names, kept_names = _RULES[rule]
        numbers = [own[n] if n in own else group[n] for n in number_names]
        parameters, gradients, steps = [], [], []
        states: list[list[Any]] = [[] for _ in names]
        numbers_kept: list[list[Any]] = [[] for _ in kept_names]
        counted = self._counted
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.is_sparse:
                self._update_rows(parameter, gradient, given)
                continue
            parameters.append(parameter)
            gradients.append(gradient)
            if not names:
                continue
            kept = self.state[parameter]
            if counted:
                if "step" not in kept:
                    kept["step"] = new_count()
                steps.append(kept["step"])
            else:
                steps.append(2 if kept.get(names[0]) is not None else 1)
            for name, values in zip(kept_names, numbers_kept, strict=True):
                if name not in kept:
                    kept[name] = new_count(self._first(name, group))
                values.append(kept[name])
            for name, values in zip(names, states, strict=True):
                value = kept.get(name)
                if value is None and graph:
                    raise self._not_captured(
                        f"a parameter has no {name} yet, which each replay would start "
                        "anew; call step() once before the capture"
                    )
                if value is None:
                    value = kept[name] = self._fresh(name, parameter, group)
                values.append(value)
        if not parameters:
            return
        tensors = sum(states, parameters + gradients)
        flat = [number for each in numbers_kept for number in each]
        if not graph:
            _C._update(rule, tensors, steps, numbers, kept=flat, rate=rate)
            return
        table = graph._table_of_steps(rule, len(parameters), steps, numbers, flat)
        _C._update(
            rule,
            tensors,
            steps,
            numbers,
            kept=flat,
            rate=rate,
            captured=True,
            own=table,
        )

    def _rate_there(
        self, group: dict[Any, Any], graph: CUDAGraph | None
    ) -> _C.Tensor | None:
        """The learning rate if it is a Tensor on the parameters' GPU, else None.

        A step reads it there: the host does not wait, and each replay of a graph reads
        its current value. For a Tensor on the CPU a graph has a copy on the GPU.
        """
        rate = group.get("lr")
        if not isinstance(rate, _C.Tensor) or not self._takes_rate:
            return None
        if rate.dtype not in (_C.float32, _C.float64):
            return None
        devices = {p.device for p in group["params"] if p.grad is not None}
        if rate.is_cuda:
            return rate if devices == {rate.device} else None
        on_gpu = all(device.type == "cuda" for device in devices)
        return graph._rate_there(rate) if graph and devices and on_gpu else None

    def state_dict(self) -> dict[str, Any]:
        """The states, by the parameters' positions, and the groups' options."""
        hooks = self._state_dict_hooks
        for hook in [*hooks.before_save.values()]:
            hook(self)
        return _passed_on(hooks.after_save, self, self._packed())

    def _packed(self) -> dict[str, Any]:
        numbers: dict[int, int] = {}
        groups: list[dict[str, Any]] = []
        for group in self.param_groups:
            first = sum(len(packed["params"]) for packed in groups)
            # A duplicate parameter has its later number, as in PyTorch.
            numbers.update({id(p): first + i for i, p in enumerate(group["params"])})
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(p)]: kept for p, kept in self.state.items() if kept}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what state_dict() returned, on the devices of the parameters.

        state_dict  what state_dict() of an optimizer of as many groups and parameters
                    returned, else ValueError
        """
        hooks = self._state_dict_hooks
        self._unpack(_passed_on(hooks.before_load, self, state_dict.copy()))
        for hook in [*hooks.after_load.values()]:
            hook(self)

    def _unpack(self, state_dict: dict[str, Any]) -> None:
        groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(self.param_groups):
            raise ValueError(
                f"loaded state dict has {len(groups)} parameter groups, and this "
                f"optimizer {len(self.param_groups)}"
            )
        parameters: dict[int, Any] = {}
        for mine, given in zip(self.param_groups, groups, strict=True):
            if len(mine["params"]) != len(given["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group of "
                    f"{len(given['params'])} parameters, and the one here has "
                    f"{len(mine['params'])}"
                )
            parameters.update(zip(given["params"], mine["params"], strict=True))
        fresh: defaultdict[Any, Any] = defaultdict(dict)
        for number, kept in state_dict["state"].items():
            parameter = parameters[number]
            fresh[parameter] = {
                name: self._moved(name, value, parameter)
                for name, value in kept.items()
            }
        for mine, given in zip(self.param_groups, groups, strict=True):
            given["params"] = mine["params"]
            for name, default in self.defaults.items():
                given.setdefault(name, default)
        self.__setstate__({"state": fresh, "param_groups": groups})

    def _moved(self, name: str, value: Any, parameter: Any) -> Any:
        if name == "step" or name in self._keeps:
            # Counted on the host.
            number = value if isinstance(value, _C.Tensor) else new_count(value)
            wide = name in self._keeps and parameter.dtype == _C.float64
            dtype = parameter.dtype if wide else number.dtype
            return number.detach().to(device="cpu", dtype=dtype, copy=True)
        if isinstance(value, dict):
            return {k: self._moved(k, v, parameter) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._moved("", v, parameter) for v in value)
        if not isinstance(value, _C.Tensor):
            return deepcopy(value)
        return value.detach().to(
            device=parameter.device, dtype=parameter.dtype, copy=True
        )


def _without_repeats(group: dict[Any, Any]) -> list[dict[Any, Any]]:
    """The group in parts without duplicates, since a kernel updates all at once."""
    parts: list[dict[int, Any]] = []
    for parameter in group["params"]:
        part = next((p for p in parts if id(parameter) not in p), None)
        if part is None:
            parts.append(part := {})
        part[id(parameter)] = parameter
    return [{**group, "params": [*part.values()]} for part in parts]


def filled_like(parameter: Any, value: Any) -> Any:
    """A state of one number, in both parts of complex elements."""
    if parameter.is_complex():
        value = complex(value, value)
    return _C.full_like(parameter, value)


def rows_of(gradient: Any) -> tuple[tuple[Any, ...], Any]:
    """Where a sparse gradient has entries, as a subscript, and the entries."""
    whole = gradient.coalesce()
    return tuple(whole.indices()), whole.values()


def new_count(start: float = 0.0) -> Any:
    """The number of updates so far: a Tensor, as in PyTorch."""
    wide = _C.get_default_dtype() == _C.float64
    return _C.tensor(
        float(start), dtype=_C.float64 if wide else _C.float32, device="cpu"
    )
