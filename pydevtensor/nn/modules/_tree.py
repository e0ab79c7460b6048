"""A tree of modules: the modules, parameters and buffers below one, and their paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from pydevtensor._C import Tensor

if TYPE_CHECKING:
    from pydevtensor.nn.modules.module import Module
    from pydevtensor.nn.parameter import Parameter


class Tree:
    """The methods of Module that walk the tree."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

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
        own: Any = self
        if own in memo:
            return
        if remove_duplicate:
            memo.add(own)
        yield prefix, own
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

        target  the path, such as 'net.0'; AttributeError if it has none
        """
        module: Any = self
        for name in target.split(".") if target else ():
            found = module._modules.get(name) if isinstance(module, Tree) else None
            if found is None:
                raise AttributeError(
                    f"{type(module).__name__} has no module '{name}' ('{target}')"
                )
            module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a path such as 'net.0', which may have one already.

        With strict it has to have one. AttributeError where the path leads nowhere;
        ValueError for an empty path and for a module that is not a Module.

        target  the path of the module that is replaced or added
        module  the module to put there
        strict  raise AttributeError if there is no module to replace

        >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> net.set_submodule('1', nn.Tanh())
        >>> net[1]
        Tanh()
        """
        if not target:
            raise ValueError("set_submodule(): the path is empty; name a submodule")
        if not isinstance(module, Tree):
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
        if there and not isinstance(getattr(parent, name), Tree):
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

        target  the path, such as 'net.0.weight'; AttributeError if it has none
        """
        return self._get("_parameters", "parameter", target)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path.

        target  the path, such as 'net.1.running_mean'; AttributeError if it has none
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
        own: Any = self
        fn(own)
        return self
