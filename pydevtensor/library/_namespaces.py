"""Operators by namespace and name, as torch.ops has them.

torch.ops.aten.<name> is the function or method of this package that PyTorch's operator
of that name is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pydevtensor
from pydevtensor import _C
from pydevtensor.library import _operators

# Parameters of losses in the order of aten, where reduction is a number.
_LOSSES = {
    "binary_cross_entropy": "input target weight reduction",
    "cross_entropy_loss": "input target weight reduction ignore_index label_smoothing",
    "huber_loss": "input target reduction delta",
    "l1_loss": "input target reduction",
    "mse_loss": "input target reduction",
    "nll_loss": "input target weight reduction ignore_index",
    "smooth_l1_loss": "input target reduction beta",
    "soft_margin_loss": "input target reduction",
}
_REDUCTIONS = ("none", "mean", "sum")


def _slice(
    x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def _index(x: Any, indices: Any) -> Any:
    return x[tuple(slice(None) if i is None else i for i in indices)]


# Operators of aten that no public function has the name and the parameters of.
_OTHERS: dict[str, Callable[..., Any]] = {
    "_log_softmax": lambda x, dim, half_to_float: x.log_softmax(dim),
    "_pin_memory": lambda x, device=None: x.pin_memory(device),
    "_softmax": lambda x, dim, half_to_float: x.softmax(dim),
    "_to_copy": lambda x, **named: x.to(copy=True, **named),
    "_sparse_addmm": lambda c, a, b, beta=1, alpha=1: pydevtensor.sparse.addmm(
        c, a, b, beta=beta, alpha=alpha
    ),
    "_sparse_mm_reduce_impl": lambda a, b, reduce: pydevtensor.sparse.mm(a, b, reduce),
    "_unsafe_view": lambda x, size: x.reshape(size),
    "alias": lambda x: x.view_as(x),
    "index": _index,
    "slice": _slice,
}
# Names of overloads, which all call the same here.
_OVERLOADS = re.compile(
    r"default|(\w+_)?(Tensor|Scalar|List|ScalarList|out|int|float|bool|str|dim|dims|mode"
    r"|IntList|input|self|dtype|vec|size|start|step|value|generator|correction|unbiased"
    r"|stable|values|indices|sections|low|repeats|element_size|memory_format|p)"
)


def _loss(name: str) -> Callable[..., Any]:
    from pydevtensor.nn import functional

    body = getattr(functional, name.removesuffix("_loss") if "cross" in name else name)
    order = _LOSSES[name].split()

    def loss(*args: Any, **named: Any) -> Any:
        given = {**dict(zip(order, args, strict=False)), **named}
        given["reduction"] = _REDUCTIONS[given.get("reduction", 1)]
        return body(**given)

    return loss


def _of_aten(name: str) -> Callable[..., Any] | None:
    """The function that stands for an operator of aten."""
    if name in _OTHERS:
        return _OTHERS[name]
    if name in _LOSSES:
        return _loss(name)
    for space in ("linalg", "special", "fft"):
        if name.startswith(space + "_"):
            module = getattr(pydevtensor, space)
            short = name[len(space) + 1 :]
            return getattr(module, short) if short in dir(module) else None
    from pydevtensor.nn import functional

    found = vars(pydevtensor).get(name) or getattr(_C.Tensor, name, None)
    if found is None and name in dir(functional):
        found = getattr(functional, name)
    is_function = callable(found) and not isinstance(found, type)
    return found if is_function and name[:2] != "__" else None


class _AtenOverload:
    """torch.ops.aten.<name>.<overload>."""

    namespace = "aten"

    def __init__(self, packet: _AtenPacket, overload: str) -> None:
        self.overloadpacket, self._overloadname = packet, overload
        self.__name__ = f"{packet.__name__}.{overload}"

    def __repr__(self) -> str:
        name = self.overloadpacket
        return f"<OpOverload(op='{name}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def name(self) -> str:
        return "aten::" + self.__name__.removesuffix(".default")

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        return self.overloadpacket(*args, **named)


class _AtenPacket(_operators.Packet):
    """torch.ops.aten.<name>."""

    def __init__(self, name: str, body: Callable[..., Any]) -> None:
        super().__init__("aten", name)
        self._body = body

    def __getattr__(self, name: str) -> Any:
        if not _OVERLOADS.fullmatch(name):
            return super().__getattr__(name)
        made = self.__dict__[name] = _AtenOverload(self, name)
        return made

    def overloads(self) -> list[str]:
        raise NotImplementedError(
            "overloads(): the names of aten's overloads are not known here; all of "
            "them call the same function"
        )

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        return self._body(*args, **named)


class _Namespace(ModuleType):
    """torch.ops.<namespace>."""

    def __getattr__(self, name: str) -> Any:
        space = self.__name__.rpartition(".")[2]
        found: Any = _operators.namespaces.get(space, {}).get(name)
        if found is None and space == "aten" and (body := _of_aten(name)):
            found = self.__dict__[name] = _AtenPacket(name, body)
        if found is None:
            raise AttributeError(
                f"'_OpNamespace' {space!r} object has no attribute {name!r}; define "
                "the operator with torch.library"
            )
        return found

    def __dir__(self) -> list[str]:
        return sorted(_operators.namespaces.get(self.__name__.rpartition(".")[2], ()))


def namespace(name: str) -> ModuleType | None:
    """The operators of a namespace; None for a private name without any."""
    if name[0] == "_" and name not in _operators.namespaces:
        return None
    return _Namespace(f"{pydevtensor.__name__}.ops.{name}")
