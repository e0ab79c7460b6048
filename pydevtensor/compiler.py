"""torch.compiler: functions and modules run as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor._absent import warn_of_compiling as _warn_of_compiling
from pydevtensor._answers import answer as _answer
from pydevtensor._names import publish as _publish

__all__ = ["compile", "disable", "is_compiling", "reset"]


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[Any, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """The function or module itself, with a warning the first time.

    Without model, a decorator that does the same. Raises TypeError for what cannot be
    called.

    fullgraph, dynamic, backend, mode, options, name, disable, recompile_limit,
    isolate_recompiles and shapes_spec are PyTorch's and have no effect.

    >>> import warnings
    >>> with warnings.catch_warnings(action='ignore'):
    ...     f = torch.compile(torch.exp, mode='max-autotune')
    >>> f is torch.exp
    True
    """
    if model is None:
        return compile
    if not callable(model):
        raise TypeError(
            f"compile(): a {type(model).__name__} was given; give a function or a "
            "module"
        )
    _warn_of_compiling("torch.compile")
    return model


def disable(fn: Any = None, recursive: bool = True, *, reason: Any = None) -> Any:
    """The function itself, or a decorator that gives it back.

    >>> torch.compiler.disable(torch.exp) is torch.exp
    True
    """
    return disable if fn is None else fn


is_compiling = _answer(__name__, "is_compiling", False)
reset = _answer(__name__, "reset", None)

_publish(__name__)
