"""Modules that hold others."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pydevtensor.nn.module import Module, _indent
from pydevtensor.nn.parameter import Parameter


class _ListOfModules(Module):
    """What Sequential and ModuleList share: children numbered from 0."""

    def _at(self, index: Any) -> str:
        index = operator.index(index)
        count = len(self._modules)
        if not -count <= index < count:
            raise IndexError(f"index {index} is out of range for {count} modules")
        return next(islice(self._modules, index % count, None))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._at(index), module)

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def __delitem__(self, index: Any) -> None:
        names = [*self._modules]
        gone = names[index] if isinstance(index, slice) else [self._at(index)]
        self._renumber(m for n, m in [*self._modules.items()] if n not in gone)

    def append(self, module: Module) -> Any:
        """Adds a module at the end; gives the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds modules at the end; gives the container."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"extend() takes an iterable of modules, not {type(modules).__name__}"
            )
        for module in [*modules]:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Puts a module before the one at index."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        modules = [*self]
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any = -1) -> Module:
        """Takes a module out and gives it."""
        module = self._modules[self._at(key)]
        del self[key]
        return module


class Sequential(_ListOfModules):
    """Modules called one after the other: Sequential(a, b), or of an OrderedDict."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict([*self._modules.items()][index]))
        return self._modules[self._at(index)]

    def forward(self, input: Any) -> Any:
        """input through every module in turn."""
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_ListOfModules):
    """A list of modules, whose parameters count."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([*self._modules.values()][index])
        return self._modules[self._at(index)]

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __repr__(self) -> str:
        # Runs of modules that print alike are shown once, as PyTorch does.
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        if not runs:
            return self._get_name() + "()"
        lines = [
            f"({a}): {_indent(t)}"
            if a == b
            else f"({a}-{b}): {b - a + 1} x {_indent(t)}"
            for a, b, t in runs
        ]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules, whose parameters count."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes a module out and gives it."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Pairs of name and module."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules from a mapping, or from pairs of name and module."""
        pairs = (
            modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        )
        for name, module in pairs:
            self[name] = module


class ParameterList(Module):
    """A list of parameters; Tensors put in become Parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        for value in values or ():
            self.append(value)

    def _wrap(self, value: Any) -> Parameter:
        return value if isinstance(value, Parameter) else Parameter(value)

    def append(self, value: Any) -> ParameterList:
        """Adds a parameter at the end."""
        self.register_parameter(str(len(self)), self._wrap(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds parameters at the end."""
        for value in values:
            self.append(value)
        return self

    def __getitem__(self, index: Any) -> Any:
        values = [*self._parameters.values()]
        return type(self)(values[index]) if isinstance(index, slice) else values[index]

    def __setitem__(self, index: int, value: Any) -> None:
        name = [*self._parameters][index]
        self._parameters[name] = self._wrap(value)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def extra_repr(self) -> str:
        """One line for each parameter."""
        lines = []
        for name, value in self._parameters.items():
            size = "x".join(map(str, value.shape))
            where = "" if value.device.type == "cpu" else f" ({value.device})"
            lines.append(
                f"  ({name}): Parameter containing: "
                f"[{value.dtype} of size {size}{where}]"
            )
        return "\n".join(lines)
