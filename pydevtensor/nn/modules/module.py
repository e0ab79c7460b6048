"""Module, the base class: a tree of parameters, buffers and other modules."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import partial, wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, overload

from pydevtensor import _C
from pydevtensor.module_paths import follow_with
from pydevtensor.nn.modules import _hooks
from pydevtensor.nn.modules._hooks import *  # noqa: F403
from pydevtensor.nn.modules._hooks import HOOKS, HOOKS_OF_CALLS, Hooks, registered
from pydevtensor.nn.modules._loading import IncompatibleKeys
from pydevtensor.nn.modules._paths import PathFollower
from pydevtensor.nn.modules._states import States
from pydevtensor.nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from pydevtensor.types import Device

_IncompatibleKeys = IncompatibleKeys

__all__ = ["Module"]
__all__ += _hooks.__all__

Tensor = _C.Tensor
_REGISTRIES = ("_parameters", "_buffers", "_modules")


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


def need_module(name: str, given: Any) -> None:
    """Raise TypeError, with the name of the function, for what is not a module."""
    if not isinstance(given, Module):
        raise TypeError(f"{name}(): {_no_module(given)}")


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The arguments of to(), or None: device, dtype, non_blocking, memory_format."""
    order = kwargs.pop("memory_format", None)
    probe = _C.empty(0).to(*args, **kwargs)
    asked = [*args, *kwargs.values()]
    typed = any(isinstance(a, (_C.dtype, _C.Tensor)) for a in asked)
    placed = not all(a is None or isinstance(a, (_C.dtype, bool)) for a in asked)
    return (
        probe.device if placed else None,
        probe.dtype if typed else None,
        any(a is True for a in asked),
        order,
    )


# PyTorch has it there, and modules of libraries that define to() call it.
_C._nn = SimpleNamespace(_parse_to=_parse_to)  # type: ignore[attr-defined]


class Module(Hooks, States):
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
        for name in HOOKS:
            set_plain(self, name, OrderedDict())

    # --- calling

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs, to be defined by subclasses."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    # --- attributes

    def _no_attribute(self, name: str) -> Any:
        """Raise AttributeError: called by __getattr__ for a name in no registry."""
        values = self.__dict__
        if name in (*_REGISTRIES, *HOOKS, "training", "_has_hooks"):
            raise AttributeError(
                f"{type(self).__name__} has no '{name}' yet: its __init__() has to "
                "call super().__init__() first"
            )
        if name == "save" and "_scripted" in values:  # by torch.jit.script()
            return partial(values["_scripted"], self)
        if name == "_orig_mod" and self._fuses:  # PyTorch's compiled modules have it
            return self
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

    def __getstate__(self) -> dict[Any, Any]:
        # object's refuses the field of the base in C.
        return self.__dict__

    def __setstate__(self, state: dict[Any, Any]) -> None:
        self.__dict__.update(state)
        for name in HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._has_hooks = self._fuses or any(self.__dict__[name] for name in HOOKS)

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

        dtype has to be a floating or a complex one, and converts Tensors of such types
        only; memory_format applies to those of 4 and 5 dimensions. Returns the module.
        """
        device, dtype, _, order = _parse_to(*args, **kwargs)

        def converts(kind: _C.dtype) -> bool:
            return kind.is_floating_point or kind.is_complex

        if dtype is not None and not converts(dtype):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got "
                f"desired dtype={dtype}"
            )

        def change(t: Any) -> Any:
            kind = dtype if dtype is not None and converts(t.dtype) else t.dtype
            place = t.device if device is None else device
            if order is not None and t.dim() in (4, 5):
                return t.to(device=place, dtype=kind, memory_format=order)
            return t.to(device=place, dtype=kind)

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

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let calls of the module run in torch.fused(): see torch.compile().

        The arguments are PyTorch's and have no effect.

        >>> net = nn.ReLU()
        >>> net.compile()
        >>> net(torch.tensor([-1.0, 1.0]))
        tensor([0., 1.])
        """
        self._fuses = self._has_hooks = True

    def _graph_parameters(self) -> list[Parameter]:
        """The tensors that cuda.make_graphed_callables() captures beside arguments."""
        name = type(self).__name__
        if any(getattr(self, hooks) for hooks in HOOKS_OF_CALLS):
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
