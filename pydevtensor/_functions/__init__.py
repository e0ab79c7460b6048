"""Public functions in Python, composed of others, one module for each subject.

    @function(method=True, out=True)
    def kron(input: Tensor, other: Tensor) -> Tensor:
        \"""Kronecker product ...\"""

makes torch.kron(input, other, *, out=None) and Tensor.kron. In a folder of a namespace,
such as pydevtensor/linalg, it makes functions of that (NAMESPACES in
tools/build/functions.py). The build reads signature, docstring and options and writes a
table for the extension. So importing the package runs none of these modules: the first
call of a function does. The extension checks and converts the arguments by their
annotations before it calls the function; functions that call each other here skip that.

Errors are raised without the function's name, which the binding adds; so checks that a
called function makes need not be made here.

Annotations that name one of types.py's types are checked; any other is documentation,
and the function checks the argument itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Literal, TypeVar

_Body = TypeVar("_Body", bound=Callable[..., Any])


def function(
    *,
    method: bool = False,
    out: bool = False,
    in_place: bool | Literal["both"] = False,
    factory: bool = False,
    results: tuple[str, ...] = (),
    aliases: tuple[str, ...] = (),
    like: str = "",
    given: tuple[Any, ...] = (),
    keywords: str = "",
    order: str = "",
    numbered: bool = False,
    package: bool = False,
) -> Callable[[_Body], _Body]:
    """Make a function of the package, or of a namespace, of the decorated one.

    method    a method of Tensor too
    out       adds the argument out, for the result or a tuple for all results. The body
              has it only where it is not the last one, and never gets it
    in_place  adds the method x_(), which copies the result into its tensor; "both": and
              a function x_()
    factory   adds dtype, layout, device, requires_grad and pin_memory, passed on as
              keywords, and to the docstring where they are described
    results   the names of several results
    aliases   further names
    like      a function of the same module that has the same parameters; the body gets
              those that are given as *args and **named, and the docstring what that
              function's says of parameters which it does not describe itself. Of
              another module, it is named with that, nn._functional.loss.mse_loss.
              Parameters before a / of a function that bodies share are the bodies'
    given     what `like`, or the body that it shares, gets as its parameters before the
              /; that runs in place of the body, which is a docstring
    keywords  a function of the same module whose keywords come before its own; the body
              gets those that are given as **named
    order     the names of its parameters, of those that `like` has and of the body's
              own keywords; the body gets all by name
    numbered  the reduction of that function is a number, 0 by default
    package   in a namespace: a function of the package, too
    """
    if order:
        return lambda body: _named(body, order.split())
    if not given:
        return _unchanged

    def completed(body: Any) -> Any:
        shared = body.__globals__[like]
        return partial(getattr(shared, "func", shared), *given)

    return completed


def _named(body: Any, names: list[str]) -> Any:
    @wraps(body)
    def call(*args: Any, **named: Any) -> Any:
        return body(**dict(zip(names, args, strict=False)), **named)

    return call


def method() -> Callable[[_Body], _Body]:
    """Make a method of Tensor alone of the decorated function."""
    return _unchanged


def _unchanged(body: _Body) -> _Body:
    return body
