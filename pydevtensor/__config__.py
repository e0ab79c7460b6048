"""torch.__config__: how the package was built, as text."""

from __future__ import annotations

from pydevtensor import _C

__all__ = ["parallel_info", "show"]


def show() -> str:
    """A text of lines about the build.

    >>> 'pydevtensor' in torch.__config__.show()
    True
    """
    from pydevtensor import __version__

    cuda = _C._facts("cuda").get("runtime")
    lines = [
        f"pydevtensor {__version__}, built with:",
        f"  - CUDA runtime {cuda}" if cuda else "  - no CUDA device",
        f"  - CPU capability: {_C._facts('cpu').get('isa')}",
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """A text of lines about threads.

    >>> 'threads' in torch.__config__.parallel_info()
    True
    """
    from pydevtensor import get_num_interop_threads, get_num_threads

    return (
        f"threads of an operation: {get_num_threads()}\n"
        f"threads between operations: {get_num_interop_threads()}\n"
    )
