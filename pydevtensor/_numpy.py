"""NumPy, which only some functions need."""

from __future__ import annotations

from typing import Any


def numpy(user: str) -> Any:
    """The module; ImportError with what to do where it is not installed.

    user: the function that needs it, for the message.
    """
    try:
        import numpy
    except ImportError as error:
        raise ImportError(
            f"{user} needs NumPy, which cannot be imported ({error}); install it with "
            "`pip install numpy`"
        ) from None
    return numpy
