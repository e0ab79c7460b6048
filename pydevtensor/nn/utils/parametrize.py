"""Parameters that are computed of others whenever they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.nn.modules.container import ModuleDict, ModuleList
from pydevtensor.nn.modules.module import Module, need_module
from pydevtensor.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

Tensor = _C.Tensor

# By module and name; None where no cached() block is active.
_cache: dict[tuple[int, str], Any] | None = None


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized Tensor once in a `with` block, in all threads.

    It saves time where a forward pass reads a Tensor more than once.

    >>> class Noisy(nn.Module):
    ...     def forward(self, weight):
    ...         return weight + torch.rand(2, 2)
    >>> parametrize = nn.utils.parametrize
    >>> layer = parametrize.register_parametrization(
    ...     nn.Linear(2, 2), 'weight', Noisy()
    ... )
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    global _cache
    outermost = _cache is None
    if outermost:
        _cache = {}
    try:
        yield
    finally:
        if outermost:
            _cache = None


def _register(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _set(tensor: Any, value: Any) -> None:
    """Let a Tensor have the memory of another one: optimizers know it by identity."""
    if value is not tensor:
        tensor.data = value.detach()


def _must_be_alike(what: str, value: Any, dtype: Any, shape: Any) -> None:
    """Raise ValueError unless value is a Tensor of that dtype and shape."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{what} is {type(value).__name__}; it has to be a Tensor")
    for name, found, wanted in (
        ("dtype", value.dtype, dtype),
        ("shape", value.shape, shape),
    ):
        if found != wanted:
            raise ValueError(
                f"{what} has the {name} {found}, and the parametrized tensor {wanted}; "
                "keep it, or give unsafe=True"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one Tensor, and the original Tensors.

    register_parametrization() makes it: module.parametrizations.weight. The Tensor that
    is trained is its attribute `original`, or `original0`, `original1`, ... where the
    right_inverse() of the first parametrization returned a sequence. Calling the list
    gives the parametrized Tensor.

    modules   the parametrizations, one or more, else ValueError
    original  the Tensor that is parametrized
    unsafe    leave out the check that dtype and shape stay, else ValueError

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> [name for name, _ in layer.parametrizations.weight.named_parameters()]
    ['original0', 'original1']
    """

    original: Any
    unsafe: bool

    def __init__(
        self, modules: Sequence[Module], original: Any, unsafe: bool = False
    ) -> None:
        if not len(modules):
            raise ValueError("ParametrizationList() takes one module or more, got none")
        super().__init__(modules)
        self.unsafe = unsafe
        dtype, shape = original.dtype, original.shape
        new = self._inverse_or_same(original)
        self.is_tensor: bool = isinstance(new, Tensor)
        self.ntensors: int = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for name in ("dtype", "device"):
                if getattr(new, name) != getattr(original, name):
                    raise ValueError(
                        f"right_inverse() changed the {name} from "
                        f"{getattr(original, name)} to {getattr(new, name)}; one "
                        "Tensor has to keep it, a sequence of them need not"
                    )
            _set(original, new)
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                self._register_part(i, part, original)
        if not unsafe:
            _must_be_alike("what the parametrization returns", self(), dtype, shape)

    def _inverse_or_same(self, value: Any) -> Any:
        """The originals for a value, from right_inverse() of those that have one."""
        with no_grad():
            for module in reversed([*self]):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        value = module.right_inverse(value)
        if not isinstance(value, (Tensor, Sequence)):
            raise ValueError(
                f"right_inverse() returned {type(value).__name__}; it has to return a "
                "Tensor, or a list or tuple of Tensors"
            )
        return value

    def _register_part(self, i: int, part: Any, original: Any) -> None:
        if not isinstance(part, Tensor):
            raise ValueError(
                f"right_inverse() returned a sequence whose element {i} is "
                f"{type(part).__name__}; each has to be a Tensor"
            )
        if isinstance(original, Parameter):
            part = Parameter(part, original.requires_grad)
        part.requires_grad_(original.requires_grad)
        _register(self, f"original{i}", part)

    def right_inverse(self, value: Any) -> None:
        """Set the original Tensors so that the parametrized one becomes value.

        RuntimeError where a parametrization has no right_inverse(); ValueError where
        that returns other dtypes, or another number of Tensors, than before.

        value  a Tensor of the parametrized one's shape
        """
        with no_grad():
            for module in reversed([*self]):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"the tensor is parametrized by {type(module).__name__}, which "
                        "does not implement right_inverse(); without it no value can "
                        "be assigned"
                    )
                value = module.right_inverse(value)
            for name, known, new in self._pairs(value):
                if not isinstance(new, Tensor):
                    raise ValueError(
                        f"right_inverse() returned {type(new).__name__} for {name}; it "
                        "has to return a Tensor"
                    )
                if known.dtype != new.dtype:
                    raise ValueError(
                        f"right_inverse() returned {new.dtype} for {name}, which is of "
                        f"{known.dtype}; convert it with .to({known.dtype})"
                    )
                _set(known, new)

    def _pairs(self, value: Any) -> list[tuple[str, Any, Any]]:
        """The name, the present Tensor and the new one of each original."""
        if self.is_tensor:
            return [("original", self.original, value)]
        if not isinstance(value, Sequence):
            raise ValueError(
                f"right_inverse() returned {type(value).__name__}; it has to return a "
                f"sequence of {self.ntensors} Tensors, as before"
            )
        if len(value) != self.ntensors:
            raise ValueError(
                f"right_inverse() returned {len(value)} Tensors; it has to return "
                f"{self.ntensors}, as before"
            )
        names = [f"original{i}" for i in range(self.ntensors)]
        return [(n, getattr(self, n), v) for n, v in zip(names, value, strict=True)]

    def forward(self) -> Any:
        first, *rest = self
        if self.is_tensor:
            value = first(self.original)
        else:
            value = first(
                *(getattr(self, f"original{i}") for i in range(self.ntensors))
            )
        for module in rest:
            value = module(value)
        return value


# --- the class of a module with such Tensors: a subclass, whose properties they are


def _parametrized_class(base: Any) -> Any:
    def __getstate__(self: Any) -> Any:
        raise RuntimeError(
            f"a parametrized {base.__name__} cannot be pickled; save its state_dict(), "
            "and load that into a module that is parametrized alike"
        )

    def __deepcopy__(self: Any, memo: dict[Any, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        # With a class of its own, from which properties can be removed.
        kind = _parametrized_class(base)
        for name, value in vars(type(self)).items():
            if isinstance(value, property):
                setattr(kind, name, value)
        copy = memo[id(self)] = kind.__new__(kind)
        copy.__dict__ = deepcopy(self.__dict__, memo)
        return copy

    members: dict[str, Any] = {"__getstate__": __getstate__}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = __deepcopy__
    return type(f"Parametrized{base.__name__}", (base,), members)


def _computed(name: str) -> property:
    def get(self: Any) -> Any:
        if _cache is None:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def set(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, set)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let a parameter or buffer be parametrization(original) whenever it is read.

    The original becomes module.parametrizations.<name>.original; gradients reach it,
    and an optimizer that holds the parameter still updates it. A second parametrization
    is applied to the result of the first. If parametrization has right_inverse(), the
    original is right_inverse(value) of the present value, and so it is when a value is
    assigned; right_inverse() of the first one may return a sequence of Tensors, which
    forward() then takes. The module's class becomes a subclass.

    A parametrization keeps dtype and shape, else ValueError; unsafe=True leaves that
    check out. ValueError where the module has no such parameter or buffer. Returns the
    module.

    module           the module that has the Tensor
    tensor_name      the name of a parameter or buffer
    parametrization  a module that computes the weight from the original
    unsafe           leave out the check of dtype and shape

    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    ...
    ...     def right_inverse(self, a):
    ...         return a.triu()
    >>> layer = nn.Linear(2, 2)
    >>> nn.utils.parametrize.register_parametrization(layer, 'weight', Symmetric())
    ParametrizedLinear(
      in_features=2, out_features=2, bias=True
      (parametrizations): ModuleDict(
        (weight): ParametrizationList(
          (0): Symmetric()
        )
      )
    )
    >>> bool((layer.weight == layer.weight.T).all())
    True
    """
    need_module("register_parametrization", module)
    need_module("register_parametrization", parametrization)
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        held: Any = module.parametrizations
        if not unsafe:
            _check_another(parametrization, getattr(module, tensor_name))
        held[tensor_name].append(parametrization)
        held[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _parametrized_class(type(module))
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _computed(tensor_name))
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(
            f"{module._get_name()} has no parameter or buffer '{tensor_name}'; it has "
            f"{[*module._parameters, *module._buffers]}"
        )
    return module


def _check_another(parametrization: Any, value: Any) -> None:
    """Raise ValueError unless both directions keep the dtype and shape of value."""
    made = parametrization(value)
    alike = value.dtype, value.shape
    _must_be_alike("what the parametrization returns", made, *alike)
    if hasattr(parametrization, "right_inverse"):
        try:
            back = parametrization.right_inverse(made)
        except NotImplementedError:
            return
        _must_be_alike("what right_inverse() returns", back, *alike)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has a parametrization, of the Tensor of that name or of any.

    module       any module
    tensor_name  the name of the Tensor; None: any

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> nn.utils.parametrize.is_parametrized(layer, 'bias')
    False
    """
    held = getattr(module, "parametrizations", None)
    if not isinstance(held, ModuleDict):
        return False
    return len(held) > 0 if tensor_name is None else tensor_name in held


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrized Tensor an ordinary parameter or buffer again.

    Returns the module.

    module              the module that has the Tensor
    tensor_name         its name; ValueError if it is not parametrized
    leave_parametrized  its value is the parametrized one, else the original; ValueError
                        for the original where there are several

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> nn.utils.parametrize.remove_parametrizations(layer, 'weight')
    Linear(in_features=3, out_features=2, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"{module._get_name()} has no parametrization of '{tensor_name}'"
        )
    held: Any = module.parametrizations
    parametrizations = held[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            f"'{tensor_name}' is parametrized by {parametrizations.ntensors} Tensors, "
            "so there is no original to leave; use leave_parametrized=True"
        )
    delattr(type(module), tensor_name)
    del held[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type[Any]:
    """The class that a module had before it was parametrized.

    module  any module

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Let to_module share the parametrizations and originals of from_module.

    Returns to_module.

    from_module  the module that is parametrized
    to_module    the module that becomes so; a Tensor that it does not have is added
    tensor_name  the name of the Tensor; None: all that are parametrized

    >>> first = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> transfer = nn.utils.parametrize.transfer_parametrizations_and_params
    >>> second = transfer(first, nn.Linear(3, 2))
    >>> bool((first.weight == second.weight).all())
    True
    """
    if not is_parametrized(from_module):
        return to_module
    held: Any = from_module.parametrizations
    for name in [*held] if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in held[name]:
            register_parametrization(to_module, name, parametrization)
        into: Any = to_module.parametrizations
        for original, value in [*held[name]._parameters.items()] + [
            *held[name]._buffers.items()
        ]:
            setattr(into[name], original, value)
    return to_module


_publish(__name__)
