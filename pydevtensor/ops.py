"""torch.ops: operators by namespace and name.

torch.ops.<namespace>.<name> is an operator of torch.library; torch.ops.aten.<name> is
the function or method of this package that PyTorch's operator of that name is.
"""

from __future__ import annotations

from typing import Any

from pydevtensor import library
from pydevtensor._names import publish as _publish

__all__ = ["load_library"]


def load_library(path: Any) -> None:
    """Raises OSError: libraries of operators are built for PyTorch itself.

    path: the file.

    >>> try:
    ...     torch.ops.load_library("operators.so")
    ... except OSError as error:
    ...     print(str(error)[:48])
    Could not load this library: operators.so: it is
    """
    raise OSError(
        f"Could not load this library: {path}: it is built for PyTorch; write its "
        "operators with torch.library.custom_op()"
    )


_publish(__name__)


def _namespace(name: str) -> Any:
    made = library.namespace(name)
    if made is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made
    return made


globals()["__getattr__"] = _namespace
