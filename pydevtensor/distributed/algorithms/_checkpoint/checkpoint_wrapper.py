"""Wrappers of a model's blocks that call torch.utils.checkpoint.checkpoint()."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.distributed.fsdp._shards import running_unit
from pydevtensor.distributed.fsdp.wrap import Wrapping, lambda_auto_wrap_policy
from pydevtensor.nn.modules.module import Module
from pydevtensor.utils.checkpoint import checkpoint

__all__ = ["CheckpointImpl", "CheckpointWrapper", "apply_activation_checkpointing"]
__all__ += ["checkpoint_wrapper"]

_INSIDE = "_checkpoint_wrapped_module"


class CheckpointImpl(Enum):
    """The two ways of checkpoint(): use_reentrant=True, or False."""

    REENTRANT = 1
    NO_REENTRANT = 2


def _shorten(module: Module, state: dict[str, Any], prefix: str, *more: Any) -> None:
    for name in [*state]:
        if name.startswith(f"{prefix}{_INSIDE}."):
            state[prefix + name[len(prefix) + len(_INSIDE) + 1 :]] = state.pop(name)


def _lengthen(module: Module, state: dict[str, Any], prefix: str, *more: Any) -> None:
    for name in [*state]:
        if name.startswith(prefix):
            state[f"{prefix}{_INSIDE}.{name[len(prefix) :]}"] = state.pop(name)


class CheckpointWrapper(Module):
    """A module whose forward pass runs again in the backward pass.

    Parameters and states have the names that they have in the module, whose attributes
    are the wrapper's, too.

    mod              the module
    checkpoint_impl  of CheckpointImpl
    checkpoint_fn    called in place of checkpoint(), with the module and its arguments
    more             options of checkpoint() or checkpoint_fn
    """

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **more: Any,
    ) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        if checkpoint_fn is None:
            more["use_reentrant"] = checkpoint_impl is CheckpointImpl.REENTRANT
        self.checkpoint_fn = partial(checkpoint_fn or checkpoint, **more)
        self.register_state_dict_post_hook(_shorten)
        self.register_load_state_dict_pre_hook(_lengthen)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        module, unit = self._checkpoint_wrapped_module, running_unit()
        if unit is None:
            return self.checkpoint_fn(module, *args, **kwargs)

        def run(*given: Any, **named: Any) -> Any:
            if running_unit() is unit:
                return module(*given, **named)
            # In the backward pass, where the unit's parameters are not whole.
            return unit._whole_in(module, given, named)

        return self.checkpoint_fn(run, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_INSIDE), name)

    def __getitem__(self, key: Any) -> Any:
        inside: Any = self._checkpoint_wrapped_module
        return inside[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """Names and parameters, by the names of the wrapped module."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(f"{_INSIDE}.", ""), parameter


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **more: Any,
) -> CheckpointWrapper:
    """The module as a CheckpointWrapper, of the same arguments.

    >>> wrapper = torch.distributed.algorithms._checkpoint.checkpoint_wrapper
    >>> block = wrapper.checkpoint_wrapper(nn.Linear(2, 1))
    >>> [name for name, _ in block.named_parameters()]
    ['weight', 'bias']
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **more)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda module: True,
    auto_wrap_policy: Callable[..., Any] | None = None,
) -> None:
    """Wrap modules in a model, in place, the innermost first.

    checkpoint_wrapper_fn: makes a wrapper of a module. check_fn: whether a module gets
    one. auto_wrap_policy: one of torch.distributed.fsdp.wrap instead.

    >>> wrapper = torch.distributed.algorithms._checkpoint.checkpoint_wrapper
    >>> net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    >>> wrapper.apply_activation_checkpointing(
    ...     net, check_fn=lambda module: isinstance(module, nn.Linear))
    >>> [type(module).__name__ for module in net]
    ['CheckpointWrapper', 'Tanh']
    """
    policy = auto_wrap_policy or partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    Wrapping(policy, checkpoint_wrapper_fn, set(), set(), {}).one(model, True)


_publish(__name__)
