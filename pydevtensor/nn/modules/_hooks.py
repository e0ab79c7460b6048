"""Hooks of a module and of all modules, and the calls that run them."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pydevtensor import _C
from pydevtensor.autograd import RemovableHandle, _add_hook
from pydevtensor.nn.modules._watch import Watch

__all__ = [
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


# The registries of a module's hooks.
HOOKS_OF_CALLS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
)
HOOKS = (
    *HOOKS_OF_CALLS,
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
    "_options_of_hooks",
)


class _Hook(NamedTuple):
    """A hook of all modules."""

    kind: str  # the registry of a module that its own hooks of the kind are in
    call: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


_of_all_modules: OrderedDict[int, _Hook] = OrderedDict()

_REGISTRATIONS: dict[str, OrderedDict[Any, Any]] = {
    kind: OrderedDict() for kind in ("parameter", "buffer", "module")
}


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """The value to register, which the hooks of all modules may replace."""
    for hook in [*_REGISTRATIONS[kind].values()]:
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


# --- hooks of a module


class Hooks(_C._ModuleBase):
    """The methods of Module that register hooks, and the call that runs them."""

    forward: Callable[..., Any]
    _has_hooks: bool
    _fuses = False  # compile() was called; then _has_hooks is true as well
    _options_of_hooks: OrderedDict[Any, Any]
    _forward_pre_hooks: OrderedDict[Any, Any]
    _forward_hooks: OrderedDict[Any, Any]
    _backward_pre_hooks: OrderedDict[Any, Any]
    _backward_hooks: OrderedDict[Any, Any]
    _state_dict_pre_hooks: OrderedDict[Any, Any]
    _state_dict_hooks: OrderedDict[Any, Any]
    _load_state_dict_pre_hooks: OrderedDict[Any, Any]
    _load_state_dict_post_hooks: OrderedDict[Any, Any]

    def _hooked_call(self, *args: Any, **kwargs: Any) -> Any:
        """Call forward() and the hooks: __call__() for a module that has hooks."""
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

        prepend      call it before the existing hooks
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

        prepend      call it before the existing hooks
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

        prepend  call it before the existing hooks
        """
        return self._add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) for the last operation of a call.

        Both are tuples of its gradients, also of weights; its result replaces
        grad_input. Programs from before register_full_backward_hook() use it.
        """

        def follow(module: Any, inputs: Any, output: Any) -> None:
            while not isinstance(output, _C.Tensor):
                tensors = output.values() if isinstance(output, dict) else output
                output = next(iter(tensors))
            if output.grad_fn is not None:
                output.grad_fn.register_hook(functools.partial(hook, module))

        return self._add_hook(self._forward_hooks, follow, False, (False, False))

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call hook(module, grad_output) before the backward pass of a call.

        grad_output is a tuple, which its result replaces.

        prepend  call it before the existing hooks
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


# --- a call


class HookedCall:
    """One call of a module: pre-hooks, forward(), hooks, those of all modules first."""

    def __init__(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]
    ) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self._ran: set[int] = set()

    def _hooks(self, kind: str) -> Iterator[tuple[int, Callable[..., Any], bool, bool]]:
        """The keys and hooks of a kind, with their options."""
        for key, hook in [*_of_all_modules.items()]:
            if hook.kind == kind:
                yield key, hook.call, hook.with_kwargs, hook.always_call
        options = self.module._options_of_hooks
        for key, call in [*getattr(self.module, kind).items()]:
            yield key, call, *options.get(key, (False, False))

    def run(self) -> Any:
        """The result, or forward()'s exception after the hooks that always run."""
        try:
            return self._run()
        except Exception:
            for key, hook, with_kwargs, always in self._hooks("_forward_hooks"):
                if always and key not in self._ran:
                    self._after_failure(hook, with_kwargs)
            raise

    def _run(self) -> Any:
        for _, hook, with_kwargs, _ in self._hooks("_forward_pre_hooks"):
            self._before(hook, with_kwargs)
        watch = self._watch()
        if watch is not None:
            self.args = watch.inputs(self.args)
        self.result = self._forward()
        for key, hook, with_kwargs, _ in self._hooks("_forward_hooks"):
            self._ran.add(key)
            self._after(hook, with_kwargs)
        if watch is not None:
            self.result = watch.outputs(self.result)
        return self.result

    def _forward(self) -> Any:
        if not self.module._fuses:
            return self.module.forward(*self.args, **self.kwargs)
        from pydevtensor import compiler

        with compiler._Compiled():
            return self.module.forward(*self.args, **self.kwargs)

    def _watch(self) -> Watch | None:
        if not _C.is_grad_enabled():
            return None
        pre = [hook for _, hook, _, _ in self._hooks("_backward_pre_hooks")]
        post = [hook for _, hook, _, _ in self._hooks("_backward_hooks")]
        return Watch(self.module, len(self.args), pre, post) if pre or post else None

    def _before(self, hook: Callable[..., Any], with_kwargs: bool) -> None:
        if not with_kwargs:
            changed = hook(self.module, self.args)
            if changed is not None:
                self.args = changed if isinstance(changed, tuple) else (changed,)
            return
        changed = hook(self.module, self.args, self.kwargs)
        if changed is None:
            return
        if not isinstance(changed, tuple) or len(changed) != 2:
            raise RuntimeError(
                f"{self.module._get_name()}: a forward pre-hook with_kwargs has to "
                f"return None or a tuple of new args and kwargs, not {changed!r}"
            )
        self.args, self.kwargs = changed

    def _after(self, hook: Callable[..., Any], with_kwargs: bool) -> None:
        given = (self.args, self.kwargs) if with_kwargs else (self.args,)
        changed = hook(self.module, *given, self.result)
        if changed is not None:
            self.result = changed

    def _after_failure(self, hook: Callable[..., Any], with_kwargs: bool) -> None:
        try:
            self._after(hook, with_kwargs)
        except Exception as error:
            warnings.warn(
                f"{self.module._get_name()}: forward() failed, and a hook with "
                f"always_call=True too: {type(error).__name__}: {error}",
                stacklevel=4,
            )


