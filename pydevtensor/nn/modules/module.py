"""Module, the base class: a tree of parameters, buffers and other modules."""

from __future__ import annotations

import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Self, overload

from pydevtensor import _C
from pydevtensor._absent import warn_of_compiling
from pydevtensor._module_paths import follow_with
from pydevtensor.autograd import RemovableHandle, _add_hook
from pydevtensor.nn.modules._hooks import (
    HookedCall,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
    registered,
)
from pydevtensor.nn.modules._loading import (
    IncompatibleKeys,
    Loading,
    own_keys,
    run_pre_hooks,
)
from pydevtensor.nn.modules._paths import PathFollower
from pydevtensor.nn.parameter import Buffer, Parameter, is_lazy

if TYPE_CHECKING:
    from pydevtensor.types import Device

_IncompatibleKeys = IncompatibleKeys

__all__ = [
    "Module",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Tensor = _C.Tensor
_EXTRA = "_extra_state"
_REGISTRIES = ("_parameters", "_buffers", "_modules")
_HOOKS_OF_CALLS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
)
_HOOKS = (
    *_HOOKS_OF_CALLS,
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
    "_options_of_hooks",
)


def _indent(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line for line in rest)])


def _checked(value: Any, kind: type[Any], what: str) -> Any:
    if value is not None and not isinstance(value, kind):
        raise TypeError(
            f"cannot assign '{type(value).__name__}' as {what}; give a "
            f"{kind.__name__} or None, or delete the {what} first"
        )
    return value


def _no_module(given: Any) -> str:
    """The error message for a value that is not a module."""
    advice = "give an nn.Module"
    if isinstance(given, type) and issubclass(given, Module):
        advice = f"this is the class: create one with {given.__name__}(...)"
    elif isinstance(given, (list, tuple)):
        advice = "give its modules one by one, as in Sequential(*modules)"
    elif callable(given):
        advice += ", such as nn.ReLU() for the function F.relu"
    kind = given.__name__ if isinstance(given, type) else type(given).__name__
    return f"{kind} is not a Module subclass; {advice}"


