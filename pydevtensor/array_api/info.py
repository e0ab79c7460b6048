"""Inspection: capabilities, devices and dtypes of the namespace."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import device, dtype
from pydevtensor.array_api.dtypes import by_kind

__all__ = ["__array_namespace_info__"]

# Tensors have at most this many dimensions (DT_MAX_NDIM in csrc/base/shape.h).
_MAX_DIMENSIONS = 16


class Info:
    """The answers of __array_namespace_info__()."""

    def capabilities(self) -> dict[str, Any]:
        """Which of the standard's optional features there are, by their names."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": _MAX_DIMENSIONS,
        }

    def default_device(self) -> device:
        """Where new arrays are made: torch.get_default_device()."""
        return torch.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, dtype]:
        """The types of new arrays of floats, complex numbers, integers and indices.

        The same on every device.
        """
        real = torch.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": torch.int64,
            "indexing": torch.int64,
        }

    def devices(self) -> tuple[device, ...]:
        """The CPU, and each GPU that torch.cuda counts."""
        count = torch.cuda.device_count()
        return (torch.device("cpu"), *(torch.device("cuda", i) for i in range(count)))

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, dtype]:
        """The standard's types by name: all, or those of a kind or of several.

        kind is one of isdtype()'s words. The same on every device.
        """
        if not isinstance(kind, tuple):
            return by_kind(kind)
        return {name: type for each in kind for name, type in by_kind(each).items()}


def __array_namespace_info__() -> Info:
    """Inspection of the namespace: capabilities, devices, dtypes and defaults.

    >>> import pydevtensor.array_api as xp
    >>> xp.__array_namespace_info__().dtypes(kind="real floating")
    {'float32': torch.float32, 'float64': torch.float64}
    """
    return Info()
