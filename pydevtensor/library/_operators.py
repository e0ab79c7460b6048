"""Operators that programs define: a schema, kernels by device, a derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor.autograd import Function, no_grad
from pydevtensor.library._schema import Schema
from pydevtensor.utils import _pytree

Tensor = _C.Tensor

# By namespace, then by name without the overload.
namespaces: dict[str, dict[str, Packet]] = {}

# Dispatch keys, and where an operator keeps their kernels: by type of device, for all
# of them ("default"), or above the derivative.
KEYS = {
    "": "composite",
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "CompositeExplicitAutograd": "default",
    "CompositeExplicitAutogradNonFunctional": "default",
    "CompositeImplicitAutograd": "composite",
    "Autograd": "autograd",
    "AutogradCPU": "autograd",
    "AutogradCUDA": "autograd",
}


def _tensors(value: Any) -> list[Any]:
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


class Operator:
    """One overload of an operator: torch.ops.<namespace>.<name>.<overload>."""

    def __init__(self, namespace: str, name: str, overload: str, schema: str) -> None:
        self.namespace, self._overloadname = namespace, overload
        dotted = "" if overload == "default" else f".{overload}"
        self._name = f"{namespace}::{name}{dotted}"
        self._schema = Schema(self._name, schema)
        self.__name__ = f"{name}.{overload}"
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.strict: Any = None  # the CustomOpDef whose rules its results keep
        self._function: type[Function] | None = None

    def __repr__(self) -> str:
        name, _, overload = self.__name__.rpartition(".")
        return f"<OpOverload(op='{self.namespace}.{name}', overload='{overload}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def name(self) -> str:
        """The name with its namespace."""
        return self._name

    @property
    def overloadpacket(self) -> Packet:
        """The operator with all its overloads."""
        return namespaces[self.namespace][self.__name__.rpartition(".")[0]]

    def differentiate(self, backward: Any, setup: Any) -> None:
        """Let backward and setup_context be its derivative."""
        if self._schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} "
                f"with schema {self._schema}; let it return its result instead of "
                "writing it"
            )
        self._function = _formula(self, backward, setup)

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        values = self._schema.bind(args, named)
        tensors = _tensors(values)
        recorded = _C.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if recorded and "autograd" in self.kernels:
            return self._call(self.kernels["autograd"], values)
        if recorded and not self._schema.is_mutable:
            if self._function is not None:
                return _apply(self._function, values)
            if self.strict is not None:
                return _apply(_formula(self, None, None), values)
        return self.run(values)

    def run(self, values: list[Any]) -> Any:
        """The results of a device's kernel, or of the one for all."""
        tensors = _tensors(values)
        kinds = {t.device.type for t in tensors}
        kind = next((k for k in ("meta", "cuda") if k in kinds), "cpu")
        found = self.kernels.get(kind)
        if found is None and kind == "meta" and self.strict is not None:
            raise RuntimeError(
                f"There was no fake impl registered for {self.strict}, and a Tensor on "
                "meta was given; add one with its register_fake()"
            )
        found = found or self.kernels.get("default") or self.kernels.get("composite")
        if found is None:
            have = ", ".join(sorted(self.kernels)) or "none"
            raise NotImplementedError(
                f"Could not run {self._name!r} with arguments from the "
                f"{kind.upper()!r} backend: there is no kernel for it (there are: "
                f"{have}); register one with torch.library.impl()"
            )
        if self.strict is None or kind == "meta":
            return self._call(found, values)
        with no_grad():
            below = _pytree.tree_map(
                lambda x: x.detach() if isinstance(x, Tensor) else x, values
            )
            results = self._call(found, below)
        self._check(results, tensors)
        for argument, value in zip(self._schema.arguments, values, strict=True):
            if argument.is_write:
                for tensor in _tensors(value):
                    _C._written(tensor)
        return results

    def _call(self, kernel: Callable[..., Any], values: list[Any]) -> Any:
        args, named = self._schema.spread(values)
        return kernel(*args, **named)

    def _check(self, results: Any, tensors: list[Any]) -> None:
        returns = self._schema.returns
        parts = results if len(returns) > 1 else () if results is None else (results,)
        try:
            for part, wanted in zip(parts, returns, strict=True):
                wanted.take(part)
        except (TypeError, ValueError):
            raise RuntimeError(
                f"{self._name}: it returned {results!r:.60}, and its schema says "
                f"{self._schema}; return what the schema says"
            ) from None
        made = [_C._storage_key(t) for t in _tensors(results)]
        if len(made) != len(set(made) - {_C._storage_key(t) for t in tensors}):
            raise RuntimeError(
                f"{self._name}: a result shares memory with an argument or with "
                "another result; return a clone() of it"
            )