class Module:
    """Base of layers and networks.

    A subclass calls super().__init__(), assigns Parameters and other Modules to
    attributes, and defines forward(), which a call of the module runs.

    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = nn.Linear(3, 4)
    ...         self.out = nn.Linear(4, 1)
    ...
    ...     def forward(self, x):
    ...         return self.out(self.hidden(x).relu())
    >>> net = Net().to(torch.try_gpu())
    >>> [name for name, _ in net.named_parameters()]
    ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
    """

    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            given = [*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())]
            raise TypeError(
                f"{type(self).__name__}.__init__() takes no arguments, and got "
                f"{', '.join(given)}"
            )
        set_plain = object.__setattr__
        set_plain(self, "training", True)
        set_plain(self, "_has_hooks", False)
        set_plain(self, "_parameters", {})
        set_plain(self, "_buffers", {})
        set_plain(self, "_modules", {})
        set_plain(self, "_non_persistent_buffers_set", set())
        for name in _HOOKS:
            set_plain(self, name, OrderedDict())

    # --- calling

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs, to be defined by subclasses."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._has_hooks:
            return HookedCall(self, args, kwargs).run()
        return self.forward(*args, **kwargs)

    _plain_call = __call__

    def _hooked_call(self, *args: Any, **kwargs: Any) -> Any:
        """__call__ while all modules have hooks."""
        return HookedCall(self, args, kwargs).run()

    def _add_hook(
        self,
        hooks: OrderedDict[Any, Any],
        hook: Any,
        prepend: bool = False,
        options: tuple[bool, bool] = (False, False),
    ) -> RemovableHandle:
        """options: of a forward hook with_kwargs and always_call; of a hook of states
        whether it has the private form, and nothing."""
        self._has_hooks = True  # or had some: one test per call, not four
        handle = _add_hook(hooks, hook, prepend, self._options_of_hooks)
        if any(options):
            self._options_of_hooks[handle.id] = options
        return handle

    def register_forward_pre_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Call hook(module, args) before each call; its result replaces args.

        prepend      call it before the hooks that are there
        with_kwargs  call hook(module, args, kwargs), which returns both or None
        """
        options = (with_kwargs, False)
        return self._add_hook(self._forward_pre_hooks, hook, prepend, options)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call hook(module, args, output) after each call; its result replaces output.

        prepend      call it before the hooks that are there
        with_kwargs  call hook(module, args, kwargs, output)
        always_call  also if forward() raised, with None as output
        """
        options = (with_kwargs, always_call)
        return self._add_hook(self._forward_hooks, hook, prepend, options)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) in the backward pass of a call.

        Both are tuples; its result replaces grad_input.

        prepend  call it before the hooks that are there
        """
        return self._add_hook(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(module, grad_output) before the backward pass of a call.

        grad_output is a tuple, which its result replaces.

        prepend  call it before the hooks that are there
        """
        return self._add_hook(self._backward_pre_hooks, hook, prepend)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, prefix, keep_vars) before state_dict() of the module."""
        return self._add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any]
    ) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, local_metadata) after state_dict() of
        the module and its children; it may change state_dict and returns None."""
        return self._add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """register_state_dict_post_hook(), where a result replaces state_dict."""
        return self._add_hook(self._state_dict_hooks, hook, options=(True, False))

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any]
    ) -> RemovableHandle:
        """Call hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs) before the module is loaded; it may change
        state_dict, a copy, and the lists."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """register_load_state_dict_pre_hook(), where hook need not take the module."""
        options = (not with_module, False)
        return self._add_hook(self._load_state_dict_pre_hooks, hook, options=options)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any]
    ) -> RemovableHandle:
        """Call hook(module, incompatible_keys) after load_state_dict(); it may change
        the lists missing_keys and unexpected_keys, on which an error depends."""
        return self._add_hook(self._load_state_dict_post_hooks, hook)

    # --- attributes

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__
        for registry in _REGISTRIES:
            if registry in values and name in values[registry]:
                return values[registry][name]
        if name in (*_REGISTRIES, *_HOOKS, "training", "_has_hooks"):
            raise AttributeError(
                f"{type(self).__name__} has no '{name}' yet: its __init__() has to "
                "call super().__init__() first"
            )
        if name == "save" and "_scripted" in values:  # by torch.jit.script()
            return partial(values["_scripted"], self)
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        values = self.__dict__
        if isinstance(value, Parameter):
            self._forget(name, but="_parameters")
            self.register_parameter(name, value)
        elif name in values.get("_parameters", ()):
            self._parameters[name] = _checked(value, Parameter, f"parameter '{name}'")
        elif isinstance(value, Module):
            self._forget(name, but="_modules")
            self._modules[name] = registered("module", self, name, value)
        elif name in values.get("_modules", ()):
            _checked(value, Module, f"child module '{name}'")
            self._modules[name] = registered("module", self, name, value)
        elif name in values.get("_buffers", ()):
            _checked(value, Tensor, f"buffer '{name}'")
            self._buffers[name] = registered("buffer", self, name, value)
        elif isinstance(value, Buffer):
            self.__dict__.pop(name, None)
            self.register_buffer(name, value, value.persistent)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, but: str = "") -> None:
        self.__dict__.pop(name, None)
        for registry in _REGISTRIES:
            if registry != but:
                getattr(self, registry).pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for registry in _REGISTRIES:
            if name in self.__dict__.get(registry, ()):
                del self.__dict__[registry][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        registries = (self.__dict__[registry] for registry in _REGISTRIES)
        names = set(object.__dir__(self)).union(*registries)
        return sorted(name for name in names if not name[:1].isdigit())

    def __setstate__(self, state: dict[Any, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._has_hooks = any(self.__dict__[name] for name in _HOOKS)

    # --- registering

    def _new_name(self, kind: str, name: Any, registry: dict[Any, Any]) -> str:
        """The name under which a parameter, buffer or module is registered."""
        if not isinstance(name, str):
            raise TypeError(
                f"{kind} name should be a string. Got {type(name).__name__}"
            )
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", and {name!r} does')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        # As names in a source are: one text for all, found faster.
        name = sys.intern(str(name))
        if hasattr(self, name) and name not in registry:
            raise KeyError(f"attribute '{name}' already exists; choose another name")
        return name

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name.

        name   the attribute that it becomes, a string without dots; KeyError for one
               that exists
        param  a Parameter, or None; TypeError for others
        """
        name = self._new_name("parameter", name, self._parameters)
        _checked(param, Parameter, f"parameter '{name}'")
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"cannot assign non-leaf Tensor to parameter '{name}': it was "
                "computed; detach() it first"
            )
        if param is not None:
            param = registered("parameter", self, name, param)
        self._parameters[name] = param

    def register_buffer(
        self, name: str, tensor: Tensor | None, persistent: bool = True
    ) -> None:
        """Add a Tensor that is moved and saved with the module but is not a parameter.

        name        the attribute that it becomes
        tensor      the Tensor, or None; TypeError for others
        persistent  whether it is part of state_dict()
        """
        name = self._new_name("buffer", name, self._buffers)
        _checked(tensor, Tensor, f"buffer '{name}'")
        self._buffers[name] = registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module.

        name    the attribute that it becomes, a string without dots; KeyError for one
                that exists
        module  the module, or None; TypeError for others
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(_no_module(module))
        name = self._new_name("module", name, self._modules)
        self._modules[name] = registered("module", self, name, module)

    register_module = add_module

    # --- the tree

    def named_modules(
        self,
        memo: set[Module] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Module]]:
        """This module and all modules below it, with their paths.

        memo              modules to leave out
        prefix            put before each path
        remove_duplicate  yield each object once
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all modules below it.

        remove_duplicate  yield each object once
        """
        found = self.named_modules(remove_duplicate=remove_duplicate)
        return (module for _, module in found)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct children, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct children, each once."""
        return (module for _, module in self.named_children())

    def _named(
        self, registry: str, prefix: str, recurse: bool, once: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules: Any = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=once)
        for path, module in modules:
            for name, value in getattr(module, registry).items():
                if value is None or (once and id(value) in seen):
                    continue
                seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their paths.

        prefix            put before each path
        recurse           also those of the modules below
        remove_duplicate  yield each object once
        """
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and of those below it, each once.

        recurse  also those of the modules below
        """
        return (value for _, value in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their paths.

        prefix            put before each path
        recurse           also those of the modules below
        remove_duplicate  yield each object once
        """
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and of those below it, each once.

        recurse  also those of the modules below
        """
        return (value for _, value in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module at a path.

        target  the path, such as 'net.0'; AttributeError without one there
        """
        module: Any = self
        for name in target.split(".") if target else ():
            found = module._modules.get(name) if isinstance(module, Module) else None
            if found is None:
                raise AttributeError(
                    f"{type(module).__name__} has no module '{name}' ('{target}')"
                )
            module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a path such as 'net.0', in place of one that may be there.

        With strict there has to be one. AttributeError where the path leads nowhere;
        ValueError for an empty path and for a module that is not a Module.

        target  the path of the module that is replaced or added
        module  the module to put there
        strict  raise AttributeError where nothing is there yet

        >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> net.set_submodule('1', nn.Tanh())
        >>> net[1]
        Tanh()
        """
        if not target:
            raise ValueError("set_submodule(): the path is empty; name a submodule")
        if not isinstance(module, Module):
            raise ValueError(
                f"set_submodule(): the module is {type(module).__name__}; give an "
                "nn.Module"
            )
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        there = hasattr(parent, name)
        if strict and not there:
            raise AttributeError(
                f"{type(parent).__name__} has no attribute '{name}' ('{target}'); "
                "leave strict out to add it"
            )
        if there and not isinstance(getattr(parent, name), Module):
            raise AttributeError(
                f"'{name}' of {type(parent).__name__} is not a module ('{target}')"
            )
        setattr(parent, name, module)

    def _get(self, registry: str, kind: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path).__dict__[registry].get(name)
        if found is None:
            raise AttributeError(f"there is no {kind} at '{target}'")
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path.

        target  the path, such as 'net.0.weight'; AttributeError without one there
        """
        return self._get("_parameters", "parameter", target)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path.

        target  the path, such as 'net.1.running_mean'; AttributeError without one there
        """
        return self._get("_buffers", "buffer", target)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function on every module, children first; returns the module.

        fn  a function of a module, else TypeError
        """
        if not callable(fn):
            raise TypeError(
                f"apply(): fn is {fn!r:.60} ({type(fn).__name__}); give a function of "
                "a module"
            )
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # --- modes

    def train(self, mode: bool = True) -> Self:
        """Set training mode in the whole tree; returns the module.

        mode  True, or False for evaluation; ValueError for others
        """
        if not isinstance(mode, bool):
            raise ValueError(
                f"training mode is expected to be boolean, but got {mode!r:.60}; give "
                "True or False"
            )
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set evaluation mode: the same as train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set requires_grad of all parameters; returns the module.

        requires_grad  False freezes them
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros.

        set_to_none  None takes less memory and time than zeros
        """
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = parameter.grad.detach().zero_()

    # --- moving

    def _apply(self, change: Callable[[Any], Any], recurse: bool = True) -> Self:
        for module in self.modules() if recurse else [self]:
            for parameter in module._parameters.values():
                if parameter is None:
                    continue
                gradient = parameter.grad
                parameter.data = change(parameter.data)
                if gradient is not None:
                    parameter.grad = change(gradient)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = change(buffer)
        return self

    @overload
    def to(
        self,
        device: Device = None,
        dtype: _C.dtype | None = None,
        non_blocking: bool = False,
        *,
        memory_format: _C.memory_format | None = None,
    ) -> Self: ...

    @overload
    def to(
        self,
        dtype: _C.dtype,
        non_blocking: bool = False,
        *,
        memory_format: _C.memory_format | None = None,
    ) -> Self: ...

    @overload
    def to(
        self,
        tensor: Tensor,
        non_blocking: bool = False,
        *,
        memory_format: _C.memory_format | None = None,
    ) -> Self: ...

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move or convert parameters and buffers: to(device), to(dtype), to(tensor).

        dtype has to be a floating one and converts floating Tensors only; memory_format
        applies to those of 4 and 5 dimensions. Returns the module.
        """
        order = kwargs.pop("memory_format", None)
        probe = _C.empty(0).to(*args, **kwargs)
        asked = [*args, *kwargs.values()]
        typed = any(isinstance(a, (_C.dtype, Tensor)) for a in asked)
        placed = not all(isinstance(a, (_C.dtype, bool)) for a in asked)
        if typed and not probe.dtype.is_floating_point:
            raise TypeError(
                f"nn.Module.to only accepts floating point dtypes, but got desired "
                f"dtype={probe.dtype}"
            )

        def change(t: Any) -> Any:
            dtype = probe.dtype if typed and t.is_floating_point() else t.dtype
            device = probe.device if placed else t.device
            if order is not None and t.dim() in (4, 5):
                return t.to(device=device, dtype=dtype, memory_format=order)
            return t.to(device=device, dtype=dtype)

        return self._apply(change)

    def cuda(self, device: Device = None) -> Self:
        """Move parameters and buffers to a GPU; returns the module.

        device  which one, the current one by default
        """
        return self._apply(lambda t: t.cuda(device))

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU; returns the module."""
        return self._apply(lambda t: t.cpu())

    def share_memory(self) -> Self:
        """Move parameters and buffers to memory that processes share.

        Returns the module. A process that is forked, or gets the module by
        multiprocessing, sees what others write. See also Tensor.share_memory_().
        """
        return self._apply(lambda t: t.share_memory_())

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers; returns the module.

        dst_type  a dtype, or a type of Tensors such as torch.HalfTensor
        """
        return self._apply(lambda t: t.type(dst_type))

    def _float_to(self, name: str) -> Self:
        dtype = getattr(_C, name)
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def to_empty(self, *, device: Device, recurse: bool = True) -> Self:
        """Give parameters and buffers new, uninitialized memory on a device.

        device   the device, as in torch.empty()
        recurse  also those of the modules below
        """
        return self._apply(lambda t: _C.empty_like(t, device=device), recurse)

    def half(self) -> Self:
        """Convert floating parameters and buffers to float16."""
        return self._float_to("float16")

    def bfloat16(self) -> Self:
        """Convert floating parameters and buffers to bfloat16."""
        return self._float_to("bfloat16")

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32."""
        return self._float_to("float32")

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64."""
        return self._float_to("float64")

    # --- states

    _version = 1

    def get_extra_state(self) -> Any:
        """Extra state of a subclass that also defines set_extra_state()."""
        raise RuntimeError(
            f"{self._get_name()} has no extra state; define get_extra_state() and "
            "set_extra_state() in the class"
        )

    def set_extra_state(self, state: Any) -> None:
        """Restore what get_extra_state() returned; to be defined by subclasses.

        state  what get_extra_state() returned when the state_dict was made
        """
        raise RuntimeError(
            f"the state_dict has extra state for {self._get_name()}; define "
            "set_extra_state() in the class"
        )

    def state_dict(
        self,
        *args: Any,
        destination: Any = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Parameters and persistent buffers by path.

        The same options by position are deprecated, with a FutureWarning. See also
        load_state_dict() and torch.save().

        destination  a dict to fill and return; None: a new OrderedDict
        prefix       put before each path
        keep_vars    give the parameters themselves, else detached

        >>> list(nn.Linear(3, 2).state_dict())
        ['weight', 'bias']
        """
        if args:
            warnings.warn(
                "state_dict(): options by position are deprecated; write "
                "destination=..., prefix=..., keep_vars=...",
                FutureWarning,
                stacklevel=2,
            )
            given = (*args, *(destination, prefix, keep_vars)[len(args) :])
            destination, prefix, keep_vars = given
        state: Any = destination
        if state is None:
            state = OrderedDict()
            state._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(state, "_metadata"):
            state._metadata[prefix[:-1]] = metadata
        for hook in [*self._state_dict_pre_hooks.values()]:
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(state, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for key, hook in [*self._state_dict_hooks.items()]:
            changed = hook(self, state, prefix, metadata)
            replaces, _ = self._options_of_hooks.get(key, (False, False))
            if changed is not None and not replaces:
                raise RuntimeError(
                    "a hook of register_state_dict_post_hook() must return None; it "
                    "may change the state_dict that it gets"
                )
            state = state if changed is None else changed
        return state

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        """Add the state of this module alone. Subclasses may override it."""
        for name, value in self._state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _state(self) -> Iterator[tuple[str, Any]]:
        for name, value in [*self._parameters.items(), *self._buffers.items()]:
            if value is not None and name not in self._non_persistent_buffers_set:
                yield name, value

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values into parameters and buffers, by path.

        Raises RuntimeError, which lists all missing and unexpected keys and different
        shapes, before anything is changed.

        Hooks of register_load_state_dict_post_hook() run after the copies and may
        change the lists of keys, so with such hooks the keys are checked last.

        state_dict  what state_dict() returned, or torch.load() read; TypeError for no
                    dict
        strict      whether missing and unexpected keys are errors; else they are only
                    returned
        assign      let the given Tensors replace the parameters, in place of copies

        >>> net, other = nn.Linear(3, 2), nn.Linear(3, 2)
        >>> net.load_state_dict(other.state_dict())
        <All keys matched successfully>
        """
        if not hasattr(state_dict, "keys"):
            wanted = "state_dict() returned"
            if isinstance(state_dict, (str, bytes)):
                wanted = "torch.load() reads from that file"
            raise TypeError(
                "Expected state_dict to be dict-like, got "
                f"{type(state_dict).__name__}; give what {wanted}"
            )
        loading = Loading(state_dict, assign)
        modules = [*self.named_modules(remove_duplicate=False)]
        for path, module in modules:
            if type(module)._load_from_state_dict is Module._load_from_state_dict:
                loading.plan(module, path)
            else:
                loading.load_its_way(module, path)
        loading.find_unexpected()
        hooks = [
            (module, hook)
            for _, module in reversed(modules)  # children first
            for hook in module._load_state_dict_post_hooks.values()
        ]
        loading.check(type(self).__name__, strict and not hooks)
        for step in loading.steps:
            step()
        result = IncompatibleKeys(loading.missing, loading.unexpected)
        for module, hook in hooks:
            if hook(module, result) is not None:
                raise AssertionError(
                    "a hook of register_load_state_dict_post_hook() must return None; "
                    "it may change the lists that it gets"
                )
        loading.check(type(self).__name__, strict)
        return result

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[Any, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module alone, at once. Subclasses may override it."""
        rest = (strict, missing_keys, unexpected_keys, error_msgs)
        run_pre_hooks(self, (state_dict, prefix, local_metadata, *rest))
        assign = local_metadata.get("assign_to_params_buffers", False)
        known = set()
        for key, step in self._loading(state_dict, prefix, assign):
            known.add(key)
            if isinstance(step, str):
                error_msgs.append(step)
            elif step is not None:
                step()
            elif strict:
                missing_keys.append(key)
        if strict:
            found = own_keys(self, state_dict, prefix)
            unexpected_keys += [key for key in found if key not in known]

    def _loading(
        self, given: Any, prefix: str, assign: bool
    ) -> Iterator[tuple[str, Callable[[], None] | str | None]]:
        """By key of this module's state: what loads its value, a fault, or None."""
        for name, value in self._state():
            key = prefix + name
            new = given.get(key)
            if key not in given:
                yield key, None
            elif not isinstance(new, Tensor):
                yield key, f"{key} is {type(new).__name__}, and a Tensor is expected"
            elif not is_lazy(value) and new.shape != value.shape:
                yield (
                    key,
                    f"size mismatch for {key}: copying a param with shape {new.shape} "
                    f"from checkpoint, the shape in current model is {value.shape}",
                )
            else:
                yield key, partial(self._load_one, name, value, new, assign)
        if type(self).set_extra_state is not Module.set_extra_state:
            key = prefix + _EXTRA
            load = partial(self.set_extra_state, given.get(key))
            yield key, load if key in given else None

    def _load_one(self, name: str, value: Any, given: Any, assign: bool) -> None:
        if is_lazy(value):
            value.materialize(tuple(given.shape))
        if not assign:
            value.data.copy_(given)
        elif name in self._parameters:
            self._parameters[name] = Parameter(given, value.requires_grad)
        else:
            self._buffers[name] = given

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Changes nothing, and warns the first time: see torch.compile().

        >>> import warnings
        >>> with warnings.catch_warnings(action='ignore'):
        ...     nn.ReLU().compile()
        """
        warn_of_compiling("nn.Module.compile")

    def _graph_parameters(self) -> list[Parameter]:
        """The tensors that cuda.make_graphed_callables() captures beside arguments."""
        name = type(self).__name__
        if any(getattr(self, hooks) for hooks in _HOOKS_OF_CALLS):
            raise RuntimeError(
                f"make_graphed_callables(): the {name} has hooks, which no replay "
                "would call; add them to the results"
            )
        if any(buffer.requires_grad for buffer in self.buffers()):
            raise RuntimeError(
                f"make_graphed_callables(): a buffer of the {name} requires a "
                "gradient; only parameters may"
            )
        return [*self.parameters()]

    def _replay_with(self, replays: Callable[..., Any]) -> Self:
        """Let forward() replay in the mode of the capture; returns the module."""
        before, training = self.forward, self.training

        @wraps(before)
        def forward(*arguments: Any, **named: Any) -> Any:
            if self.training == training and not named:
                return replays(*arguments)
            return before(*arguments, **named)

        object.__setattr__(self, "forward", forward)
        return self

    # --- text

    def extra_repr(self) -> str:
        """The options to show in repr()."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [
            f"({name}): {_indent(repr(module))}"
            for name, module in self._modules.items()
        ]
        if not children and "\n" not in extra:
            return f"{self._get_name()}({extra})"
        lines = [*(extra.split("\n") if extra else ()), *children]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


follow_with(PathFollower)
