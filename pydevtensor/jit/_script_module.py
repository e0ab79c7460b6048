"""The class of modules that torch.jit.script() and trace() were given."""

from __future__ import annotations

from typing import Any

from pydevtensor._names import give
from pydevtensor.nn import Module

__all__ = ["ScriptModule"]


class _Scripted(type):
    def __instancecheck__(cls, value: Any) -> bool:
        scripted = "_scripted" in getattr(value, "__dict__", ())
        return super().__instancecheck__(value) or (cls is ScriptModule and scripted)


class ScriptModule(Module, metaclass=_Scripted):
    """A Module that runs as it is written.

    isinstance() holds for what script(), trace() and load() give, too.

    >>> class Twice(torch.jit.ScriptModule):
    ...     @torch.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Twice()(torch.ones(2))
    tensor([2., 2.])
    """


give("pydevtensor.jit", ScriptModule)