class _Held:
    """The arguments of an operator, or its results, in their structure."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _apply(function: type[Function], values: list[Any]) -> Any:
    whole, *made = function.apply(_Held(values), *_tensors(values))
    left = iter(made)
    return _pytree.tree_map(
        lambda x: next(left) if isinstance(x, Tensor) else x, whole.value
    )


def _formula(operator: Operator, backward: Any, setup: Any) -> type[Function]:
    """The Function of an operator with its derivative; None raises in backward().

    Its arguments are the operator's, and the Tensors in them; its results alike.
    """
    schema = operator._schema

    class Formula(Function):
        @staticmethod
        def forward(held: Any, *tensors: Any) -> Any:
            results = operator.run(held.value)
            return (_Held(results), *_tensors(results))

        @staticmethod
        def setup_context(ctx: Any, given: Any, made: Any) -> None:
            values, results = given[0].value, made[0].value
            needed = _pytree.tree_map(
                lambda x: isinstance(x, Tensor) and x.requires_grad, values
            )
            ctx.needs_input_grad = schema.spread(needed)[0]
            ctx._arguments = _pytree.tree_map(lambda x: isinstance(x, Tensor), values)
            ctx._results = _pytree.tree_map(lambda x: isinstance(x, Tensor), results)
            if setup is not None:
                args, only = schema.spread(values)
                named = {"keyword_only_inputs": only} if only else {}
                setup(ctx=ctx, inputs=args, output=results, **named)

        @staticmethod
        def backward(ctx: Any, _: Any, *gradients: Any) -> Any:
            if backward is None:
                raise RuntimeError(
                    f"Trying to backward through {operator} but no autograd formula "
                    "was registered; add one with register_autograd()"
                )
            left = iter(gradients)
            of = _pytree.tree_map(lambda is_one: next(left) if is_one else None,
                                  ctx._results)  # fmt: skip
            found = backward(ctx, *(of if isinstance(of, tuple) else (of,)))
            return (None, *_gradients(operator, ctx._arguments, found))

    space, name = operator.namespace, operator.__name__.replace(".", "_")
    Formula.__name__ = f"GeneratedBackwardFor_{space}_{name}"
    return Formula


def _gradients(operator: Operator, arguments: list[Any], found: Any) -> list[Any]:
    """The gradient of each Tensor in the arguments.

    arguments: whether each is a Tensor, in their structure. found: what backward() of
    the program returned, a gradient or a list of them for each input.
    """
    found = found if isinstance(found, tuple) else (found,)
    positional = [a for a in operator._schema.arguments if not a.kwarg_only]
    if len(found) != len(positional):
        raise RuntimeError(
            f"{operator}: its backward returned {len(found)} gradients for "
            f"{len(positional)} inputs; return one for each, None where there is none"
        )
    given = [*found, *[None] * (len(arguments) - len(found))]
    flat: list[Any] = []
    for is_tensor, gradient in zip(arguments, given, strict=True):
        if not isinstance(is_tensor, list):
            flat += [gradient] if is_tensor else []
            continue
        each = [None] * len(is_tensor) if gradient is None else gradient
        if not isinstance(each, list | tuple) or len(each) != len(is_tensor):
            raise RuntimeError(
                f"{operator}: its backward returned {type(each).__name__} for a list "
                f"of {len(is_tensor)}; return a list of as many gradients"
            )
        flat += [g for g, is_one in zip(each, is_tensor, strict=True) if is_one]
    return flat


class Packet:
    """An operator with its overloads: torch.ops.<namespace>.<name>."""

    def __init__(self, namespace: str, name: str) -> None:
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__ = name
        self._overloads: dict[str, Operator] = {}

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def overloads(self) -> list[str]:
        """The names of its overloads."""
        return [*self._overloads]

    def __getattr__(self, name: str) -> Operator:
        if name in self.__dict__.get("_overloads", ()):
            return self._overloads[name]
        raise AttributeError(
            f"The underlying op of {str(self)!r} has no overload name {name!r}"
        )

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        several = list(self._overloads.values())
        for each in several[:-1]:
            try:
                each._schema.bind(args, named)
            except RuntimeError:
                continue
            return each(*args, **named)
        return several[-1](*args, **named)


def define(namespace: str, name: str, schema: str) -> Operator:
    """A new operator; RuntimeError for one that is there."""
    name, _, overload = name.partition(".")
    packets = namespaces.setdefault(namespace, {})
    packet = packets.get(name) or Packet(namespace, name)
    overload = overload or "default"
    if overload in packet._overloads:
        raise RuntimeError(
            f"Tried to register an operator ({packet._overloads[overload]._schema}) "
            "with the same name and overload name multiple times; give another name"
        )
    made = Operator(namespace, name, overload, schema)
    packet._overloads[overload] = made
    packets[name] = packet
    return made


def find(op: Any) -> Operator:
    """The operator of a name `namespace::name`, or of an object for one."""
    if isinstance(op, Operator):
        return op
    if isinstance(op, Packet):
        return op._overloads["default"]
    if not isinstance(op, str):
        return find(op._opoverload)
    namespace, name = split(op)
    name, _, overload = name.partition(".")
    packet = namespaces.get(namespace, {}).get(name)
    found = packet and packet._overloads.get(overload or "default")
    if not found:
        raise RuntimeError(f"operator {op} does not exist; define it first")
    return found


def split(name: str) -> tuple[str, str]:
    """The namespace and the name of `namespace::name`."""
    space, colons, rest = name.partition("::")
    if not colons or not space or not rest:
        raise ValueError(
            f'Expected the name to be of the form "namespace::name", but got {name!r}'
        )
    return space, rest
