"""Layers that call a function with their input and their options.

    class LeakyReLU(FunctionLayer, calls=F.leaky_relu):
        \"""x, or negative_slope * x where x is negative.

        >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
        tensor([-0.1000,  2.0000])
        \"""

is a whole layer. F.leaky_relu(input, negative_slope=0.01, inplace=False) says the rest:

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self._set_options(negative_slope=negative_slope, inplace=inplace)

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

and, in the docstring, what the function's, or that of a private base, says of these
parameters. A method that the
class, or a base of its family, defines itself is not made. The methods are made when
they are first asked for, so that importing nn makes none of them; their source line, in
tracebacks, is that of the class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pydevtensor
from pydevtensor import _C, _records
from pydevtensor.nn import functional as F
from pydevtensor.nn.modules.module import Module


class FunctionLayer(Module):
    """Base of layers that call a function.

    calls   the function
    takes   what the constructor takes, where that differs from the function's
            parameters without the tensors: a list such as "dim, eps=1e-5". One with a
            type, as in "value: float", is not the function's
    inputs  what forward() takes, where that is more than the tensors, as a list
    """

    _function: Any = None
    _takes = ""
    _inputs = ""
    _spent: tuple[str, ...] = ()  # options that _set_options() makes no attributes of
    _shown: tuple[str, ...] | None = None  # by extra_repr(), where not all options
    _made: tuple[str, ...] = ()  # the names of methods that are made
    _text: Any  # the methods, as a Layer of _signatures

    def __init_subclass__(
        cls,
        calls: Callable[..., Any] | None = None,
        takes: str | None = None,
        inputs: str | None = None,
        **others: Any,
    ) -> None:
        super().__init_subclass__(**others)
        cls._made = ()
        if takes is not None:
            cls._takes = takes
        if inputs is not None:
            cls._inputs = inputs
        if calls is None:
            return
        cls._function = calls
        family: Any = cls.__mro__[: cls.__mro__.index(FunctionLayer)]
        where = _records.caller()
        for name, make in (("__init__", _constructor), ("forward", _forward)):
            if all(name in kind._made or name not in vars(kind) for kind in family):
                setattr(cls, name, _records.Made(cls, name, make, where))
                cls._made = (*cls._made, name)
        cls.__doc__ = cast("str", _records.Made(cls, "__doc__", _doc, cls.__doc__))
        cls._text = _records.Made(cls, "_text", _read)

    def _set_options(self, **options: Any) -> None:
        """Make attributes of the options. A family checks or changes them before."""
        for name, value in options.items():
            if name in self._text.tensors:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def extra_repr(self) -> str:
        names = self._text.names if self._shown is None else self._shown
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


def _read(owner: type[FunctionLayer]) -> Any:
    from pydevtensor import _signatures

    schema = schema_of(owner._function.__name__)
    return _signatures.Layer(schema, owner._takes, owner._inputs, owner._spent)


def schema_of(function: str) -> str:
    for namespace in ("nn.functional", ""):
        for name, text, is_function, _ in _C._signatures(namespace):
            if is_function and name == function:
                return text
    raise TypeError(f"{function} is not a function of nn.functional")


def _constructor(owner: type[FunctionLayer], where: _records.Where) -> Any:
    text = owner._text
    if not text.options:
        return Module.__init__  # which says that there are none
    options = ", ".join(f"{p.name}={p.name}" for p in text.options)
    body = f"super(FunctionLayer, self).__init__(); self._set_options({options})"
    head = text.constructor()
    return _records.method(owner, where, f"{head} {body}", FunctionLayer=FunctionLayer)


def _forward(owner: type[FunctionLayer], where: _records.Where) -> Any:
    return forward(owner, where, owner._function.__name__, owner._text)


def forward(
    owner: type,
    where: _records.Where,
    name: str,
    text: Any,
    body: str = "{}",
    **names: Any,
) -> Any:
    """The forward() that calls a function; body is what it does with the result."""
    from pydevtensor import _signatures

    # The package and not _C: fx replaces its functions while it traces.
    home = F if name in vars(F) else pydevtensor
    body = body.format(f"return F.{name}({text.call()})")
    made = _records.method(owner, where, f"{text.forward()} {body}", F=home, **names)
    inputs = [p.name for p in text.inputs]
    said = _signatures.read_doc(getattr(home, name).__doc__ or "")[1]
    entries = {key: text for key, text in said.items() if {*key} & {*inputs}}
    first = f"{name}({', '.join(inputs)}) of nn.functional, with the layer's options."
    made.__doc__ = _signatures.compose([first], inputs, [entries], "")
    return made


def _doc(owner: type[FunctionLayer], own: str | None) -> str:
    family = owner.__mro__[1 : owner.__mro__.index(FunctionLayer)]
    private = [kind for kind in family if kind.__name__[0] == "_"]
    return _records.described(owner, own, private, owner._function.__doc__)
