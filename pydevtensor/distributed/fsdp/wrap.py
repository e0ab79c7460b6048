"""Policies by which FullyShardedDataParallel makes modules of a model its units.

A policy is called as policy(module=..., recurse=..., nonwrapped_numel=...). With
recurse=True it says whether to look into the module; else whether the module becomes a
unit. nonwrapped_numel: the elements of its parameters that are in no unit yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.distributed.fsdp._shards import Unit
from pydevtensor.nn import ModuleDict, ModuleList, MultiheadAttention
from pydevtensor.nn.modules.module import Module

__all__ = ["CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap"]
__all__ += ["lambda_auto_wrap_policy", "size_based_auto_wrap_policy"]
__all__ += ["transformer_auto_wrap_policy", "wrap"]


class ModuleWrapPolicy:
    """Modules of some classes become units.

    module_classes  the classes

    >>> policy = torch.distributed.fsdp.wrap.ModuleWrapPolicy({nn.Linear})
    >>> policy(nn.Linear(1, 1), recurse=False)
    True
    """

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._classes = tuple(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> Any:
        """Whether to look into the module, or to make it a unit."""
        return recurse or isinstance(module, self._classes)

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({set(self._classes)})"


class CustomPolicy:
    """Modules for which a function says so become units.

    lambda_fn  called with a module; returns a bool, or a dict of options of
               FullyShardedDataParallel for this unit

    >>> wrap = torch.distributed.fsdp.wrap
    >>> policy = wrap.CustomPolicy(lambda module: isinstance(module, nn.Linear))
    >>> policy(nn.Linear(1, 1), recurse=False)
    True
    """

    def __init__(self, lambda_fn: Callable[[Module], Any]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> Any:
        """Whether to look into the module, or to make it a unit, and its options."""
        return recurse or self._lambda_fn(module)


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """True: every module becomes a unit.

    args, kwargs: those of a policy.

    >>> torch.distributed.fsdp.wrap.always_wrap_policy(nn.Linear(1, 1), recurse=False)
    True
    """
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[..., Any]
) -> Any:
    """Modules for which a function says so become units: for functools.partial().

    module, recurse, nonwrapped_numel: of a policy. lambda_fn: called with a module.

    >>> torch.distributed.fsdp.wrap.lambda_auto_wrap_policy(
    ...     nn.Linear(1, 1), False, 2, lambda m: isinstance(m, nn.Linear))
    True
    """
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: Iterable[type[Module]],
) -> bool:
    """Modules of some classes, a model's blocks, become units: for functools.partial().

    module, recurse, nonwrapped_numel: of a policy. transformer_layer_cls: the classes.

    >>> torch.distributed.fsdp.wrap.transformer_auto_wrap_policy(
    ...     nn.Linear(1, 1), False, 2, {nn.TransformerEncoderLayer})
    False
    """
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 100_000_000,
    force_leaf_modules: Iterable[type[Module]] | None = None,
    exclude_wrap_modules: Iterable[type[Module]] | None = None,
) -> bool:
    """Modules with many parameters become units: for functools.partial().

    module, recurse, nonwrapped_numel  of a policy
    min_num_params        the elements that make a unit
    force_leaf_modules    classes that are not looked into; None: MultiheadAttention
    exclude_wrap_modules  classes that do not become units; None: ModuleList and
                          ModuleDict

    >>> torch.distributed.fsdp.wrap.size_based_auto_wrap_policy(
    ...     nn.Linear(10, 10), False, 110, min_num_params=100)
    True
    """
    leaves = force_leaf_modules or (MultiheadAttention,)
    excluded = exclude_wrap_modules or (ModuleList, ModuleDict)
    others = tuple(leaves if recurse else excluded)
    return nonwrapped_numel >= min_num_params and not isinstance(module, others)


class Wrapping:
    """Makes units of modules for which a policy says so, the innermost first.

    make: called with a module and options. ignored_modules, ignored: modules and
    parameters that belong to none.
    """

    def __init__(
        self,
        policy: Callable[..., Any],
        make: Callable[..., Module],
        ignored_modules: set[Module],
        ignored: set[Any],
        options: dict[str, Any],
    ) -> None:
        self.policy, self.make, self.options = policy, make, options
        self.ignored_modules, self.ignored = ignored_modules, ignored
        self.made: dict[Module, Module] = {}  # by the module, once for all its names

    def _below(self, module: Module) -> int:
        count = 0
        for name, child in [*module._modules.items()]:
            if child is None or child in self.ignored_modules:
                continue
            if child not in self.made and not isinstance(child, Unit):
                self.made[child], inside = self.one(child)
                count += inside
            module._modules[name] = self.made.get(child, child)
        return count

    def one(self, module: Module, only_below: bool = False) -> tuple[Module, int]:
        """The module, maybe as a unit, and the elements that units now have."""
        left = sum(p.numel() for p in {*module.parameters()} - self.ignored)
        if not self.policy(module=module, recurse=True, nonwrapped_numel=left):
            return module, 0
        inside = self._below(module)
        found = not only_below and self.policy(
            module=module, recurse=False, nonwrapped_numel=left - inside
        )
        if not found:
            return module, inside
        more = found if isinstance(found, dict) else {}
        return self.make(module, **{**self.options, **more}), left


_wrapping: list[tuple[Any, dict[str, Any]]] = []  # enable_wrap()'s classes and options


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Let wrap() make units in the block.

    wrapper_cls: FullyShardedDataParallel. wrapper_kwargs: its options.

    >>> wrap = torch.distributed.fsdp.wrap
    >>> with wrap.enable_wrap(wrapper_cls=nn.Sequential):
    ...     wrap.wrap(nn.Tanh())
    Sequential(
      (0): Tanh()
    )
    """
    _wrapping.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _wrapping.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """The module as a unit in a block of enable_wrap(); else the module itself.

    module: the module. wrap_overrides: options in place of enable_wrap()'s.

    >>> torch.distributed.fsdp.wrap.wrap(nn.Tanh())
    Tanh()
    """
    if not _wrapping:
        return module
    kind, options = _wrapping[-1]
    made: Module = kind(module, **{**options, **wrap_overrides})
    return made


_publish(__name__)
