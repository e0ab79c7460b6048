"""Schemas of operators: texts such as `f(Tensor x, int n=1) -> Tensor`."""

from __future__ import annotations

import ast
import collections.abc
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from pydevtensor import _C

Tensor = _C.Tensor

_PART = re.compile(
    r"(?P<base>[A-Za-z]+)(?P<alias>\([^)]*\))?(?P<form>(?:\[\d*\]|\?)*)"
    r"(?:\s+(?P<name>\w+))?\s*(?:=\s*(?P<default>.+))?"
)
# The values that each type accepts; None: all.
_ACCEPTED: dict[str, Any] = {
    "Tensor": Tensor,
    "int": int,
    "SymInt": int,
    "float": (int, float),
    "complex": (int, float, complex),
    "Scalar": (int, float, complex),
    "bool": bool,
    "str": str,
    "ScalarType": _C.dtype,
    "Device": (_C.device, str),
    "Generator": _C.Generator,
    "Layout": None,
    "MemoryFormat": None,
    "Any": None,
    "Dimname": str,
}
_PLAIN = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    _C.dtype: "ScalarType",
    _C.device: "Device",
}


class Argument:
    """A parameter or a result of a schema.

    form: what stands behind the type, `[]`, `?`, `[2]?`.
    """

    def __init__(self, text: str, kwarg_only: bool = False) -> None:
        found = _PART.fullmatch(text.strip())
        if not found or found["base"] not in _ACCEPTED:
            raise RuntimeError(
                f"{text!r} is not an argument of a schema; give a type and a name, "
                f"e.g. 'Tensor x'; types are {', '.join(_ACCEPTED)}"
            )
        self.base, self.form = found["base"], found["form"]
        self.name, self.kwarg_only = found["name"] or "", kwarg_only
        self.is_write = "!" in (found["alias"] or "")
        self._has_default = found["default"] is not None
        self.default_value = self._read(found["default"])

    def _read(self, text: str | None) -> Any:
        if text is None:
            return None
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = {"True": True, "False": False, "None": None}.get(text, text)
        if self.base == "ScalarType" and isinstance(value, str):
            return getattr(_C, value.removeprefix("torch."))
        return _C.device(value) if self.base == "Device" and value else value

    @property
    def type(self) -> str:
        """The type as PyTorch shows it: int also for SymInt."""
        return self.base.replace("SymInt", "int") + self.form

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default

    def take(self, value: Any, form: str | None = None) -> Any:
        """The value as the operator gets it; TypeError for one of another type."""
        form = self.form if form is None else form
        if form.endswith("?"):
            return None if value is None else self.take(value, form[:-1])
        if form.endswith("]"):
            inner, _, size = form[:-1].rpartition("[")
            if size and isinstance(value, int | float):
                return [value] * int(size)
            if not isinstance(value, list | tuple):
                raise TypeError
            return [self.take(item, inner) for item in value]
        accepted = _ACCEPTED[self.base]
        if accepted is not None and not isinstance(value, accepted):
            raise TypeError
        return float(value) if self.base == "float" else value


