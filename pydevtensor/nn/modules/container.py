"""Modules that contain modules or parameters: Sequential, lists and dicts."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from pydevtensor import _C
from pydevtensor.nn.modules.module import Module, _indent
from pydevtensor.nn.parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

Tensor = _C.Tensor


def _position(index: Any, count: int, what: str) -> int:
    index = operator.index(index)
    if not -count <= index < count:
        raise IndexError(f"index {index} is out of range for {count} {what}")
    return index % count


class _ListOfModules(Module):
    """Base of Sequential and ModuleList: children numbered from 0."""

    def _at(self, index: Any) -> str:
        names = [*self._modules]
        return names[_position(index, len(names), "modules")]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part([*self._modules.items()][index])
        return self._modules[self._at(index)]

    def _part(self, named: list[tuple[str, Module]]) -> Any:
        """A container of these children."""
        return type(self)(module for _, module in named)

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
        """Append a module; returns the container.

        module  the module, else TypeError
        """
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Append modules; returns the container.

        modules  an iterable of them, else TypeError
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"extend() takes an iterable of modules, not {type(modules).__name__}"
            )
        for module in [*modules]:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Insert a module; returns the container.

        index   before the one of this number
        module  the module, else AssertionError
        """
        if not isinstance(module, Module):
            raise AssertionError(
                f"insert() takes a module, and got {type(module).__name__}"
            )
        modules = [*self]
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any) -> Module:
        """Remove a module and return it.

        key  its number, from the end if negative; IndexError for one that is not there
        """
        module = self[key]
        del self[key]
        return module


class Sequential(_ListOfModules):
    """Modules called in turn: Sequential(a, b), or an OrderedDict of modules.

    Supports indices and slices, append(), extend(), insert(), +, * and del.

    >>> net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    >>> net(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    >>> net[1]
    ReLU()
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self.extend(args)

    def _part(self, named: list[tuple[str, Module]]) -> Any:
        return type(self)(OrderedDict(named))

    def insert(self, index: int, module: Module) -> Sequential:
        """Insert a module; returns the container.

        index   before the one of this number, from -len to len, else IndexError
        module  the module, else AssertionError
        """
        if isinstance(module, Module) and not -len(self) <= index <= len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} modules")
        return super().insert(index, module)

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self).__iadd__(other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "a Sequential is added to a Sequential, not to "
                f"{type(other).__name__}; use append()"
            )
        return self.extend(other)

    def _times(self, count: Any) -> int:
        if not isinstance(count, int):
            raise TypeError(
                f"a Sequential is multiplied by an int, not by {type(count).__name__}"
            )
        if count <= 0:
            raise ValueError(f"a Sequential is multiplied by 1 or more, not by {count}")
        return count

    def __mul__(self, count: int) -> Sequential:
        return Sequential(*[*self] * self._times(count))

    def __rmul__(self, count: int) -> Sequential:
        return self * count

    def __imul__(self, count: int) -> Sequential:
        return self.extend([*self] * (self._times(count) - 1))

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_ListOfModules):
    """A list of modules, whose parameters are registered. It cannot be called.

    See also Sequential, which can.

    modules  modules, an iterable

    >>> layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
    >>> len([*layers.parameters()])
    4
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Insert a module.

        index   before the one of this number
        module  the module, else AssertionError
        """
        super().insert(index, module)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, modules: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *modules])

    def __repr__(self) -> str:
        # Equal neighbours are shown once, as in PyTorch.
        lines, first = [], 0
        for text, run in groupby(map(repr, self)):
            count = len([*run])
            last = first + count - 1
            one = f"({first}): {_indent(text)}"
            lines.append(
                one if count == 1 else f"({first}-{last}): {count} x {_indent(text)}"
            )
            first += count
        if not lines:
            return self._get_name() + "()"
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


class _Dict(Module):
    """Base of ModuleDict and ParameterDict, whose keys are in self._keys."""

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __getitem__(self, key: str) -> Any:
        raise NotImplementedError

    def __setitem__(self, key: str, value: Any) -> None:
        raise NotImplementedError

    def _need(self, key: str) -> None:
        if key not in self._keys:
            raise KeyError(
                f"there is no {key!r} in this {type(self).__name__}; it has "
                f"{[*self._keys]}"
            )

    def __delitem__(self, key: str) -> None:
        self._need(key)
        delattr(self, key)
        self._keys.pop(key, None)

    def clear(self) -> None:
        """Remove everything."""
        for key in [*self._keys]:
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove a value and return it.

        key  its name; KeyError, in a ParameterDict AttributeError, for one that is not
             there
        """
        value = self[key]
        del self[key]
        return value

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()