# --- hooks of all modules


Hooks._run_hooks_of(_of_all_modules)


def _add(hook: _Hook) -> RemovableHandle:
    return _add_hook(_of_all_modules, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, args) before each call of any module.

    Its result replaces args. It comes before the hooks of the module itself.

    >>> seen = []
    >>> with nn.modules.module.register_module_forward_pre_hook(
    ...     lambda module, args: seen.append(type(module).__name__)
    ... ):
    ...     y = nn.Sequential(nn.ReLU(), nn.Tanh())(torch.ones(1))
    >>> seen
    ['Sequential', 'ReLU', 'Tanh']
    """
    return _add(_Hook("_forward_pre_hooks", hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call hook(module, args, output) after each call of any module.

    Its result replaces output. It comes before the hooks of the module itself.
    with_kwargs: hook(module, args, kwargs, output). always_call: also if forward()
    raised, with None as output.

    >>> sizes = []
    >>> with nn.modules.module.register_module_forward_hook(
    ...     lambda module, args, output: sizes.append(output.shape)
    ... ):
    ...     y = nn.Linear(3, 2)(torch.ones(4, 3))
    >>> sizes
    [torch.Size([4, 2])]
    """
    return _add(_Hook("_forward_hooks", hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, grad_output) before the backward pass of any module's call.

    grad_output is a tuple, which its result replaces. It comes before the hooks of the
    module itself.

    >>> seen = []
    >>> with nn.modules.module.register_module_full_backward_pre_hook(
    ...     lambda module, grad_output: seen.append(grad_output)
    ... ):
    ...     nn.ReLU()(torch.ones(1, requires_grad=True)).backward()
    >>> seen
    [(tensor([1.]),)]
    """
    return _add(_Hook("_backward_pre_hooks", hook))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) in the backward pass of any module.

    Both are tuples; its result replaces grad_input. It comes before the hooks of the
    module itself.

    >>> seen = []
    >>> with nn.modules.module.register_module_full_backward_hook(
    ...     lambda module, grad_input, grad_output: seen.append(grad_input)
    ... ):
    ...     nn.Threshold(0, 0)(torch.ones(1, requires_grad=True)).backward()
    >>> seen
    [(tensor([1.]),)]
    """
    return _add(_Hook("_backward_hooks", hook))


def register_module_parameter_registration_hook(
    hook: Callable[..., Any],
) -> RemovableHandle:
    """Call hook(module, name, parameter) before any module registers a parameter.

    A result that is not None is registered instead.

    >>> names = []
    >>> with nn.modules.module.register_module_parameter_registration_hook(
    ...     lambda module, name, parameter: names.append(name)
    ... ):
    ...     layer = nn.Linear(2, 1)
    >>> names
    ['weight', 'bias']
    """
    return _add_hook(_REGISTRATIONS["parameter"], hook)


def register_module_buffer_registration_hook(
    hook: Callable[..., Any],
) -> RemovableHandle:
    """Call hook(module, name, buffer) before any module registers a buffer.

    The buffer may be None. A result that is not None is registered instead.

    >>> names = []
    >>> with nn.modules.module.register_module_buffer_registration_hook(
    ...     lambda module, name, buffer: names.append(name)
    ... ):
    ...     layer = nn.BatchNorm1d(2)
    >>> names
    ['running_mean', 'running_var', 'num_batches_tracked']
    """
    return _add_hook(_REGISTRATIONS["buffer"], hook)


def register_module_module_registration_hook(
    hook: Callable[..., Any],
) -> RemovableHandle:
    """Call hook(module, name, child) before any module registers a child.

    The child may be None. A result that is not None is registered instead.

    >>> names = []
    >>> with nn.modules.module.register_module_module_registration_hook(
    ...     lambda module, name, child: names.append(name)
    ... ):
    ...     net = nn.Sequential(nn.ReLU(), nn.Tanh())
    >>> names
    ['0', '1']
    """
    return _add_hook(_REGISTRATIONS["module"], hook)
