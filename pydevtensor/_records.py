"""Classes whose constructor and docstring are made of a record.

    class RAdam(Ruled, takes="params, lr, betas, eps=1e-6"):
        \"""Adam that rectifies its rate.

        eps  added to denominators
        \"""

A family says in a schema what type and what default a parameter has, and in the
docstrings of its bases what it means; a class says which ones it takes, and what is
different. The methods are made when they are first asked for, so that importing a class
makes none of them; their source line, in tracebacks, is that of the class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, cast


class Made:
    """A member of a class that is made when it is first asked for."""

    def __init__(
        self, owner: type, name: str, make: Callable[..., Any], *of: Any
    ) -> None:
        self.owner, self.name, self.make, self.of = owner, name, make, of

    def __get__(self, instance: Any, kind: type | None = None) -> Any:
        made = self.make(self.owner, *self.of)
        setattr(self.owner, self.name, made)
        return made.__get__(instance, kind) if isinstance(made, FunctionType) else made


def complete_docs(names: dict[str, Any]) -> None:
    """Complete the docstrings of a module's functions and classes, with its names.

    A class's has what those of its bases say of the constructor's other parameters; a
    function's, in the place of "Parameters: those of name().", what that of the named
    function, of the module or a method of the same class, says of them.
    """
    home = names["__name__"]
    own = [n for n, v in names.items() if getattr(v, "__module__", "") == home]
    for name in names.get("__all__", own):
        value = names[name]
        if not isinstance(value, type):
            _complete_doc(value, names)
            continue
        for method in vars(value).values():
            _complete_doc(method, names, value)
        if value.__doc__:
            bases = value.__mro__[1:-1]
            made = Made(value, "__doc__", described, value.__doc__, bases)
            value.__doc__ = cast("str", made)


def _complete_doc(
    function: Any, names: dict[str, Any], owner: type | None = None
) -> None:
    doc = function.__doc__ if isinstance(function, FunctionType) else None
    if doc and "Parameters: those of " in doc:
        from pydevtensor import _signatures

        body: Any = function
        while hasattr(body, "__wrapped__"):
            body = body.__wrapped__
        code = body.__code__
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        function.__doc__ = _signatures.resolve(
            doc, given, lambda name: (getattr(owner, name, None) or names[name]).__doc__
        )


def described(
    owner: type, own: str | None, bases: Iterable[type], more: str | None = ""
) -> str:
    """A docstring with what others say of the constructor's other parameters.

    They are the bases, from the nearest, and then the text `more`.
    """
    import inspect

    from pydevtensor import _signatures

    names = [*inspect.signature(owner.__init__).parameters][1:]  # type: ignore[misc]
    said = [
        _signatures.read_doc(inspect.cleandoc(kind.__doc__ or ""), names)[1]
        for kind in bases
    ]
    others = _signatures.read_doc(more or "")[1]
    return _signatures.complete(inspect.cleandoc(own or ""), names, *said, others)


Where = tuple[str, int, dict[str, Any]]  # file, line, globals


def method(owner: type, where: Where, text: str, /, **names: Any) -> Any:
    """The method that a text defines, which returns at a source line of a file."""
    file, line, around = where
    names = {**around, "__name__": owner.__module__, "Any": Any, **names}
    before = "\n" * (line - 1 - text.partition(" return ")[0].count("\n"))
    exec(compile(before + text, file, "exec"), names)
    name = text.removeprefix("def ").partition("(")[0]
    made = names[name]
    made.__qualname__ = f"{owner.__qualname__}.{name}"
    return made


def caller() -> Where:
    """The source line of the class that an __init_subclass__() is called for."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_name == "__init_subclass__":
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno, frame.f_globals


class Record:
    """Base of classes whose constructor passes its arguments to _make(), by name.

    takes  what the constructor takes, a list such as "lr, eps=1e-6, *, value: float"
    shows  what the docstring's example, which the family has, calls the class with, and
           a list of results
    """

    _example = ""
    _schema = ""  # of the family, "name(lr: float = 0.1, eps: float = 1e-8)"
    _make: Any
    _types: dict[str, Any]  # the globals that the schema's types are names of

    def __init_subclass__(
        cls,
        takes: str | None = None,
        shows: tuple[str, list[float]] | None = None,
        **others: Any,
    ) -> None:
        super().__init_subclass__(**others)
        if shows and cls.__doc__:
            given, results = shows
            words = {"given": given, "results": results, "count": len(results)}
            example = cls._example.format(name=cls.__name__, **words)
            cls.__doc__ = f"{cls.__doc__.rstrip()}\n{example}"
        if "_schema" in vars(cls):
            cls._types = vars(sys.modules[cls.__module__])
        if takes is not None:
            cls.__init__ = Made(cls, "__init__", _constructor, takes, caller())  # type: ignore
        if cls.__doc__ and cls.__module__.startswith(f"{__package__}."):
            bases = cls.__mro__[1 : cls.__mro__.index(Record)]
            cls.__doc__ = cast(
                "str", Made(cls, "__doc__", described, cls.__doc__, bases)
            )


def _constructor(owner: type[Record], takes: str, where: Where) -> Any:
    from pydevtensor import _signatures

    file, line, around = where
    text = _signatures.Record(owner._schema, takes)
    passed = ", ".join(f"{p.name}={p.name}" for p in text.options)
    # Not self._make(): of a subclass it may take other options.
    body = f"{text.constructor()} _owner._make(self, {passed})"
    return method(owner, (file, line, {**owner._types, **around}), body, _owner=owner)