class ModuleDict(_Dict):
    """A dict of modules, whose parameters are registered. It cannot be called.

    See also Sequential, which can.

    modules  a dict of modules, or pairs of key and module

    >>> parts = nn.ModuleDict({'body': nn.Linear(3, 2), 'act': nn.ReLU()})
    >>> [*parts.state_dict()]
    ['body.weight', 'body.bias']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    @property
    def _keys(self) -> dict[str, Module]:
        return self._modules

    def __getitem__(self, key: str) -> Module:
        self._need(key)
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def items(self) -> Any:
        """Pairs of key and module."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules; those of the same keys are replaced.

        modules  a dict of modules, or pairs of key and module; TypeError or ValueError
                 for others
        """
        for name, module in _update_pairs("ModuleDict", modules, in_order=True):
            self[name] = module


def _update_pairs(
    name: str, values: Any, in_order: bool = False
) -> Iterator[tuple[Any, Any]]:
    """The pairs in the argument of update(); sorted for an unordered mapping."""
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{name}.update() takes a mapping or pairs of name and value, not "
            f"{type(values).__name__}"
        )
    if isinstance(values, (OrderedDict, ModuleDict, ParameterDict)):
        yield from [*values.items()]
    elif isinstance(values, Mapping):
        yield from values.items() if in_order else sorted(values.items())
    else:
        for i, pair in enumerate(values):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"{name}.update(): element {i} is {type(pair).__name__}; give "
                    "pairs of name and value"
                )
            pair = [*pair]
            if len(pair) != 2:
                raise ValueError(
                    f"{name}.update(): element {i} has {len(pair)} items; give pairs "
                    "of name and value"
                )
            yield pair[0], pair[1]


def _wrapped(value: Any) -> Any:
    """A Tensor as a Parameter, anything else unchanged."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


class _HolderOfParameters(Module):
    """Base of ParameterList and ParameterDict: repr(), and no calls."""

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """One line for each value."""
        lines = []
        for name, value in self._pairs():
            if isinstance(value, Tensor):
                size = "x".join(map(str, value.shape))
                where = "" if value.device.type == "cpu" else f" ({value.device})"
                kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
                type_name = self._type_name(value)
                text = f"{kind} containing: [{type_name} of size {size}{where}]"
            else:
                text = f"Object of type: {type(value).__name__}"
            lines.append(f"  ({name}): {text}")
        return "\n".join(lines)

    def _type_name(self, value: Any) -> Any:
        return value.dtype

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{type(self).__name__} should not be called: it only holds parameters"
        )


class ParameterList(_HolderOfParameters):
    """A list whose Tensors become parameters; other values are kept.

    values  Tensors and other values, an iterable

    >>> scales = nn.ParameterList([torch.ones(3), torch.zeros(2, 2)])
    >>> [name for name, _ in scales.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _at(self, index: Any) -> str:
        return str(_position(index, self._size, "values"))

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        return enumerate(self)

    def append(self, value: Any) -> ParameterList:
        """Append a value; returns the list.

        value  a Tensor, which becomes a Parameter, or anything else
        """
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Append values; returns the list.

        values  an iterable of them, else TypeError
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"extend() takes a list of parameters, not {type(values).__name__}"
            )
        for value in [*values]:
            self.append(value)
        return self

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(
                [getattr(self, str(i)) for i in range(*index.indices(self._size))]
            )
        return getattr(self, self._at(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._at(index), _wrapped(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(self._size)])

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)


class ParameterDict(_HolderOfParameters, _Dict):
    """A dict whose Tensors become parameters; other values are kept.

    Keys are strings. The keys of a plain dict are sorted; an OrderedDict, a
    ParameterDict and pairs keep their order.

    parameters  a dict, or pairs of key and value

    >>> scales = nn.ParameterDict({'left': torch.ones(3), 'right': torch.zeros(3)})
    >>> scales['left'].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _checked(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"a key of a ParameterDict is a string, not {key!r} "
                f"({type(key).__name__}); use str(key)"
            )
        return key

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        return self.items()

    def _type_name(self, value: Any) -> Any:
        return value.type()

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._checked(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self._checked(key), _wrapped(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        super().__delitem__(self._checked(key))

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def copy(self) -> ParameterDict:
        """A new ParameterDict with the same parameters."""
        return type(self)(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which is set to default if it is missing.

        key      a string
        default  the value; a Tensor becomes a Parameter
        """
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Remove the last pair and return it."""
        if not self._keys:
            raise KeyError("popitem(): the ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or default if it is missing.

        key      a string
        default  the result then
        """
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new ParameterDict with default for each key.

        keys     names, strings
        default  the value of all; of a Tensor each becomes a Parameter, and they share
                 its memory
        """
        return type(self)((key, default) for key in keys)

    def items(self) -> Any:
        """Pairs of key and value."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Any:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds values from a mapping, or from pairs of key and value.

        parameters  a dict (its keys are sorted), an OrderedDict, a ParameterDict, or
                    pairs; TypeError or ValueError for others
        """
        for key, value in _update_pairs("ParameterDict", parameters):
            self[key] = value

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self
