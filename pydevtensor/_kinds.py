"""Kinds of tensors that the core asks for, although higher layers define them."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_distributed(value: object) -> TypeGuard[Any]:
    """Whether it is a DTensor: each rank of a mesh has a part or a copy of it."""
    return getattr(type(value), "_is_distributed", None) is True