class Schema:
    """The arguments and results of an operator.

    name: with the namespace. RuntimeError for another text.
    """

    def __init__(self, name: str, text: str) -> None:
        inside, arrow, results = _divide(text.strip())
        if not arrow:
            raise RuntimeError(
                f"{text!r} is not a schema; give e.g. '(Tensor x, int n=1) -> Tensor'"
            )
        self.name, self.text = name, text.strip()
        self.arguments: list[Argument] = []
        kwarg_only = False
        for part in _split(inside):
            if part == "*":
                kwarg_only = True
            else:
                self.arguments.append(Argument(part, kwarg_only))
        several = results.startswith("(") and results.endswith(")")
        self.returns = [
            Argument(part) for part in _split(results[1:-1] if several else results)
        ]
        self.is_mutable = any(a.is_write for a in self.arguments)

    def __str__(self) -> str:
        return self.name + self.text

    def bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """The value of each argument; RuntimeError for a call that does not fit."""
        positional = [a for a in self.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            raise RuntimeError(
                f"{self.name}() takes {len(positional)} positional arguments, and "
                f"{len(args)} were given; its schema is {self}"
            )
        given = dict(zip((a.name for a in positional), args, strict=False))
        for name, value in named.items():
            if name in given or all(a.name != name for a in self.arguments):
                raise RuntimeError(
                    f"{self.name}(): {name!r} is given twice or is not an argument; "
                    f"its schema is {self}"
                )
            given[name] = value
        values = []
        for a in self.arguments:
            if a.name not in given and not a.has_default_value():
                raise RuntimeError(
                    f"{self.name}() is missing value for argument {a.name!r}; its "
                    f"schema is {self}"
                )
            try:
                value = given.get(a.name, a.default_value)
                values.append(a.take(value) if a.name in given else value)
            except TypeError:
                raise RuntimeError(
                    f"{self.name}() Expected a value of type {a.type!r} for argument "
                    f"{a.name!r} but instead found type {type(value).__name__!r}; its "
                    f"schema is {self}"
                ) from None
        return values

    def spread(self, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Bound values as positional and keyword arguments of a function."""
        pairs = list(zip(self.arguments, values, strict=True))
        args = tuple(v for a, v in pairs if not a.kwarg_only)
        return args, {a.name: v for a, v in pairs if a.kwarg_only}


def _divide(text: str) -> tuple[str, str, str]:
    """The text within the first parentheses, `->` if it follows, and the rest."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if not depth:
            before, arrow, after = text[i + 1 :].partition("->")
            if text[0] == "(" and not before.strip():
                return text[1:i], arrow, after.strip()
            break
    return "", "", ""


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in parts if part]


# --- schemas of functions -----------------------------------------------------------


def _type_text(hint: Any) -> str | None:
    """The schema's text for a Python type, None if there is none."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin in (list, collections.abc.Sequence) and len(inside) == 1:
        below = _type_text(inside[0])
        return None if below is None or below.endswith("]") else below + "[]"
    if origin in (typing.Union, types.UnionType):
        kinds = set(inside)
        if kinds - {types.NoneType} == {int, float, bool}:
            return "Scalar?" if types.NoneType in kinds else "Scalar"
        if len(inside) == 2 and types.NoneType in kinds:
            (other,) = kinds - {types.NoneType}
            below = _type_text(other)
            return None if below is None or below.endswith("?") else below + "?"
    return None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(
            f"infer_schema(): an annotation cannot be read ({error}); annotate with "
            "types that the function's module has"
        ) from None


def _default_text(name: str, value: Any) -> str:
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, str | _C.device):
        return f'"{value}"'
    if isinstance(value, _C.dtype):
        return str(value).rpartition(".")[2]
    raise ValueError(
        f"infer_schema(): parameter {name} has the default {value!r}; give a number, a "
        "text, a dtype, a device or None"
    )


def infer(
    function: Callable[..., Any], mutates_args: str | Iterable[str], name: str = ""
) -> str:
    """The schema of an annotated function; ValueError where it has none."""
    signature, hints = inspect.signature(function), _hints(function)
    every = mutates_args == "unknown"
    writes = set() if every else set(mutates_args)
    if unknown := writes - set(signature.parameters):
        raise ValueError(
            f"infer_schema(): mutates_args names {sorted(unknown)}, which are not "
            f"parameters of {signature}"
        )
    parts, only = [], False
    for p in signature.parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name not in hints:
            raise ValueError(
                f"infer_schema(): parameter {p.name} needs a name of its own and a "
                f"type annotation; the function has {signature}"
            )
        text = _type_text(hints[p.name])
        if text is None:
            raise ValueError(
                f"infer_schema(): parameter {p.name} has the unsupported type "
                f"{hints[p.name]}; give Tensor, int, float, bool, str, torch.dtype, "
                "torch.device, or Optional or Sequence of them"
            )
        if p.kind is p.KEYWORD_ONLY and not only:
            parts.append("*")
            only = True
        if p.name in writes or (every and text.startswith("Tensor")):
            if not text.startswith("Tensor"):
                raise ValueError(
                    f"infer_schema(): mutates_args has {p.name}, which is not a Tensor"
                )
            number = sum("!" in part for part in parts)
            text = text.replace("Tensor", f"Tensor(a{number}!)", 1)
        default = "" if p.default is p.empty else f"={_default_text(p.name, p.default)}"
        parts.append(f"{text} {p.name}{default}")
    if signature.return_annotation is signature.empty:
        raise ValueError(
            f"infer_schema(): no return type annotation was given in {signature}; add "
            "one, -> None for no result"
        )
    return f"{name}({', '.join(parts)}) -> {_result_text(hints['return'])}"


def _result_text(hint: Any) -> str:
    if hint is types.NoneType:
        return "()"
    several = typing.get_origin(hint) is tuple
    texts = [_type_text(each) for each in typing.get_args(hint)] if several else []
    texts = texts or [_type_text(hint)]
    if None in texts or any(text.endswith("?") for text in texts if text):
        raise ValueError(
            f"infer_schema(): the result has the unsupported type {hint}; give Tensor, "
            "int, float, bool, a list of Tensors, or a tuple of these"
        )
    joined = ", ".join(text for text in texts if text)
    return f"({joined})" if len(texts) > 1 else joined
