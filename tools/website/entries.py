"""What the reference says of one public name: signatures, docstring, source."""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import docstring
import functions  # tools/build: the functions of torch that are written in Python
import public_api

PACKAGE = Path(public_api.module("").__file__).parent


@cache
def stubs() -> dict[str, list[str]]:
    """By name, the signatures with types that the stubs give."""
    found: dict[str, list[str]] = {}

    def collect(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                result = ast.unparse(node.returns) if node.returns else "None"
                text = f"({ast.unparse(node.args)}) -> {result}"
                found.setdefault(prefix + node.name, []).append(plain(text))

    files = {"_C.pyi": "", "__init__.pyi": ""}
    files |= {f"{file}i": f"{name}." for name, file in functions.modules().items()}
    for stub, prefix in files.items():
        path = PACKAGE / stub
        if path.exists():
            collect(ast.parse(path.read_text()).body, prefix)
    return found


def plain(text: str) -> str:
    """A signature without addresses, modules and the private names of types."""
    text = re.sub(r"<[^<>]*>", "...", public_api.plain(text))
    text = re.sub(r"\b(builtins|_C|torch|typing)\.(?=\w)", "", text)
    # A result with names is a type of torch.return_types.
    text = re.sub(r"-> _(?=[a-z])", "-> torch.return_types.", text)
    return re.sub(r"\b_(?=[A-Z])", "", text)


class Annotation(str):
    """A type that a signature shows as it is written, without quotes."""

    def __repr__(self) -> str:
        return str(self)

    @classmethod
    def of(cls, given: Any) -> Any:
        if given is inspect.Signature.empty or isinstance(given, type):
            return given
        return cls(given)


def parameters(value: Any) -> str:
    """The signature of a function in Python, with its types."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "(...)"

    given = [
        p.replace(annotation=Annotation.of(p.annotation))
        for p in found.parameters.values()
    ]
    result = Annotation.of(found.return_annotation)
    return plain(str(found.replace(parameters=given, return_annotation=result)))


def signatures(name: str, value: Any) -> list[str]:
    """Every form in which a name is called."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    in_python = isinstance(value, types.FunctionType)
    if not in_python and name in stubs():
        return stubs()[name]
    if isinstance(value, type):
        made = stubs().get(f"{name}.__init__") or stubs().get(f"{name}.__new__")
        text = made[0] if made else parameters(value)
        return [bound(text).partition(" -> ")[0]]
    return [parameters(value)]


@cache
def bodies() -> dict[str, tuple[str, int]]:
    """Where the functions of torch that are written in Python have their bodies."""
    return {each.full: (each.file, each.line) for each in functions.read()}


def source(name: str, value: Any) -> tuple[str, int] | None:
    """The file and line of a body in Python, in the repository."""
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if inspect.isbuiltin(value) or inspect.ismethoddescriptor(value):
        return bodies().get(name.removeprefix("Tensor."))
    try:
        value = inspect.unwrap(value)
        file = inspect.getsourcefile(value)
        _, line = inspect.getsourcelines(value)
    except (TypeError, OSError):
        return None
    if file is None or not Path(file).is_relative_to(PACKAGE):
        return None
    return f"pydevtensor/{Path(file).relative_to(PACKAGE)}", line


def bound(form: str) -> str:
    """A form without the argument that stands for the object or the class."""
    return re.sub(r"\((self|cls)(, /)?(, )?", "(", form)


def lines(kind: str, name: str, shown: str, value: Any, sources: str) -> list[str]:
    """The entry of a name; members of a class are to be indented below it."""
    head = f".. py:{kind}:: "
    forms = [""]
    if kind in ("function", "method", "class"):
        forms = signatures(name, value)
        if kind == "method":
            forms = [bound(form) for form in forms]
    first, *others = dict.fromkeys(forms)
    found = [f"{head}{shown}{first}"]
    found += [f"{' ' * len(head)}{shown}{form}" for form in others]
    if isinstance(value, staticmethod | classmethod) and kind == "method":
        found.append(f"   :{type(value).__name__}:")
    found.append("")
    body: list[str] = []
    if kind not in ("data", "attribute"):
        body += docstring.converted(inspect.getdoc(value) or "")
        at = source(name, value) if sources else None
        if at:
            file, line = at
            mark = f"#L{line}" if line else ""
            body += [f"`Source: {file} <{sources.rstrip('/')}/{file}{mark}>`__", ""]
    return [*found, *(f"   {line}".rstrip() for line in body)]


def summary(value: Any) -> str:
    """The first sentence of a docstring, or a constant itself."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    # A constant's docstring is that of its type.
    described = callable(value) or inspect.isdatadescriptor(value)
    if not described:
        return f"``{value!r}``"
    first = (inspect.getdoc(value) or "").partition("\n\n")[0]
    text = docstring.escaped(" ".join(first.split()))
    return re.split(r"(?<!e\.g)(?<=\.) ", text, maxsplit=1)[0]


def kind_of(value: Any, member: bool) -> str:
    if isinstance(value, type):
        return "exception" if issubclass(value, BaseException) else "class"
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return "property"
    if callable(value) or isinstance(value, staticmethod | classmethod):
        return "method" if member else "function"
    return "attribute" if member else "data"


def member_names(value: type, classes: dict[type, str]) -> Iterator[str]:
    """The public members of a class, without those of Python's protocols."""
    for full in public_api.members("", value, classes):
        name = full.removeprefix(".")
        if not name.startswith("__"):
            yield name
