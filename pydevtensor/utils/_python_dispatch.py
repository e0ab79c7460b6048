"""torch.utils._python_dispatch: no class here has __torch_dispatch__."""

from __future__ import annotations

from typing import Any

from pydevtensor._names import publish as _publish

__all__ = ["is_traceable_wrapper_subclass"]


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """False, whatever t is: no class has a __torch_dispatch__ here."""
    return False


_publish(__name__)
