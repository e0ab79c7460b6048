"""The state of a tree of modules: a dict of its parameters and buffers by path."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pydevtensor._C import Tensor
from pydevtensor._kinds import is_distributed
from pydevtensor.nn.modules._loading import (
    IncompatibleKeys,
    Loading,
    own_keys,
    run_pre_hooks,
)
from pydevtensor.nn.modules._tree import Tree
from pydevtensor.nn.parameter import Parameter, is_lazy

_EXTRA = "_extra_state"


class States(Tree):
    """The methods of Module that make states and load them."""

    _fuses: bool
    _non_persistent_buffers_set: set[str]
    _options_of_hooks: OrderedDict[Any, Any]
    _state_dict_pre_hooks: OrderedDict[Any, Any]
    _state_dict_hooks: OrderedDict[Any, Any]

    _version = 1

    def get_extra_state(self) -> Any:
        """Extra state of a subclass that also defines set_extra_state()."""
        raise RuntimeError(
            f"{type(self).__name__} has no extra state; define get_extra_state() and "
            "set_extra_state() in the class"
        )

    def set_extra_state(self, state: Any) -> None:
        """Restore what get_extra_state() returned; to be defined by subclasses.

        state  what get_extra_state() returned when the state_dict was made
        """
        raise RuntimeError(
            f"the state_dict has extra state for {type(self).__name__}; define "
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
        if type(self).get_extra_state is not States.get_extra_state:
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
        if self._fuses and all(key.startswith("_orig_mod.") for key in state_dict):
            # PyTorch's compiled module saved it.
            state_dict = {
                key.removeprefix("_orig_mod."): value
                for key, value in state_dict.items()
            }
        loading = Loading(state_dict, assign)
        modules = [*self.named_modules(remove_duplicate=False)]
        for path, module in modules:
            if type(module)._load_from_state_dict is States._load_from_state_dict:
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
        if type(self).set_extra_state is not States.set_extra_state:
            key = prefix + _EXTRA
            load = partial(self.set_extra_state, given.get(key))
            yield key, load if key in given else None

    def _load_one(self, name: str, value: Any, given: Any, assign: bool) -> None:
        if is_lazy(value):
            value.materialize(tuple(given.shape))
        if not assign:
            if value.is_meta and not given.is_meta:
                warnings.warn(
                    f"load_state_dict(): {name} stays without data, on the device "
                    "meta; give assign=True, or call to_empty() first",
                    UserWarning,
                    2,
                )
            value.data.copy_(given)
        elif is_distributed(value):
            value.data = given  # fully_shard() has the DTensor, too
        elif name in self._parameters:
            self._parameters[name] = Parameter(given, value.requires_grad)
        else:
            self._buffers[name] = given
