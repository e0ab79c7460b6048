"""The namespace of the Python array API standard, which tensors name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import array_api
from pydevtensor._functions import method

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


@method()
def __array_namespace__(self: Tensor, *, api_version: Any = None) -> Any:
    """The module of the Python array API standard's functions: pydevtensor.array_api.

    ValueError for a version of the standard later than its __array_api_version__.
    """
    known = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
    if api_version is not None and api_version not in known:
        raise ValueError(
            f"__array_namespace__(): api_version is {api_version!r}; give one of "
            f"{', '.join(known)}"
        )
    return array_api
